"""The replicas, attempts, history, events, manifests and logs of one job."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.db.jobs import evidence
from app.db.jobs.evidence import Capture, Log
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, HistoryEntry, JobPendingReason, Replica, ReplicaFailure
from app.domain.vocabulary import Evidence, JobPhase, Outcome, PendingCode, ReplicaPhase
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MAIN = ObservedContainer(name="main", state="terminated", exit_code=3, reason="Error", finished_at=AT)
FAILED = Attempt(
    number=1,
    pod_uid="pod-1",
    phase=ReplicaPhase.FAILED,
    outcome=Outcome.FAILED,
    evidence=Evidence.NONE,
    node="node-a",
    exit_code=3,
    finished_at=AT,
    containers=(MAIN,),
)
RUNNING = Attempt(
    number=2,
    pod_uid="pod-2",
    phase=ReplicaPhase.RUNNING,
    node="node-b",
    pod_ip="10.0.0.7",
    containers=(ObservedContainer(name="setup", state="terminated", init=True), replace(MAIN, state="running")),
)
FIRST = Replica(key=Rank("worker", 0), attempt=RUNNING, restarts=1)
SECOND = Replica(key=Rank("worker", 1), attempt=Attempt(number=1))


async def job_with_attempts(gateway: Gateway) -> str:
    """Create a job whose first replica failed once and runs again, and whose second replica waits. Return its uid."""
    uid: str = (await gateway.submit())["uid"]
    waiting = JobPendingReason(
        code=PendingCode.UNSCHEDULABLE, message="0/3 nodes are available", since=AT, replicas=("worker[1]",), count=1
    )
    lines = [
        HistoryEntry(at=AT, phase=JobPhase.RUNNING, reason="Line", message=str(n), key=FIRST.key) for n in range(5)
    ]
    await gateway.conclude(
        uid,
        {"phase": JobPhase.RUNNING, "pending_reasons": (waiting,)},
        replicas=[FIRST, SECOND],
        ended=[(FIRST.key, FAILED)],
        history=lines,
    )
    capture = Capture(
        key=FIRST.key,
        attempt=1,
        state=Evidence.CAPTURED,
        logs={"main": Log(tail=b"one\ntwo\nlast words \xff\n", truncated=True)},
        events=[
            {
                "type": "Warning",
                "reason": "BackOff",
                "message": "restarting",
                "count": 4,
                "lastSeen": "2026-01-02T03:04:05Z",
            }
        ],
    )
    assert await evidence.store(gateway.db, await gateway.lease(), UUID(uid), [capture])
    return uid


async def get(gateway: Gateway, detail: str) -> Any:
    answer = await gateway.client.get(jobs_path(NAMESPACE, "hello", detail))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_replicas_have_all_their_attempts(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    first, second = (await get(gateway, "replicas"))["items"]
    assert (first["name"], first["task"], first["rank"]) == ("hello-worker-0", "worker", 0)
    assert (first["phase"], first["attempt"], first["restartCount"], first["podIP"]) == ("Running", 2, 1, "10.0.0.7")
    assert [(item["number"], item["outcome"], item["exitCode"], item["evidence"]) for item in first["attempts"]] == [
        (1, "Failed", 3, "Captured"),
        (2, None, None, "None"),
    ]
    assert first["attempts"][0]["containers"][0]["exitCode"] == 3
    assert (second["phase"], second["attempts"][0]["number"]) == ("Creating", 1)
    assert [item["rank"] for item in (await get(gateway, "replicas?phase=Running"))["items"]] == [0]
    assert (await get(gateway, "replicas?task=other"))["items"] == []


async def test_the_replicas_of_a_stored_job_are_those_of_its_plan(gateway: Gateway) -> None:
    """They are listed before the first reconcile, which stores them."""
    await gateway.submit()
    first, second = (await get(gateway, "replicas"))["items"]
    assert (first["name"], first["task"], first["rank"], first["phase"]) == ("hello-worker-0", "worker", 0, "Creating")
    assert [(attempt["number"], attempt["podUid"], attempt["outcome"]) for attempt in first["attempts"]] == [
        (1, None, None)
    ]
    assert (second["name"], second["rank"]) == ("hello-worker-1", 1)
    page = await get(gateway, "replicas?pageSize=1")
    assert [item["rank"] for item in page["items"]] == [0]
    page = await get(gateway, f"replicas?pageSize=1&pageToken={page['nextPageToken']}")
    assert ([item["rank"] for item in page["items"]], page["nextPageToken"]) == ([1], None)
    assert (await get(gateway, "replicas?phase=Running"))["items"] == []
    assert (await get(gateway, "replicas?task=other"))["items"] == []
    assert len((await get(gateway, "replicas?task=worker&phase=Creating"))["items"]) == 2


async def test_the_first_failure_is_part_of_the_status(gateway: Gateway) -> None:
    uid: str = (await gateway.submit())["uid"]
    assert (await get(gateway, "status"))["status"]["firstFailure"] is None
    failure = ReplicaFailure(
        key=FIRST.key,
        attempt=1,
        outcome=Outcome.FAILED,
        exit_code=137,
        signal=9,
        reason="OOMKilled",
        node="node-a",
        container="main",
        last_lines=("epoch 7",),
        at=AT,
    )
    await gateway.conclude(uid, {"phase": JobPhase.RESTARTING, "first_failure": failure})
    found = {
        "replica": "worker[0]",
        "attempt": 1,
        "node": "node-a",
        "container": "main",
        "exitCode": 137,
        "signal": 9,
        "reason": "OOMKilled",
        "message": None,
        "lastLines": ["epoch 7"],
        "at": "2026-01-02T03:04:05Z",
    }
    assert (await get(gateway, "status"))["status"]["firstFailure"] == found
    whole = (await gateway.client.get(jobs_path(NAMESPACE, "hello"))).json()
    assert whole["status"]["firstFailure"] == found


async def test_replicas_are_paged(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    page = await get(gateway, "replicas?pageSize=1")
    assert [item["rank"] for item in page["items"]] == [0]
    page = await get(gateway, f"replicas?pageSize=1&pageToken={page['nextPageToken']}")
    assert ([item["rank"] for item in page["items"]], page["nextPageToken"]) == ([1], None)


async def test_history_is_paged(gateway: Gateway) -> None:
    uid = await job_with_attempts(gateway)
    seen: list[Any] = []
    token: str | None = ""
    while token is not None:
        page = await get(gateway, f"history?pageSize=4&pageToken={token}".removesuffix("&pageToken="))
        seen += page["items"]
        token = page["nextPageToken"]
    assert [item["seq"] for item in seen] == [1, 2, 3, 4, 5, 6]
    assert (seen[1]["task"], seen[1]["rank"], seen[1]["actor"]) == ("worker", 0, "jobgate")
    by_uid = (await gateway.client.get(f"/api/v1/jobs/{uid}/history")).json()
    assert by_uid["items"] == seen


async def test_events_have_pending_reasons_and_stored_events(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    pending, kept = (await get(gateway, "events"))["items"]
    assert (pending["source"], pending["reason"], pending["message"]) == (
        "pending",
        "Unschedulable",
        "0/3 nodes are available",
    )
    assert (kept["source"], kept["reason"], kept["count"], kept["attempt"]) == ("evidence", "BackOff", 4, 1)
    assert kept["lastSeenAt"] == "2026-01-02T03:04:05Z"


async def test_events_are_shown_although_the_log_was_not_available(gateway: Gateway) -> None:
    uid = await job_with_attempts(gateway)
    events = [{"type": "Warning", "reason": "NodeNotReady", "message": "Node is not ready"}]
    capture = Capture(
        key=FIRST.key, attempt=1, state=Evidence.UNAVAILABLE, reason="the node is away", logs={}, events=events
    )
    assert await evidence.store(gateway.db, await gateway.lease(), UUID(uid), [capture])
    assert [item["reason"] for item in (await get(gateway, "events"))["items"]] == ["Unschedulable", "NodeNotReady"]


def captured(key: Rank, attempt: int, *messages: str) -> Capture:
    events = [{"type": "Normal", "reason": "Killing", "message": message} for message in messages]
    return Capture(key=key, attempt=attempt, state=Evidence.CAPTURED, logs={}, events=events)


def waiting(message: str, count: int = 1) -> JobPendingReason:
    return JobPendingReason(code=PendingCode.UNSCHEDULABLE, message=message, since=AT, replicas=(), count=count)


async def test_pages_of_events_show_each_once_while_others_arrive(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = (await gateway.submit())["uid"]
    lease, first, second = await gateway.lease(), Rank("worker", 0), Rank("worker", 1)
    ended = [
        (first, replace(FAILED, number=1)),
        (second, replace(FAILED, number=1)),
        (first, replace(FAILED, number=2)),
    ]
    reasons = (waiting("no node"), waiting("no disk"), waiting("no port"))
    await gateway.conclude(uid, {"pending_reasons": reasons}, ended=ended)
    for capture in (captured(first, 1, "a", "b", "c"), captured(second, 1, "d"), captured(first, 2, "e", "f")):
        assert await evidence.store(gateway.db, lease, UUID(uid), [capture])
    everything = [item["message"] for item in (await get(gateway, "events"))["items"]]
    assert (sorted(everything[:3]), everything[3:]) == (["no disk", "no node", "no port"], [*"efabcd"])
    sizes: list[int] = []

    async def counted(*asked: Any) -> Any:
        found = await events_page(*asked)
        sizes.append(len(found))
        return found

    events_page = evidence.events_page
    monkeypatch.setattr(evidence, "events_page", counted)
    seen: list[str] = []
    page = await get(gateway, "events?pageSize=2")
    while True:
        seen += [item["message"] for item in page["items"]]
        if page["nextPageToken"] is None:
            break
        number = len(seen) + 10
        # The last reason becomes the first in the status, and another attempt is the newest.
        reasons = (replace(reasons[-1], count=number), *reasons[:-1])
        await gateway.conclude(uid, {"pending_reasons": reasons}, ended=[(first, replace(FAILED, number=number))])
        assert await evidence.store(gateway.db, lease, UUID(uid), [captured(first, number, f"late {number}")])
        page = await get(gateway, f"events?pageSize=2&pageToken={page['nextPageToken']}")
    assert [message for message in seen if not message.startswith("late")] == everything
    assert len(set(seen)) == len(seen)
    assert max(sizes) <= 3


async def test_scale_records_manifests_and_pending_reasons_are_served(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    assert await get(gateway, "scale-records") == {"items": [], "nextPageToken": None}
    kinds = [item["kind"] for item in (await get(gateway, "manifests"))["items"]]
    assert kinds[0] == "ConfigMap"
    assert kinds.count("Pod") == 2
    status = (await get(gateway, "status"))["status"]
    assert status["pendingReasons"][0]["code"] == "Unschedulable"


async def test_lists_have_the_native_status_of_each_job(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    listed = (await gateway.client.get("/api/v1/jobs")).json()["items"][0]
    assert listed["nativeStatus"]["tasks"][0]["replicas"][0]["phase"] == "Running"
    assert (await gateway.client.get(jobs_path(NAMESPACE, "hello"))).json() == listed


async def test_stored_logs_are_served(gateway: Gateway) -> None:
    await job_with_attempts(gateway)
    logs = jobs_path(NAMESPACE, "hello", "logs")
    answer = await gateway.client.get(f"{logs}?attempt=1")
    assert (answer.status_code, answer.content) == (200, b"one\ntwo\nlast words \xff\n")
    assert answer.headers["jobgate-log-source"] == "stored"
    assert answer.headers["jobgate-log-truncated"] == "true"
    assert (await gateway.client.get(f"{logs}?attempt=1&tailLines=1")).content == b"last words \xff\n"
    assert (await gateway.client.get(f"{logs}?attempt=1&tailLines=0")).content == b""
    live = await gateway.client.get(logs)  # the gateway of this test has no cluster
    assert (live.status_code, live.json()["code"]) == (503, "NoCluster")
    for query, pointer, accepted in (
        ("attempt=9", "/query/attempt", "one of 1, 2"),
        ("task=x", "/query/task", "one of worker"),
        ("rank=5", "/query/rank", "0 to 1"),
        ("container=x", "/query/container", "one of setup, main"),
    ):
        refused = await gateway.client.get(f"{logs}?{query}")
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["pointer"], error["accepted"]) == (400, pointer, accepted)
    assert (await gateway.client.get(f"{logs}?rank=1")).status_code == 404
