"""The reconciler writes a decision before it acts on it, and comes back whenever something is left to do."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from app.db.installation.leases import Lease
from app.db.jobs import controller, edits, evidence
from app.db.jobs.controller import StoredJob
from app.db.jobs.controller_writes import JobWrite
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost
from app.domain.access.actors import Actor
from app.domain.kubernetes import labels
from app.domain.manifests.workload import pod_manifest
from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.reconcile import reconcile
from app.domain.status.pods.ownership import select_pods
from app.domain.vocabulary import Evidence, JobPhase, Outcome, Reason
from app.loops.jobs import loader, mirror, reconciler
from app.loops.jobs.actions import creator
from app.loops.jobs.unknown import UNKNOWN_PAUSE
from app.loops.leadership.identity import WrongCluster
from tests.db.factories import stored
from tests.loops.harness import WITHIN, Harness
from tests.support.waiting import until

FIRST, SECOND = Rank("worker", 0), Rank("worker", 1)


def attempt_of(job: StoredJob, key: Rank = FIRST) -> Any:
    return job.recorded.replicas[key].attempt


async def started(harness: Harness, name: str = "train", **spec: Any) -> Any:
    """A job whose pods run."""
    uid = await harness.submit(name, **spec)
    pods = await harness.pods_until(lambda found: len(found) == spec.get("replicas", 2))
    await harness.kubelet.run(*pods)
    await harness.phase(uid, JobPhase.RUNNING)
    return uid


async def test_a_job_runs_from_its_first_pod_to_its_last_evidence(harness: Harness) -> None:
    async with harness.reconciling():
        uid = await started(harness)
        pods = await harness.pods()
        harness.kubelet.logs = {name: f"the end of {name}\n".encode() for name in pods}
        await harness.kubelet.finish(*pods)
        job = await harness.job_until(uid, lambda job: job.recorded.status.quiet)
        await until(lambda: str(uid) in harness.quiet, within=WITHIN)
    assert job.recorded.status.phase == JobPhase.SUCCEEDED
    assert {attempt_of(job, key).evidence for key in (FIRST, SECOND)} == {Evidence.CAPTURED}
    for name, pod in pods.items():
        rank = Rank("worker", int(pod["metadata"]["labels"][labels.TASK_RANK]))
        log = await evidence.log(harness.db, uid, rank, 1, "main")
        assert log is not None
        assert log.tail == f"the end of {name}\n".encode()
    for pod in (await harness.pods()).values():
        assert pod["metadata"].get("finalizers", []) == [], "a pod is released once its evidence is stored"
    anchor = (await harness.kube.get(f"{harness.path}/configmaps/{labels.anchor_name(str(uid))}")).ok()
    assert anchor["metadata"]["annotations"][labels.TERMINAL_PHASE] == JobPhase.SUCCEEDED


async def test_a_create_whose_answer_is_lost_makes_no_second_pod(harness: Harness) -> None:
    await harness.inject(verb="create", resource="pods", loseResponse=True, count=1)
    async with harness.reconciling():
        uid = await harness.submit(replicas=1)
        job = await harness.job_until(uid, lambda job: FIRST in job.recorded.replicas and attempt_of(job).pod_uid)
    (pod,) = (await harness.pods()).values()
    assert (attempt_of(job).number, attempt_of(job).pod_uid) == (1, pod["metadata"]["uid"])


async def test_a_refused_create_is_a_pending_reason_and_repeated(harness: Harness) -> None:
    refusal = {"status": 503, "message": "etcd is electing a leader"}
    await harness.inject(verb="create", resource="pods", **refusal)
    async with harness.reconciling():
        uid = await harness.submit(replicas=1)
        job = await harness.job_until(uid, lambda job: "ClusterError" in pending(job))
        assert "etcd is electing a leader" in job.recorded.status.pending_reasons[0].message
        await harness.heal()
        await harness.pods_until(lambda found: len(found) == 1)
        await harness.job_until(uid, lambda job: "ClusterError" not in pending(job))


def pending(job: StoredJob) -> list[str]:
    return [reason.code for reason in job.recorded.status.pending_reasons]


async def test_a_deleted_pod_stays_until_its_evidence_is_stored_and_is_then_replaced(harness: Harness) -> None:
    async with harness.reconciling():
        uid = await started(harness, replicas=1)
        (name,) = before = await harness.pods()
        harness.kubelet.logs[name] = b"interrupted\n"
        (await harness.kube.delete(f"{harness.path}/pods/{name}")).ok()
        await harness.kubelet.terminate(name)
        job = await harness.job_until(uid, lambda job: attempt_of(job).number == 2 and attempt_of(job).pod_uid)
    after = await harness.pods()
    assert attempt_of(job).pod_uid == after[name]["metadata"]["uid"] != before[name]["metadata"]["uid"]
    log = await evidence.log(harness.db, uid, FIRST, 1, "main")
    assert log is not None
    assert log.tail == b"interrupted\n"
    assert job.recorded.replicas[FIRST].disruptions == 1


async def test_a_cancel_stops_running_pods_and_keeps_ended_ones(harness: Harness) -> None:
    async with harness.reconciling():
        uid = await started(harness)
        running, finished = await harness.pods()
        await harness.kubelet.finish(finished)
        await harness.job_until(uid, lambda job: any(one.settled for one in job.recorded.replicas.values()))
        await edits.request_cancel(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        being_deleted = f"{harness.path}/pods/{running}"
        await harness.kube.eventually(being_deleted, lambda pod: pod["metadata"].get("deletionTimestamp"))
        await harness.kubelet.terminate(running)
        await harness.job_until(uid, lambda job: job.recorded.status.quiet)
    assert list(await harness.pods()) == [finished]
    assert (await stored(harness.db, uid)).recorded.status.phase == JobPhase.CANCELLED


async def test_a_pod_that_vanishes_unseen_ends_its_attempt(harness: Harness) -> None:
    """The finalizer normally prevents this; somebody took it off."""
    async with harness.reconciling():
        uid = await started(harness, replicas=1)
        (name,) = await harness.pods()
        (await harness.kube.patch(f"{harness.path}/pods/{name}", {"metadata": {"finalizers": None}})).ok()
        await harness.kube.delete(f"{harness.path}/pods/{name}", {"gracePeriodSeconds": 0})
        job = await harness.job_until(uid, lambda job: attempt_of(job).number == 2)
    assert job.recorded.replicas[FIRST].disruptions == 1


async def test_a_job_that_postgres_cannot_store_does_not_hold_up_the_others_of_its_batch(harness: Harness) -> None:
    good = await harness.submit("good", replicas=1)
    bad = await harness.submit("bad", replicas=1)
    await refuse_decisions_on(harness.db, bad)
    async with harness.reconciling():
        await harness.pods_until(lambda found: found == ["good-worker-0"])
        job = await harness.phase(bad, JobPhase.UNKNOWN)
    assert job.recorded.status.reason == Reason.NOT_WRITABLE
    assert "a number is out of range" in job.recorded.status.message
    assert list(await harness.pods()) == ["good-worker-0"], "a decision that is not stored is not acted upon"
    assert (await stored(harness.db, good)).recorded.status.phase != JobPhase.UNKNOWN


async def test_a_job_that_postgres_cannot_store_is_stopped_once_it_is_cancelled(harness: Harness) -> None:
    async with harness.reconciling():
        uid = await started(harness, replicas=1)
        (name,) = await harness.pods()
        await refuse_decisions_on(harness.db, uid)
        await edits.request_cancel(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        pod = f"{harness.path}/pods/{name}"
        await harness.kube.eventually(pod, lambda found: found["metadata"].get("deletionTimestamp"))
        job = await harness.phase(uid, JobPhase.UNKNOWN)
    assert job.recorded.status.reason == Reason.NOT_WRITABLE


async def test_a_job_that_cannot_be_reconciled_does_not_hold_up_the_others_of_its_batch(harness: Harness) -> None:
    good = await harness.submit("good", replicas=1)
    bad = await harness.submit("bad", replicas=1)
    await execute(
        harness.db,
        "CREATE TABLE backup AS SELECT uid, manifest FROM jobs",
        f"""UPDATE jobs SET manifest = '{{"spec": "private words"}}' WHERE uid = '{bad}'""",
    )
    async with harness.reconciling():
        await harness.pods_until(lambda found: found == ["good-worker-0"])
        job = await harness.phase(bad, JobPhase.UNKNOWN)
        assert job.recorded.status.reason == Reason.NOT_RECONCILABLE
        assert "private words" not in job.recorded.status.message
        await execute(harness.db, "UPDATE jobs SET manifest = b.manifest FROM backup b WHERE b.uid = jobs.uid")
        harness.queue.add(str(bad))
        await harness.pods_until(lambda found: found == ["bad-worker-0", "good-worker-0"])
    assert (await stored(harness.db, good)).recorded.status.phase != JobPhase.UNKNOWN


async def test_an_intent_for_a_job_that_cannot_be_reconciled_is_tried_again(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    await execute(
        harness.db,
        "CREATE TABLE backup AS SELECT uid, manifest FROM jobs",
        f"""UPDATE jobs SET manifest = '{{"spec": 1}}' WHERE uid = '{uid}'""",
    )
    await edits.request_cancel(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
    async with harness.reconciling():
        await harness.job_until(uid, lambda job: not job.intent_is_new)
        # The intent does not count as new any more, so it is found by its time.
        later = harness.clock.now() + UNKNOWN_PAUSE
        assert [job.uid for job in await controller.read_overdue(harness.db, later, 10)] == [uid]
        await execute(harness.db, "UPDATE jobs SET manifest = b.manifest FROM backup b WHERE b.uid = jobs.uid")
        harness.queue.add(str(uid))
        await harness.phase(uid, JobPhase.CANCELLED)


@pytest.mark.parametrize("anchored", [False, True], ids=["act", "decide"])
async def test_another_cluster_ends_the_loop_and_no_job_is_blamed(harness: Harness, *, anchored: bool) -> None:
    uid = await harness.submit(replicas=1)
    if anchored:  # the reconciler has to read the anchor before it can decide
        owners = await harness.make_anchor(uid)
        await harness.make_pod("train-worker-0", labels=pod_labels(harness, uid), ownerReferences=owners)
    async with asyncio.TaskGroup() as group:
        mirror = group.create_task(harness.mirror.run())
        await harness.mirror.wait_synced()
        harness.verify_error.append(WrongCluster("another cluster answers"))
        with pytest.RaisesGroup(WrongCluster, flatten_subgroups=True, allow_unwrapped=True):
            await asyncio.wait_for(harness.reconciler.run(), 60)
        mirror.cancel()
    assert (await stored(harness.db, uid)).recorded.status.phase != JobPhase.UNKNOWN


async def test_a_reconcile_selects_the_pods_of_a_job_once(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return function(*arguments, **options)

        return counted

    monkeypatch.setattr(mirror, "select_pods", counting("selected", select_pods))
    monkeypatch.setattr(reconciler, "reconcile", counting("reconciled", reconcile))
    async with harness.reconciling():
        await started(harness)
    assert calls["selected"] == calls["reconciled"] > 1


async def test_a_pod_that_may_be_the_jobs_is_decided_on_once_the_anchor_is_read(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    owners = await harness.make_anchor(uid)
    pod = await harness.make_pod("train-worker-0", labels=pod_labels(harness, uid), ownerReferences=owners)
    async with harness.reconciling():
        job = await harness.job_until(uid, lambda job: FIRST in job.recorded.replicas and attempt_of(job).pod_uid)
    assert attempt_of(job).pod_uid == pod["metadata"]["uid"]
    assert list(await harness.pods()) == ["train-worker-0"]


def pod_labels(harness: Harness, uid: UUID) -> dict[str, str]:
    return harness.labels(uid, **{labels.TASK: "worker", labels.TASK_RANK: "0", labels.ATTEMPT: "1"})


async def test_each_further_failure_of_a_job_that_cannot_be_reconciled_writes_nothing(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    await execute(harness.db, f"""UPDATE jobs SET manifest = '{{"spec": 1}}' WHERE uid = '{uid}'""")
    async with harness.reconciling():
        first = await harness.phase(uid, JobPhase.UNKNOWN)
        harness.clock.skip(1000)
        harness.queue.add(str(uid))
        again = await harness.job_until(uid, lambda job: job.wake_at != first.wake_at)
    assert again.version == first.version


async def test_a_job_that_changes_after_it_was_loaded_ahead_is_decided_on_as_it_is(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "BATCH", 1)
    first, second, _ = [await harness.submit(name, replicas=1) for name in ("first", "second", "third")]
    load = controller.load
    loaded_ahead = asyncio.Event()

    async def load_and_cancel(*arguments: Any) -> Any:
        found = await load(*arguments)
        if second in found and not loaded_ahead.is_set():
            await edits.request_cancel(harness.db, second, actor=Actor("alice"), at=harness.clock.now())
            loaded_ahead.set()
        return found

    async def persist(db: Database, lease: Lease, writes: Sequence[JobWrite]) -> Any:
        if any(write.uid == first for write in writes):
            await loaded_ahead.wait()
        return await controller_persist(db, lease, writes)

    controller_persist = controller.persist
    monkeypatch.setattr(controller, "load", load_and_cancel)
    monkeypatch.setattr(controller, "persist", persist)
    async with harness.reconciling():
        await harness.phase(second, JobPhase.CANCELLED)
        await harness.pods_until(lambda found: found == ["first-worker-0", "third-worker-0"])


async def test_a_job_whose_pods_cannot_be_made_does_not_hold_up_the_others(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(plan: JobPlan, *arguments: Any, **options: Any) -> Any:
        if plan.identity.name == "bad":
            raise ValueError("no pod for this plan")
        return pod_manifest(plan, *arguments, **options)

    monkeypatch.setattr(creator, "pod_manifest", failing)
    await harness.submit("bad", replicas=1)
    async with harness.reconciling():
        await harness.submit("good", replicas=1)
        await harness.pods_until(lambda found: found == ["good-worker-0"])
        monkeypatch.undo()
        await harness.pods_until(lambda found: found == ["bad-worker-0", "good-worker-0"])


async def refuse_decisions_on(db: Database, uid: UUID) -> None:
    """Let Postgres refuse what the controller concludes of a job, except that it cannot be stored.

    The error is the one that Postgres raises for a value that it cannot hold.
    """
    await execute(
        db,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'a number is out of range' USING ERRCODE = 'numeric_value_out_of_range'; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW"
        f" WHEN (NEW.uid = '{uid}' AND NEW.reason <> 'NotWritable' AND NEW.status_version > OLD.status_version)"
        " EXECUTE FUNCTION refuse()",
    )


async def execute(db: Database, *statements: str) -> None:
    async with db.begin() as connection:
        for statement in statements:
            await connection.execute(statement)


class FailingDatabase:
    """A database whose first transaction finds no server."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.read = db.read
        self.failures = 0

    @asynccontextmanager
    async def begin(self, **options: Any) -> AsyncIterator[Connection]:
        if not self.failures:
            self.failures += 1
            raise DatabaseUnavailable("no server answers")
        async with self._db.begin(**options) as connection:
            yield connection


async def test_jobs_come_again_when_postgres_is_back(harness: Harness) -> None:
    db: Any = FailingDatabase(harness.db)
    harness.reconcile_with(db)
    async with harness.reconciling():
        await harness.submit(replicas=1)
        await harness.pods_until(lambda found: len(found) == 1)
    assert db.failures == 1


async def test_a_job_that_was_given_back_before_postgres_failed_is_not_given_back_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be in the next batch by then, and a second worker would get it."""
    bad, good = [await harness.submit(name, replicas=1) for name in ("bad", "good")]
    await execute(harness.db, f"""UPDATE jobs SET manifest = '{{"spec": 1}}' WHERE uid = '{bad}'""")
    done, persist = harness.queue.done, controller.persist
    given_back: list[str] = []

    def note(key: str) -> None:
        given_back.append(key)
        done(key)

    async def fail_once(db: Database, lease: Lease, writes: Sequence[JobWrite]) -> Any:
        if any(write.uid == good for write in writes):
            monkeypatch.setattr(controller, "persist", persist)
            raise DatabaseUnavailable("no server answers")
        return await persist(db, lease, writes)

    monkeypatch.setattr(reconciler, "DATABASE_PAUSE", 0.0)
    monkeypatch.setattr(controller, "persist", fail_once)
    monkeypatch.setattr(harness.queue, "done", note)
    async with harness.reconciling():
        await harness.pods_until(lambda found: found == ["good-worker-0"])
    assert given_back[:2] == [str(bad), str(good)]
    assert given_back.count(str(bad)) == 1


async def test_without_the_lease_nothing_is_written_or_created(harness: Harness) -> None:
    uid = await harness.submit()
    await harness.leadership.release()
    with pytest.RaisesGroup(LeaseLost, flatten_subgroups=True):
        await asyncio.wait_for(harness.reconciler.run(), 60)
    assert await harness.pods() == {}
    assert (await stored(harness.db, uid)).recorded.status.observed_generation == 0


async def test_the_end_of_the_last_attempt_ends_the_job(harness: Harness) -> None:
    async with harness.reconciling():
        uid = await started(harness, replicas=1)
        (name,) = await harness.pods()
        await harness.kubelet.finish(name, exit_code=3)
        job = await harness.phase(uid, JobPhase.FAILED)
    assert (attempt_of(job).outcome, attempt_of(job).exit_code) == (Outcome.FAILED, 3)
