"""The objects of docs/queues.md admit a job with the labels that the page shows."""

import re
import secrets
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import job
from tests.behaviour.queues.kueue import API, NODE_LABEL, existing, has_kueue, requesting

PAGE = Path(__file__).parents[3] / "docs" / "queues.md"
BLOCK = re.compile(r"^ *```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.timeout(600)


def blocks_for(namespace: str) -> list[str]:
    """Return the blocks of the page, with names of cluster-wide objects that no other test has, and any node."""
    suffix = f"-{secrets.token_hex(4)}"
    text = re.sub(r"\b(gpu-nodes|research|urgent)\b", rf"\1{suffix}", PAGE.read_text())
    (label,) = NODE_LABEL.items()
    text = text.replace("pool: gpu", ": ".join(label)).replace("namespace: team-a", f"namespace: {namespace}")
    return [dedent(block) for block in BLOCK.findall(text)]


async def test_the_objects_of_the_page_admit_a_job(jobs: Jobs) -> None:
    if not await has_kueue(jobs):
        pytest.skip("the cluster has no Kueue: run `make test-cluster`")
    queues, labelled = blocks_for(jobs.namespace)
    async with existing(jobs.kube, list(yaml.safe_load_all(queues))):
        manifest = job("train", requesting("exit 0"))
        uid = (await jobs.submit(manifest | yaml.safe_load(labelled)))["uid"]
        await jobs.until("train", "Succeeded")
        workload = (await jobs.kube.get(f"{API}/namespaces/{jobs.namespace}/workloads/jobgate-{uid}")).ok()
        assert (workload["spec"]["queueName"], workload["spec"]["priority"]) == ("team", 1000)
        await jobs.delete("train")
