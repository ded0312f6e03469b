"""The files and commands of docs/queues.md, in their order, set up a queue that admits the job of the page."""

import asyncio
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest
import yaml

from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import job
from tests.behaviour.queues.kueue import API, NODE_LABEL, deleted, has_kueue, queued, requesting
from tests.support.clusters import kubectl
from tests.support.clusters.kube import Cluster
from tests.support.documents.shell import run_script, shell_environment
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^ *```(yaml|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.yaml)\n")

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        kubectl.find() is None or shutil.which("bash") is None, reason="it needs kubectl and bash on the PATH"
    ),
]


class Block(NamedTuple):
    """A file of the page, or commands without a `file`."""

    file: str
    text: str


def blocks_for(namespace: str) -> Iterator[Block]:
    """Return the blocks of the page, with names of cluster-wide objects that no other test has, and any node."""
    suffix = f"-{secrets.token_hex(4)}"
    text = re.sub(r"\b(gpu-nodes|research|urgent)\b", rf"\1{suffix}", (ROOT / "docs" / "queues.md").read_text())
    (label,) = NODE_LABEL.items()
    text = text.replace("pool: gpu", ": ".join(label)).replace("team-a", namespace)
    for language, block in BLOCK.findall(text):
        found = FILE.match(dedent(block))
        assert (found is not None) == (language == "yaml"), "a YAML block begins with the name of its file"
        yield Block(found[1] if found is not None else "", dedent(block))


class Reader:
    """Runs commands in a directory with `deploy` and the files of the page."""

    def __init__(self, jobs: Jobs, cluster: Cluster, home: Path) -> None:
        command = kubectl.find()
        assert command is not None
        self._home = home
        self._environment = shell_environment(str(jobs.http.base_url), home)
        program = home / "bin" / "kubectl"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {" ".join(command)} --kubeconfig={cluster.kubeconfig} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self._environment |= {"PATH": f"{program.parent}:{self._environment['PATH']}", "HOME": str(home)}
        (home / "deploy").symlink_to(ROOT / "deploy")

    async def run(self, commands: str) -> str:
        done = await asyncio.to_thread(
            run_script, f"set -e\n{commands}", self._environment, cwd=self._home, timeout=DEADLINE
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout


async def until_recorded(jobs: Jobs, waiting: int = 0, admitted: int = 0) -> None:
    """Wait until answers have the queue, with so many jobs that wait, and what Kueue counts later."""

    async def read() -> object:
        answer = await jobs.http.get(f"/api/v1/namespaces/{jobs.namespace}/queues/team")
        queue = answer.json() if answer.status_code == 200 else None
        return queue and (len(queue["pendingJobs"]), queue["pending"], queue["admitted"])

    wanted = (waiting, waiting, admitted)
    await until(read, lambda found: found == wanted, what="the queue is recorded", within=DEADLINE)


async def test_the_commands_of_the_page_work(jobs: Jobs, stage: Cluster, tmp_path: Path) -> None:
    if not await has_kueue(jobs):
        pytest.skip("the cluster has no Kueue: run `make test-cluster`")
    rights, queues, apply, train, submit, see = blocks_for(jobs.namespace)
    assert [block.file for block in (queues, train)] == ["queues.yaml", "train.yaml"]
    for block in (queues, train):
        (tmp_path / block.file).write_text(block.text)
    reader = Reader(jobs, stage, tmp_path)
    if stage.real:  # the embedded cluster has no RBAC
        assert "clusterrolebinding.rbac.authorization.k8s.io/jobgate-queues" in await reader.run(rights.text)
    objects = list(yaml.safe_load_all(queues.text))
    async with deleted(jobs.kube, objects):
        assert len((await reader.run(apply.text)).splitlines()) == len(objects)
        await until_recorded(jobs)
        assert "HasRoom" in await reader.run(submit.text)
        await jobs.until("train", "Running")
        uid = (await jobs.read("train"))["uid"]
        workload = (await jobs.kube.get(f"{API}/namespaces/{jobs.namespace}/workloads/jobgate-{uid}")).ok()
        assert (workload["spec"]["queueName"], workload["spec"]["priority"]) == ("team", 1000)
        await jobs.submit(queued(job("wide", requesting(cpu="65")), "team"))
        await until_recorded(jobs, waiting=1, admitted=1)
        shown = await reader.run(see.text)
        assert re.search(r"^team +research-\w+ +yes +1 +1 +cpu 2/64", shown, re.MULTILINE), shown
        assert re.search(r"^\S+ +wide +GenericJob .* ExceedsMaxQuota: ", shown, re.MULTILINE), shown
        assert re.search(r"^Queue: +team \(admitted ", shown, re.MULTILINE), shown
        assert re.search(rf"^workload.kueue.x-k8s.io/jobgate-{uid} +team ", shown, re.MULTILINE), shown
        for name in ("wide", "train"):
            await jobs.delete(name)
