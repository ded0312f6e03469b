"""A run looks at cluster and jobs, records what it would do, and does it where it is turned on."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db.installation import leases
from app.db.jobs import autoscaler_runs, controller, edits, scale_records
from app.db.jobs.autoscaler_runs import AutoscalerRun
from app.db.jobs.rows import STORED_JOBS
from app.db.objects import resources
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable, LeaseLost
from app.domain.access.actors import AUTOSCALER, Actor
from app.domain.reservations.name_ranges import NameRange
from app.domain.scaling.values import Inventory, ScalingDecision, Verdict
from app.domain.status.records import Attempt, JobPendingReason, JobStatus
from app.domain.vocabulary import JobPhase, PendingCode, ReplicaPhase
from app.k8s.errors import KubeForbidden
from app.loops.leadership.identity import WrongCluster
from tests.db import factories
from tests.db.factories import NOW, later
from tests.loops.autoscaling.stage import ON, Stage


def messages(run: AutoscalerRun) -> dict[str, str]:
    return {decision.name: decision.message for decision in run.decisions}


async def test_a_run_edits_the_job_with_actor_and_reason(stage: Stage) -> None:
    uid = await stage.job("train")
    run = await stage.autoscaler().run_once()
    assert await stage.size(uid) == 3
    (record,) = await scale_records.page(stage.db, uid, limit=10)
    assert (record.task, record.from_replicas, record.to_replicas, Actor(record.actor, record.actor_id)) == (
        "worker",
        1,
        3,
        AUTOSCALER,
    )
    assert record.reason == "grows from 1 to 3; then 3 is its most"
    assert [(decision.applied, decision.refusal) for decision in run.decisions] == [(True, "")]


async def test_a_run_keeps_the_posted_manifest(stage: Stage) -> None:
    uid = await stage.job("train")
    before = await resources.get(stage.db, STORED_JOBS, uid)
    assert before is not None
    document = {"kind": before.kind, "spec": {"posted": [1, None]}}
    async with stage.db.begin() as connection:
        await connection.execute("UPDATE jobs SET posted_manifest = $2 WHERE uid = $1", uid, document)
    await stage.autoscaler().run_once()
    after = await resources.get(stage.db, STORED_JOBS, uid)
    assert after is not None
    assert after.manifest != before.manifest
    assert await resources.read_posted(stage.db, STORED_JOBS, uid) == document


async def test_a_disabled_autoscaler_only_records_its_decisions(stage: Stage) -> None:
    uid = await stage.job("train")
    run = await stage.autoscaler(replace(ON, enabled=False)).run_once()
    assert messages(run) == {"train": "grows from 1 to 3; then 3 is its most"}
    assert not run.decisions[0].applied
    assert await stage.size(uid) == 1


async def test_a_run_is_stored_with_its_inventory(stage: Stage) -> None:
    await stage.job("train", cpu="3")
    stage.cluster.pods = 2
    run = await stage.autoscaler().run_once()
    (stored,) = await autoscaler_runs.page(stage.db, limit=10)
    assert stored.run == run
    assert stored.run.inventory is not None
    assert stored.run.inventory.requested.cpu == 2000
    assert await autoscaler_runs.last_seen(stage.db) == stored


async def test_a_job_is_frozen_after_a_resize_by_any_client(stage: Stage) -> None:
    uid = await stage.job("train", most=2)
    autoscaler = stage.autoscaler()
    await autoscaler.run_once()
    stage.cluster.cpu = 0
    stage.now = later(59)
    assert messages(await autoscaler.run_once()) == {
        "train": "stays at 2: frozen until 2026-03-01T12:01:00Z, after its last change of size"
    }
    stage.now = later(60)
    stage.cluster.pods = 2
    assert (await autoscaler.run_once()).decisions[0].verdict is Verdict.SHRINKS
    assert await stage.size(uid) == 1


@pytest.mark.parametrize(
    ("phase", "spec", "message"),
    [
        (
            JobPhase.RUNNING,
            {"annotations": {"jobgate.dev/autoscale": "false"}},
            "the annotation jobgate.dev/autoscale is false",
        ),
        (JobPhase.PENDING, {}, "the job is Pending, and no job waits for room"),
    ],
)
async def test_a_job_that_is_not_resized_has_a_decision_with_the_reason(
    stage: Stage, phase: JobPhase, spec: dict[str, Any], message: str
) -> None:
    await stage.job("train", phase, **spec)
    assert messages(await stage.autoscaler().run_once()) == {"train": f"stays at 1: {message}"}


async def test_only_live_jobs_of_scalable_kinds_are_considered(stage: Stage) -> None:
    await stage.job("over", JobPhase.SUCCEEDED)
    going = await stage.job("going")
    await edits.request_cancel(stage.db, going, actor=Actor("alice"), at=NOW)
    await factories.submitted(stage.db, factories.new_job("other"))
    assert (await stage.autoscaler().run_once()).jobs == ()


async def test_names_that_a_job_grows_into_are_reserved(stage: Stage) -> None:
    uid = await stage.job("train", most=2)
    await stage.autoscaler().run_once()
    async with stage.db.read() as connection:
        held = await connection.fetch("SELECT kind, name FROM names WHERE job_uid = $1 AND NOT released", uid)
    assert {(row["kind"], row["name"]) for row in held} == {("job", "train"), ("pod", "train-worker-1")}


async def test_a_name_in_use_keeps_a_job_from_growing_and_no_other(stage: Stage) -> None:
    holder = factories.new_job("holder", names=(NameRange("job", "holder"), NameRange("pod", "a-worker-1")))
    await factories.submitted(stage.db, holder)
    first, second = await stage.job("a", most=2), await stage.job("b", most=2)
    run = await stage.autoscaler().run_once()
    assert [(found.name, found.applied) for found in run.decisions] == [("a", False), ("b", True)]
    assert run.decisions[0].refusal.endswith(f"the live job holder ({holder.uid}) uses the pod name a-worker-1")
    assert (await stage.size(first), await stage.size(second)) == (1, 2)
    assert await scale_records.page(stage.db, first, limit=10) == []


async def test_names_of_another_job_are_requested_again_in_the_next_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = await stage.job("train")

    async def apply(*_: Any) -> None:
        raise DatabaseContended("busy")

    with monkeypatch.context() as patched:
        patched.setattr(autoscaler_runs, "apply", apply)
        assert [found.refusal for found in (await stage.autoscaler().run_once()).decisions] == ["busy"]
    await stage.autoscaler().run_once()
    assert await stage.size(uid) == 3


async def test_a_new_generation_is_planned_again(stage: Stage) -> None:
    uid = await stage.job("train", most=9)
    autoscaler = stage.autoscaler(replace(ON, freeze=0.0))
    stage.cluster.cpu = 2
    await autoscaler.run_once()
    assert await stage.size(uid) == 3
    await stage.seen(uid)
    stage.cluster.cpu = 1
    run = await autoscaler.run_once()
    assert (run.jobs[0].size, run.jobs[0].settling) == (3, False)
    assert await stage.size(uid) == 4


async def test_capacity_of_the_previous_run_is_not_given_away_twice(stage: Stage) -> None:
    first = await stage.job("first")
    stage.cluster.cpu = 2
    autoscaler = stage.autoscaler()
    await autoscaler.run_once()
    assert await stage.size(first) == 3
    await stage.job("second")
    run = await autoscaler.run_once()
    assert messages(run)["second"] == "stays at 1: one more would request more than 1 of the CPU of the cluster"


async def test_a_cluster_that_denies_is_recorded_and_nothing_is_scaled(stage: Stage) -> None:
    uid = await stage.job("train")
    stage.cluster.error = KubeForbidden(403, "Forbidden", "nodes is forbidden")
    await stage.autoscaler().run_once()
    (stored,) = await autoscaler_runs.page(stage.db, limit=10)
    assert stored.run.inventory is None
    assert stored.run.error == "the cluster could not be read: 403 Forbidden: nodes is forbidden"
    assert stored.run.decisions == ()
    assert await autoscaler_runs.last_seen(stage.db) is None
    assert await stage.size(uid) == 1


async def test_an_autoscaler_of_some_namespaces_counts_and_records_only_these(stage: Stage) -> None:
    stage.cluster.pods = 1
    run = await stage.autoscaler(ON, "team-a", "team-b").run_once()
    assert run.inventory is not None
    assert run.inventory.namespaces == ("team-a", "team-b")
    assert set(stage.cluster.asked) == {"team-a", "team-b"}
    assert run.inventory.requested.cpu == 2000


# What the scheduler of Kubernetes says, and whether fewer replicas of other jobs can help.
UNSCHEDULABLE = {
    "0/1 nodes are available: 1 Insufficient cpu.": True,
    "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: true}, 2 Insufficient nvidia.com/gpu.": True,
    "0/1 nodes are available: 1 Too many pods.": True,
    "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.": False,
    '0/1 nodes are available: persistentvolumeclaim "data" not found.': False,
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.": False,
}


@pytest.mark.parametrize(
    ("code", "message", "lacks_room"),
    [
        *((PendingCode.UNSCHEDULABLE, *case) for case in UNSCHEDULABLE.items()),
        (PendingCode.GANG_UNSCHEDULABLE, "0/1 nodes are available: 1 Insufficient cpu.", True),
    ],
)
async def test_only_a_job_without_room_makes_others_shrink_whatever_their_phase(
    stage: Stage, code: PendingCode, message: str, *, lacks_room: bool
) -> None:
    waits = await stage.job("waits", JobPhase.PENDING)
    large = await stage.job("large", JobPhase.PENDING, size=3)
    job = await factories.stored(stage.db, waits)
    creating = Attempt(number=1, phase=ReplicaPhase.CREATING)
    reason = JobPendingReason(code=code, message=message, since=NOW, replicas=("leader[0]",), count=1)
    status = replace(job.recorded.status, phase=JobPhase.PENDING, pending_reasons=(reason,))
    replicas = [factories.replica("leader", 0, creating), factories.replica("worker", 0, creating)]
    await write(stage, waits, status, replicas)
    stage.cluster.cpu, stage.cluster.pods = 3, 4
    run = await stage.autoscaler().run_once()
    assert [found.name for found in run.pending] == (["waits"] if lacks_room else [])
    assert await stage.size(large) == (2 if lacks_room else 3)


async def write(stage: Stage, uid: UUID, status: JobStatus, replicas: list[Any]) -> None:

    job = await factories.stored(stage.db, uid)
    assert (
        await controller.persist(stage.db, stage.lease, [job.write(factories.decision(status, changed=replicas))]) == []
    )


async def test_nothing_is_written_after_the_lease_is_lost(stage: Stage) -> None:
    uid = await stage.job("train")
    autoscaler = stage.autoscaler()
    await leases.release(stage.db, stage.lease)
    with pytest.raises(LeaseLost):
        await autoscaler.run_once()
    assert await stage.size(uid) == 1
    assert await autoscaler_runs.page(stage.db, limit=10) == []


async def test_a_job_that_cannot_be_understood_does_not_stop_the_others(stage: Stage) -> None:
    await stage.job("broken", cpu="1", least=2, most=1)
    uid = await stage.job("train")
    async with stage.db.begin() as connection:
        await connection.execute("UPDATE jobs SET manifest = '{}' WHERE name = 'broken'")
    assert list(messages(await stage.autoscaler().run_once())) == ["train"]
    assert await stage.size(uid) == 3


async def test_old_runs_go_and_those_that_changed_something_later(stage: Stage) -> None:
    decision = ScalingDecision(
        uid=str(UUID(int=1)),
        namespace="team-a",
        name="n",
        task="worker",
        from_replicas=1,
        to_replicas=2,
        verdict=Verdict.GROWS,
        message="",
        applied=True,
    )
    for seconds, decisions in ((0, ()), (1, (decision,)), (2, ()), (3, ()), (4, ())):
        run = AutoscalerRun(
            at=later(seconds),
            enabled=True,
            max_load=1,
            period_seconds=30,
            freeze_seconds=60,
            inventory=Inventory(),
            decisions=decisions,
        )
        await autoscaler_runs.write(stage.db, stage.lease, run)
    assert await autoscaler_runs.forget(stage.db, before=NOW, keep=2, limit=100) == 2
    kept = [stored.run.at - NOW for stored in await autoscaler_runs.page(stage.db, limit=10)]
    assert kept == [timedelta(seconds=seconds) for seconds in (4, 3, 1)]
    assert await autoscaler_runs.forget(stage.db, before=later(2), keep=2, limit=100) == 1


@pytest.mark.parametrize(
    ("failure", "goes_on"),
    [
        (ValueError("a fault of ours"), True),
        (DatabaseUnavailable("away"), True),
        (LeaseLost("somebody else"), False),
        (WrongCluster("another"), False),
    ],
)
async def test_a_run_that_fails_is_no_end_unless_the_term_is(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    goes_on: bool,  # noqa: FBT001
) -> None:
    autoscaler = stage.autoscaler(replace(ON, period=0.001))
    again = asyncio.Event()
    outcomes = iter([failure])

    async def run_once() -> None:
        if (error := next(outcomes, None)) is not None:
            raise error
        again.set()

    monkeypatch.setattr(autoscaler, "run_once", run_once)
    running = asyncio.ensure_future(autoscaler.run())  # noqa: TID251 - cancelled below
    waiting = asyncio.ensure_future(again.wait())  # noqa: TID251
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=120)
    assert again.is_set() is goes_on
    assert running.done() is not goes_on
    for task in (running, waiting):
        task.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
