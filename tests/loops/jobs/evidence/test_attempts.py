"""The last log lines of an attempt are stored before its pod may go, unless nobody can give them any more."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db import log_removal
from app.db.jobs import controller, evidence
from app.db.postgres.errors import LeaseLost
from app.domain.kubernetes.objects import Event
from app.domain.plan import Rank
from app.domain.reconcile.actions import CaptureEvidence, CreatePod
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence, Outcome, ReplicaPhase
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError, Unreachable
from app.k8s.session.transport import ClusterEndpoint
from app.loops.jobs.actions.actuator import Performed
from app.loops.jobs.actions.work import Work
from app.loops.jobs.evidence import node_slots
from app.loops.jobs.evidence.attempts import EvidenceCapture
from app.loops.jobs.evidence.event_lists import MAX_EVENTS, EventLists, PodEvents
from app.loops.leadership.identity import WrongCluster
from tests.db.factories import decision, replica, stored
from tests.loops.harness import LOG_BYTES, Harness
from tests.support.machine.ports import kept_port
from tests.support.telemetry.metrics import value

KEY = Rank("worker", 0)
NAME = "train-worker-0"
AFTER_DEADLINE = 61.0


async def ended(harness: Harness, *, log: bytes = b"the end\n") -> tuple[UUID, Work, CaptureEvidence]:
    """A job whose pod has run and failed, and the capture that its end asks for."""
    uid = await harness.submit(replicas=1)
    work = await harness.work(uid)
    anchor = await harness.creator.ensure_objects(work)
    assert anchor is not None
    await harness.creator.create_pod(work, CreatePod(key=KEY, attempt=1), anchor)
    await harness.kubelet.run(NAME)
    await harness.kubelet.finish(NAME, exit_code=1)
    harness.kubelet.logs[NAME] = log
    pod_uid = (await harness.pods())[NAME]["metadata"]["uid"]
    await record(harness, uid, pod_uid)
    action = CaptureEvidence(
        key=KEY, attempt=1, pod_name=NAME, pod_uid=pod_uid, containers=("main",), failed_container="main", lines=2
    )
    return uid, work, action


async def record(harness: Harness, uid: UUID, pod_uid: str) -> None:
    """Store the replica with its ended attempt, as the reconciler has done when it asks for a capture."""
    job = await stored(harness.db, uid)
    attempt = Attempt(number=1, pod_uid=pod_uid, phase=ReplicaPhase.FAILED, outcome=Outcome.FAILED)
    concluded = decision(job.recorded.status, changed=[replica(KEY.task, KEY.rank, attempt)], ended=[(KEY, attempt)])
    write = job.write(concluded, pod_names={KEY: NAME})
    assert await controller.persist(harness.db, harness.leadership.lease, [write]) == []


async def captured(evidence: EvidenceCapture, work: Work, *actions: CaptureEvidence) -> None:
    """Capture all that the actions ask for, as the actuator does; raises the first error."""
    identity, expectations = work.plan.identity, work.expectations
    async with asyncio.TaskGroup() as group:
        events = group.create_task(evidence.events(identity, actions))
    errors = await evidence.capture(identity, actions, expectations, events)
    if errors:
        raise errors[0]


async def state(harness: Harness, uid: UUID) -> tuple[Evidence, str | None]:
    attempt = (await stored(harness.db, uid)).recorded.replicas[KEY].attempt
    return attempt.evidence, attempt.evidence_reason


async def test_the_end_of_the_log_and_the_events_are_stored(harness: Harness) -> None:
    uid, work, action = await ended(harness, log=b"x" * LOG_BYTES + b"the end\n")
    event = {
        "metadata": {"name": "killing"},
        "involvedObject": {"kind": "Pod", "namespace": harness.namespace, "name": NAME, "uid": action.pod_uid},
        "reason": "Killing",
        "message": "out of memory",
        "type": "Warning",
    }
    (await harness.kube.post(f"{harness.path}/events", event)).ok()
    await captured(harness.evidence, work, action)
    log = await evidence.log(harness.db, uid, KEY, 1, "main")
    assert log is not None
    assert (len(log.tail), log.truncated) == (LOG_BYTES, True)
    assert log.tail.endswith(b"xthe end\n")
    events = await evidence.events_page(harness.db, uid, None, 9)
    assert "out of memory" in [found.event["message"] for found in events]
    assert await state(harness, uid) == (Evidence.CAPTURED, None)
    assert work.expectations.revision


async def test_the_newest_of_many_events_are_kept(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.k8s.events.PAGE", 20)
    _, _, action = await ended(harness)
    about = {"kind": "Pod", "namespace": harness.namespace, "name": NAME, "uid": action.pod_uid}
    for number in range(MAX_EVENTS + 10):
        event = {
            "metadata": {"name": f"{NAME}.{number:03}"},
            "involvedObject": about,
            "reason": f"Number{number}",
            "type": "Normal",
            "lastTimestamp": f"2099-01-01T00:00:{number:02}Z",
        }
        (await harness.kube.post(f"{harness.path}/events", event)).ok()
    found = await EventLists(harness.context.api, harness.clock).of(harness.namespace, [action.pod_uid])
    assert found is not None
    assert [event.reason for event in found[action.pod_uid]] == [
        f"Number{number}" for number in range(10, MAX_EVENTS + 10)
    ]


async def last_lines(harness: Harness, uid: UUID) -> tuple[str, ...] | None:
    return (await stored(harness.db, uid)).recorded.replicas[KEY].attempt.last_lines


@pytest.mark.parametrize(
    ("log", "failed", "lines"),
    [
        (b"too old\nTraceback:\n\x1b[31mKeyError: 7\x1b[0m\n", "main", ("Traceback:", "KeyError: 7")),
        (b"", "main", ()),
        (b"the end\n", None, None),
        (b"the end\n", "setup", None),
    ],
    ids=["log", "empty", "none-failed", "another"],
)
async def test_the_last_lines_of_the_failed_container_become_part_of_the_attempt(
    harness: Harness, log: bytes, failed: str | None, lines: tuple[str, ...] | None
) -> None:
    uid, work, action = await ended(harness, log=log)
    await captured(harness.evidence, work, replace(action, failed_container=failed))
    assert await last_lines(harness, uid) == lines


@pytest.mark.parametrize("created", [timedelta(0), timedelta(minutes=2)], ids=["before", "after"])
async def test_what_was_printed_before_a_redaction_is_not_stored(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, created: timedelta
) -> None:
    uid, work, action = await ended(harness)
    async with harness.db.begin() as connection:
        await log_removal.redact(connection, uid, harness.clock.now())
        redacted_at = await connection.fetchval("SELECT redacted_at FROM jobs WHERE uid = $1", uid)
    # The clock of the node is a minute ahead at most.
    lines = [(timedelta(seconds=59), b"old\n"), (timedelta(seconds=61), b"end\n")]
    harness.kubelet.logs[NAME] = b"".join(b"%s %s" % (_stamp(redacted_at + at), text) for at, text in lines)
    action, reads = replace(action, created_at=redacted_at + created), list[str]()
    tail = harness.evidence._tail

    async def noted(namespace: str, pod: str, *more: Any) -> evidence.Log:
        reads.append(pod)
        return await tail(namespace, pod, *more)

    monkeypatch.setattr(harness.evidence, "_tail", noted)
    await captured(harness.evidence, work, action)
    reads.clear()
    await captured(harness.evidence, work, action)
    assert reads == [NAME], "the time of the redaction is known"
    log = await evidence.log(harness.db, uid, KEY, 1, "main")
    assert log is not None
    if created:
        assert (log.tail, log.truncated) == (harness.kubelet.logs[NAME], False), "the pod is younger"
    else:
        assert (log.tail, log.truncated) == (b"end\n", True)
        assert await last_lines(harness, uid) == ("end",)


def _stamp(at: datetime) -> bytes:
    return at.isoformat(timespec="seconds").encode()


async def test_a_kubelet_that_does_not_answer_is_asked_again_until_the_deadline(harness: Harness) -> None:
    uid, work, action = await ended(harness)
    harness.kubelet.log_status = 500
    with pytest.raises(KubeError, match="the kubelet is unwell"):
        await captured(harness.evidence, work, action)
    assert await state(harness, uid) == (Evidence.NONE, None)
    harness.clock.skip(AFTER_DEADLINE)
    await captured(harness.evidence, work, action)
    kept, reason = await state(harness, uid)
    assert kept is Evidence.UNAVAILABLE
    assert reason is not None
    assert "main" in reason
    assert "the kubelet is unwell" in reason
    assert await last_lines(harness, uid) is None


async def test_the_time_in_which_a_node_gives_other_logs_does_not_count_for_the_deadline(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_slots, "LONGEST_WAIT", 0.01)
    slots = node_slots.NodeSlots()
    monkeypatch.setattr(harness.evidence, "_node_slots", slots)
    uid, work, action = await ended(harness)
    action = replace(action, node="node-1")
    async with AsyncExitStack() as others:
        for _ in range(node_slots.AT_ONCE):
            await others.enter_async_context(slots.slot("node-1"))
        for _ in range(2):
            with pytest.raises(node_slots.NoSlot):
                await captured(harness.evidence, work, action)
            harness.clock.skip(AFTER_DEADLINE)
        harness.kubelet.log_status = 500
    with pytest.raises(KubeError, match="the kubelet is unwell"):
        await captured(harness.evidence, work, action)
    assert await state(harness, uid) == (Evidence.NONE, None)


async def test_a_capture_at_a_busy_node_is_left_without_a_back_off(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_slots, "LONGEST_WAIT", 0.01)
    uid, work, action = await ended(harness)
    work = replace(work, actions=[action])
    async with AsyncExitStack() as others:
        for _ in range(node_slots.AT_ONCE):
            await others.enter_async_context(harness.evidence._node_slots.slot(""))
        assert await harness.actuator.perform(work) is Performed.LEFT
        assert await state(harness, uid) == (Evidence.NONE, None)
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await state(harness, uid) == (Evidence.CAPTURED, None)


async def test_logs_are_read_while_the_events_are_listed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    uid, work, action = await ended(harness)
    read = asyncio.Event()
    tail = harness.evidence._tail

    async def noted(*arguments: Any) -> evidence.Log:
        log = await tail(*arguments)
        read.set()
        return log

    async def events(*_: object) -> PodEvents:
        async with asyncio.timeout(60):
            await read.wait()
        return {action.pod_uid: [Event(reason="Killing")]}

    monkeypatch.setattr(harness.evidence, "_tail", noted)
    monkeypatch.setattr(harness.evidence, "events", events)
    assert await harness.actuator.perform(replace(work, actions=[action])) is Performed.ALL
    assert [found.event["reason"] for found in await evidence.events_page(harness.db, uid, None, 9)] == ["Killing"]


async def test_a_kubelet_that_answers_again_is_in_time(harness: Harness) -> None:
    uid, work, action = await ended(harness)
    harness.kubelet.log_status = 500
    with pytest.raises(KubeError):
        await captured(harness.evidence, work, action)
    harness.kubelet.log_status = 200
    await captured(harness.evidence, work, action)
    assert await state(harness, uid) == (Evidence.CAPTURED, None)


async def test_while_the_api_server_is_away_no_deadline_ends_the_capture(harness: Harness) -> None:
    """The pod and its log stay where they are, so nothing is lost by waiting."""
    uid, work, action = await ended(harness)
    with kept_port() as port:
        away = KubeApi(ClusterEndpoint(url=f"http://127.0.0.1:{port}"))
        capture = EvidenceCapture(
            away,
            harness.db,
            harness.leadership,
            harness.clock,
            harness.context.evidence,
            EventLists(away, harness.clock),
            verify=nothing,
        )
        for _ in range(2):
            with pytest.raises(Unreachable):
                await captured(capture, work, action)
            harness.clock.skip(AFTER_DEADLINE)
        await away.close()
    assert await state(harness, uid) == (Evidence.NONE, None)
    await captured(harness.evidence, work, action)
    assert await state(harness, uid) == (Evidence.CAPTURED, None)


async def nothing() -> None:
    pass


async def test_a_pod_that_is_gone_has_no_evidence(harness: Harness) -> None:
    reasons = {"what": "log", "reason": "NotFound"}
    before = value("jobgate_evidence_failures_total", **reasons)
    uid, work, action = await ended(harness)
    path = f"{harness.path}/pods/{NAME}"
    (await harness.kube.patch(path, {"metadata": {"finalizers": None}})).ok()
    await harness.kube.delete(path, {"gracePeriodSeconds": 0})
    await captured(harness.evidence, work, action)
    assert (await state(harness, uid))[0] is Evidence.UNAVAILABLE
    assert value("jobgate_evidence_failures_total", **reasons) > before


@pytest.mark.parametrize("missing", ["lease", "cluster"])
async def test_nothing_is_recorded_without_the_lease_or_from_another_cluster(harness: Harness, missing: str) -> None:
    uid, work, action = await ended(harness)
    (await harness.kube.patch(f"{harness.path}/pods/{NAME}", {"metadata": {"finalizers": None}})).ok()
    await harness.kube.delete(f"{harness.path}/pods/{NAME}", {"gracePeriodSeconds": 0})
    # The check of the cluster runs in a TaskGroup, which wraps its error.
    error: type[Exception] = LeaseLost if missing == "lease" else ExceptionGroup
    if missing == "lease":
        await harness.leadership.release()
    else:
        harness.verify_error.append(WrongCluster("another cluster answers"))
    with pytest.raises(error) as caught:
        await captured(harness.evidence, work, action)
    assert ExceptionGroup("", [caught.value]).subgroup((LeaseLost, WrongCluster)) is not None
    assert await state(harness, uid) == (Evidence.NONE, None)
