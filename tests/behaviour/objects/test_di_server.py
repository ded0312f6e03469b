"""The in-cluster server of DIJobs, requested by pods of the job with the variables of their environment."""

import sys
from pathlib import Path
from typing import Any

from tests.behaviour.client import Jobs

ASK = """
import json, os, pathlib, sys, time, urllib.error, urllib.request

def ask(job_id, method="GET", body=None):
    request = urllib.request.Request(
        f"{os.environ['DI_SERVER_URL']}/v2alpha1/job/{job_id}/replicas",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {os.environ['DI_SERVER_TOKEN']}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)

def until(true):
    while not true():
        time.sleep(0.1)

own = os.environ["DI_JOB_ID"].replace("/", ".")
"""
GROW = """
def up(size):
    addresses = ask(own)[1]["data"]
    return addresses if len(addresses) == size and all(addresses) else None

until(lambda: up(2))
before = up(2)
print(ask(own, "POST", {"replicas": 1, "task": "collector"}), flush=True)
until(lambda: up(3))
assert up(3)[:2] == before
pathlib.Path(sys.argv[1]).touch()
"""
COLLECT = """
until(pathlib.Path(sys.argv[1]).exists)
"""
INTRUDE = """
codes = [ask(sys.argv[1], method, body)[0] for method, body in (("GET", None), ("POST", {"replicas": 1}))]
print(codes, ask(own)[0], flush=True)
"""


def task(kind: str, script: str, *arguments: object, replicas: int = 1) -> dict[str, Any]:
    command = [sys.executable, "-c", ASK + script, *map(str, arguments)]
    container = {"name": "di-container", "image": "busybox", "command": command}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}
    return {"type": kind, "replicas": replicas, "template": {"spec": spec}}


def di_job(name: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "tasks": list(tasks)},
    }


async def test_a_learner_adds_a_collector_from_inside_its_pod(jobs: Jobs, tmp_path: Path) -> None:
    grown = tmp_path / "grown"
    learner, collector = task("learner", GROW, grown), task("collector", COLLECT, grown)
    await jobs.submit(di_job("grows", learner, collector))
    await jobs.until("grows", "Succeeded")
    replicas = await jobs.replicas("grows")
    assert {key: replica["phase"] for key, replica in replicas.items()} == {
        "learner-0": "Succeeded",
        "collector-0": "Succeeded",
        "collector-1": "Succeeded",
    }
    assert {replica["attempt"] for replica in replicas.values()} == {1}, "nobody was restarted for it"
    assert "successfully add replicas" in (await jobs.log("grows", task="learner", rank="0")).text
    records = (await jobs.read("grows", "scale-records"))["items"]
    assert [(item["fromReplicas"], item["toReplicas"], item["actor"]) for item in records] == [(1, 2, "job/grows")]


async def test_another_jobs_pod_is_refused_with_its_own_token(jobs: Jobs, tmp_path: Path) -> None:
    done = tmp_path / "done"
    await jobs.submit(di_job("grows", task("collector", COLLECT, done)))
    await jobs.submit(di_job("intruder", task("learner", INTRUDE, f"{jobs.namespace}.grows")))
    await jobs.until("intruder", "Succeeded")
    assert (await jobs.log("intruder", task="learner", rank="0")).text == "[401, 401] 200\n"
    assert (await jobs.read("grows", "scale-records"))["items"] == []
    done.touch()
    await jobs.until("grows", "Succeeded")
