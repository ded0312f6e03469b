"""Restarts by policy and limit, with back-off, and every attempt kept."""

from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import job, task, until_marked

BACKOFF = 0.3  # as the stage sets it


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_without_a_limit_the_first_failure_is_final(jobs: Jobs, policy: str) -> None:
    await jobs.submit(job("once", task("exit 7", policy=policy)))
    status = await jobs.until("once", "Failed")
    replica = await jobs.replica("once")
    assert status["reason"] == "SuccessImpossible"
    assert (replica["attempt"], replica["restartCount"], replica["exitCode"]) == (1, 0, 7)


async def test_on_failure_restarts_to_its_limit_with_growing_waits(jobs: Jobs) -> None:
    await jobs.submit(job("stubborn", task("exit 3", policy="OnFailure", limit=2)))
    await jobs.until("stubborn", "Failed")
    replica = await jobs.replica("stubborn")
    assert (replica["attempt"], replica["restartCount"], replica["phase"]) == (3, 2, "Failed")
    attempts = sorted(replica["attempts"], key=lambda attempt: attempt["number"])
    assert [(item["number"], item["exitCode"], item["outcome"]) for item in attempts] == [
        (1, 3, "Failed"),
        (2, 3, "Failed"),
        (3, 3, "Failed"),
    ]
    assert len({item["podUid"] for item in attempts}) == 3
    waits = [
        (at(later["createdAt"]) - at(earlier["finishedAt"])).total_seconds() for earlier, later in pairwise(attempts)
    ]
    # The cluster's times are whole seconds, so a wait may seem shorter by up to one.
    assert all(wait > BACKOFF * 2**number - 1 for number, wait in enumerate(waits)), waits
    assert (await jobs.reasons("stubborn")).count("ReplicaRestarting") >= 2


async def test_a_restart_that_helps_ends_well_and_shows_both_attempts(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"test -e {mark} && exit 0; touch {mark}; echo first words; exit 9"
    await jobs.submit(job("second", task(script, policy="OnFailure", limit=1)))
    await jobs.until("second", "Succeeded")
    replica = await jobs.replica("second")
    assert (replica["restartCount"], replica["phase"], replica["exitCode"]) == (1, "Succeeded", 0)
    first = next(item for item in replica["attempts"] if item["number"] == 1)
    assert (first["exitCode"], first["evidence"]) == (9, "Captured")
    stored = await jobs.log("second", attempt="1")
    assert stored.headers["Jobgate-Log-Source"] == "stored"
    assert stored.text == "first words\n"
    native = (await jobs.job("second"))["nativeStatus"]
    assert native["tasks"][0]["restartCount"] == 1


async def test_always_restarts_what_succeeded_too(jobs: Jobs) -> None:
    await jobs.submit(job("again", task("exit 0", policy="Always", limit=2)))
    await jobs.until("again", "Succeeded")
    replica = await jobs.replica("again")
    assert (replica["attempt"], replica["restartCount"]) == (3, 2)
    assert {item["outcome"] for item in replica["attempts"]} == {"Succeeded"}


async def test_always_without_a_limit_goes_on(jobs: Jobs) -> None:
    await jobs.submit(job("endless", task("exit 0", policy="Always")))
    await jobs.until_replica("endless", lambda replica: replica["restartCount"] >= 3)
    assert (await jobs.status("endless"))["phase"] in ("Restarting", "Running", "Creating", "Pending")
    await jobs.cancel("endless")
    await jobs.until("endless", "Cancelled")


async def test_only_the_replica_that_failed_comes_back(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f'test "$(rank)" = 1 && test ! -e {mark} && touch {mark} && exit 1; exec sleep 600'
    await jobs.submit(job("one", task(script, replicas=2, policy="OnFailure", limit=1)))
    await jobs.until_replica(
        "one", lambda replica: replica["attempt"] == 2 and replica["phase"] == "Running", "worker-1"
    )
    await jobs.until("one", "Running")
    replicas = await jobs.replicas("one")
    assert (replicas["worker-0"]["attempt"], replicas["worker-1"]["attempt"]) == (1, 2)
    pod = await jobs.pod("one-worker-1")
    assert pod["metadata"]["labels"]["jobgate.dev/attempt"] == "2"


@pytest.mark.parametrize(("policy", "restarts"), [("Never", 0), ("OnFailure", 1)])
async def test_a_restarting_job_says_so_while_it_waits(jobs: Jobs, policy: str, restarts: int, tmp_path: Path) -> None:
    failed, mark = tmp_path / "failed", tmp_path / "mark"
    script = f"test -e {failed} && exec sleep 600; " + until_marked(mark, f"touch {failed}; exit 1")
    keeper = task(kind="keeper")
    worker = task(script, policy=policy, limit=None if policy == "Never" else 1)
    await jobs.submit(job("waits", keeper, worker, failureRules=[{"keeper": [0]}], successRules=[{"keeper": [0]}]))
    await jobs.until("waits", "Running")
    mark.touch()
    await jobs.until_replica("waits", lambda replica: replica["restartCount"] == restarts and replica["attempts"])
    if restarts:
        await jobs.until("waits", "Running")
        assert "ReplicaRestarting" in await jobs.reasons("waits")
        return
    await jobs.until_replica("waits", lambda replica: replica["phase"] == "Failed")
    await jobs.until("waits", "Running")
    condition = (await jobs.conditions("waits"))["ReplicaFailure"]
    assert (condition["status"], condition["message"]) == ("True", "failed for good: worker[0]")
