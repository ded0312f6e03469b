"""Actions of large jobs: evidence is stored together, no call begins after the slice, and releases need no read."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.jobs import controller
from app.domain.kubernetes import labels
from app.domain.plan import Rank
from app.domain.reconcile.actions import CaptureEvidence, CreatePod, DeletePod, EnsureObjects, ReleasePod
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence, Outcome, ReplicaPhase
from app.loops.jobs.actions import actuator
from app.loops.jobs.actions.actuator import Performed
from app.loops.jobs.actions.pods import PodActions
from app.loops.jobs.actions.work import Work
from app.loops.jobs.evidence.attempts import READS_AT_ONCE, STORED_AT_ONCE, groups
from app.loops.jobs.evidence.event_lists import ONE_BY_ONE, PodEvents
from tests.db.factories import decision, replica, stored
from tests.loops.harness import Harness
from tests.support.waiting import until

REPLICAS = ONE_BY_ONE + 7


def capture(rank: int, *containers: str) -> CaptureEvidence:
    return CaptureEvidence(
        key=Rank("worker", rank),
        attempt=1,
        pod_name=f"train-worker-{rank}",
        pod_uid=str(rank),
        containers=containers,
        lines=1,
    )


@given(st.lists(st.booleans(), max_size=3 * STORED_AT_ONCE))
def test_groups_keep_the_order_and_are_bounded(with_logs: list[bool]) -> None:
    actions = [capture(rank, *(["main"] if logs else [])) for rank, logs in enumerate(with_logs)]
    found = list(groups(actions))
    assert [action for group in found for action in group] == actions
    for group in found:
        assert 0 < len(group) <= STORED_AT_ONCE
        assert sum(bool(action.containers) for action in group) <= READS_AT_ONCE


def test_captures_without_logs_are_not_divided_by_the_reads() -> None:
    assert len(list(groups([capture(rank) for rank in range(STORED_AT_ONCE)]))) == 1


async def with_pods(harness: Harness) -> tuple[UUID, Work, Sequence[CaptureEvidence]]:
    """A job whose pods were stopped before they had a node, and the captures that their ends ask for."""
    uid = await harness.submit(replicas=REPLICAS)
    keys = [Rank("worker", rank) for rank in range(REPLICAS)]
    work = await harness.work(uid, EnsureObjects(), *(CreatePod(key=key, attempt=1) for key in keys))
    assert await harness.actuator.perform(work) is Performed.ALL
    pods = await harness.pods()
    attempts = {
        key: Attempt(
            number=1,
            pod_uid=pods[f"train-worker-{key.rank}"]["metadata"]["uid"],
            phase=ReplicaPhase.DELETED,
            outcome=Outcome.STOPPED,
        )
        for key in keys
    }
    job = await stored(harness.db, uid)
    concluded = decision(
        job.recorded.status,
        changed=[replica(key.task, key.rank, attempt) for key, attempt in attempts.items()],
        ended=list(attempts.items()),
    )
    names = {key: f"train-worker-{key.rank}" for key in keys}
    assert await controller.persist(harness.db, harness.leadership.lease, [job.write(concluded, pod_names=names)]) == []
    captures = [replace(capture(key.rank), pod_uid=attempt.pod_uid or "") for key, attempt in attempts.items()]
    return uid, work, captures


async def test_evidence_of_many_pods_is_read_and_stored_together(harness: Harness) -> None:
    uid, work, captures = await with_pods(harness)
    for action in captures:
        event = {
            "metadata": {"name": f"{action.pod_name}.1"},
            "involvedObject": {
                "kind": "Pod",
                "namespace": harness.namespace,
                "name": action.pod_name,
                "uid": action.pod_uid,
            },
            "reason": f"Reason{action.key.rank}",
            "type": "Warning",
        }
        (await harness.kube.post(f"{harness.path}/events", event)).ok()
    version = (await stored(harness.db, uid)).status_version
    assert await harness.actuator.perform(replace(work, actions=captures)) is Performed.ALL
    job = await stored(harness.db, uid)
    assert job.status_version == version + 1
    assert {one.attempt.evidence for one in job.recorded.replicas.values()} == {Evidence.CAPTURED}
    async with harness.db.read() as connection:
        rows = await connection.fetch("SELECT rank, events FROM attempt_events WHERE job_uid = $1", uid)
    # The scheduler of the cluster may have added Events of its own.
    found = {row["rank"]: {event["reason"] for event in row["events"]} for row in rows}
    assert {rank: {reason for reason in found[rank] if reason.startswith("Reason")} for rank in found} == {
        rank: {f"Reason{rank}"} for rank in range(REPLICAS)
    }


async def test_of_a_namespace_with_too_many_events_the_first_ones_are_read(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.k8s.events.PAGE", 1)
    monkeypatch.setattr("app.k8s.events.MAX_PAGES_OF_NAMESPACE", 1)
    _, work, captures = await with_pods(harness)
    for name, capture in zip("ab", captures, strict=False):
        about = {"kind": "Pod", "namespace": harness.namespace, "name": capture.pod_name, "uid": capture.pod_uid}
        (await harness.kube.post(f"{harness.path}/events", {"metadata": {"name": name}, "involvedObject": about})).ok()
    found = await harness.evidence.events(work.plan.identity, captures)
    assert [len(found[capture.pod_uid]) for capture in captures] == [1] + [0] * (REPLICAS - 1)


async def test_captures_make_progress_even_if_reading_the_events_takes_the_whole_slice(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, work, captures = await with_pods(harness)
    monkeypatch.setattr(actuator, "SLICE", 0.0)
    assert await harness.actuator.perform(replace(work, actions=captures)) is Performed.ALL


async def test_a_list_of_events_that_takes_the_whole_slice_serves_all_groups(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each group would wait for another list, of which a namespace with many Events has one in seconds."""
    _, work, captures = await with_pods(harness)
    monkeypatch.setattr("app.loops.jobs.evidence.attempts.STORED_AT_ONCE", 1)
    slices: list[actuator._Slice] = []
    limit_time = actuator._Slice.limit_time

    def noted(begun: actuator._Slice) -> AbstractContextManager[None]:
        slices.append(begun)
        return limit_time(begun)

    async def events(*_: object) -> PodEvents:
        await slices[0]._over.wait()
        monkeypatch.setattr(actuator, "SLICE", 3600.0)
        return {}

    monkeypatch.setattr(actuator._Slice, "limit_time", noted)
    monkeypatch.setattr(actuator, "SLICE", 0.0)
    monkeypatch.setattr(harness.evidence, "events", events)
    assert await harness.actuator.perform(replace(work, actions=captures)) is Performed.ALL


async def test_no_call_begins_after_the_slice(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actuator, "SLICE", 0.0)
    monkeypatch.setattr(actuator, "CALLS", 1)
    monkeypatch.setattr(actuator, "LEAST_CALLS_PER_JOB", 1)
    uid = await harness.submit(replicas=3)
    creates = [CreatePod(key=Rank("worker", rank), attempt=1) for rank in range(3)]
    work = await harness.work(uid, EnsureObjects(), *creates)
    for count in (1, 2):
        left = replace(work, actions=[EnsureObjects(), *creates[count - 1 :]])
        assert await harness.actuator.perform(left) is Performed.LEFT
        assert len(await harness.pods()) == count


@pytest.mark.parametrize(("acting", "each"), [(1, 64), (2, 32), (3, 21), (6, 10), (7, 10), (1000, 10)])
def test_the_jobs_that_act_share_the_calls(acting: int, each: int) -> None:
    assert actuator.calls_per_job(acting) == each


async def test_a_job_that_acts_alone_has_all_calls_and_shares_them_with_a_second_one(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actuator, "CALLS", 4)
    monkeypatch.setattr(actuator, "LEAST_CALLS_PER_JOB", 1)
    releases = [ReleasePod(name=f"train-worker-{rank}", uid=str(rank)) for rank in range(6)]
    first, second = [
        await harness.work(await harness.submit(name=name), *releases) for name in ("train-first", "train-second")
    ]
    under_way: Counter[str] = Counter()
    may_end = asyncio.Event()

    async def release(_: PodActions, work: Work, _action: ReleasePod) -> bool:
        under_way[work.plan.identity.name] += 1
        await may_end.wait()
        return True

    monkeypatch.setattr(PodActions, "release", release)
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.actuator.perform(first))
        await until(lambda: under_way["train-first"] == 4)
        group.create_task(harness.actuator.perform(second))
        await until(lambda: under_way["train-second"] == 2)
        # All calls that may begin have begun: those of the second job began in one iteration of the loop.
        assert under_way == {"train-first": 4, "train-second": 2}
        may_end.set()
    assert under_way == {"train-first": 6, "train-second": 6}


async def test_the_mirror_knows_at_once_that_a_pod_terminates(harness: Harness) -> None:
    """A reconcile before the event of the watch would delete the pod again."""
    _, work, captures = await with_pods(harness)
    held, free = (DeletePod(name=action.pod_name, uid=action.pod_uid) for action in captures[:2])
    (await harness.kube.patch(f"{harness.path}/pods/{free.name}", {"metadata": {"finalizers": None}})).ok()
    assert await harness.actuator.perform(replace(work, actions=[held, free])) is Performed.ALL
    assert free.name not in await harness.pods()
    terminating = {action.name: _terminates(harness, action) for action in (held, free)}
    assert terminating == {held.name: True, free.name: False}


def _terminates(harness: Harness, action: DeletePod) -> bool:
    pod = harness.mirror.pod(action.uid)
    return pod is not None and pod.metadata.deletion_timestamp is not None


async def test_a_pod_is_released_as_the_mirror_has_it_and_read_only_if_that_is_outdated(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, work, captures = await with_pods(harness)
    reads: list[str] = []
    get = harness.context.api.get

    async def counted(resource: Any, name: str, *arguments: Any, **options: Any) -> Any:
        reads.append(name)
        return await get(resource, name, *arguments, **options)

    monkeypatch.setattr(harness.context.api, "get", counted)
    fresh, outdated = (ReleasePod(name=action.pod_name, uid=action.pod_uid) for action in captures[:2])
    # Another client has added a finalizer before jobgate's since the mirror got the pod.
    others = {"metadata": {"finalizers": ["example.com/other", labels.EVIDENCE_FINALIZER]}}
    (await harness.kube.patch(f"{harness.path}/pods/{outdated.name}", others)).ok()
    assert await harness.actuator.perform(replace(work, actions=[fresh, outdated])) is Performed.ALL
    assert reads == [outdated.name]
    pods = await harness.pods()
    assert "finalizers" not in pods[fresh.name]["metadata"]
    assert pods[outdated.name]["metadata"]["finalizers"] == ["example.com/other"]
