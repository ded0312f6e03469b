"""What the controller decides is stored whole, once, by the leader, on the versions it knew."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.jobs import controller, evidence
from app.db.jobs.controller import StoredJob
from app.db.jobs.evidence import Capture, Log
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost, NotStorable
from app.db.reservations import names
from app.domain.access.namespaces import NamespaceSet
from app.domain.plan import Rank
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Condition, JobPendingReason, JobStatus
from app.domain.vocabulary import ConditionType, Evidence, JobPhase, Outcome, ReplicaPhase, StopReason
from tests.db.factories import NOW, decision, history, later, move, new_job, replica, stored, submitted
from tests.support.postgres import count_rows

WORKER = Rank("worker", 0)
UNKNOWN = UUID(int=7)
RUNNING = JobStatus(
    phase=JobPhase.RUNNING,
    reason="ReplicasStarted",
    message="2 of 2",
    aggregate={ReplicaPhase.RUNNING: 2},
    pending_reasons=(JobPendingReason(code="BackOff", message="wait", since=NOW, replicas=("worker[1]",), count=1),),
    conditions=(
        Condition(
            type=ConditionType.RUNNING,
            status="True",
            reason="Started",
            message="",
            last_transition_at=NOW,
            observed_generation=1,
        ),
        Condition(
            type=ConditionType.INITIALIZED,
            status="True",
            reason="Init",
            message="",
            last_transition_at=NOW,
            observed_generation=1,
        ),
    ),
    observed_generation=1,
    started_at=NOW,
)
ATTEMPT = Attempt(
    number=2,
    pod_uid="pod-uid",
    phase=ReplicaPhase.RUNNING,
    outcome=None,
    stopping=StopReason.PAUSE,
    node="node-1",
    pod_ip="10.0.0.1",
    created_at=NOW,
    started_at=later(1),
    exit_code=None,
    containers=(ObservedContainer(name="main", state="running", started_at=NOW),),
)
ENDED = Attempt(number=1, pod_uid="old", phase=ReplicaPhase.FAILED, outcome=Outcome.FAILED, exit_code=137)


async def test_a_new_job_is_loaded_as_it_was_submitted(db: Database) -> None:
    job = new_job()
    await submitted(db, job)
    found = await stored(db, job.uid)
    assert (found.namespace, found.name, found.kind) == ("team-a", "train", "GenericJob")
    assert found.manifest == job.row.manifest
    assert found.recorded.status == JobStatus()
    assert found.recorded.created_at == NOW
    assert (found.generation, found.intent.generation, found.intent.cancel, found.intent.remove) == (1, 1, False, False)
    assert found.intent_is_new


async def test_what_is_persisted_is_what_is_loaded_next(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    job = await stored(db, uid)
    workers = [
        replica("worker", 0, ATTEMPT, restarts=1, disruptions=2, retry_at=later(9), settled=True),
        replica("worker", 1, leaving=True),
    ]
    entry = history(JobPhase.RUNNING, key=WORKER, attempt=1)
    done = decision(
        RUNNING, changed=workers, ended=[(WORKER, ENDED)], history=[entry, history(JobPhase.RUNNING)], wake_at=later(60)
    )
    write = job.write(done, observed_at=later(2), pod_names={WORKER: "train-worker-0"})
    assert await controller.persist(db, lease, [write]) == []

    again = await stored(db, uid)
    assert again.recorded.status == replace(RUNNING, observed_at=later(2))
    assert again.recorded.replicas == {one.key: one for one in workers}
    assert again.recorded.pod_names == {WORKER: "train-worker-0"}
    assert again.wake_at == later(60)
    assert not again.intent_is_new
    assert (again.version, again.status_version, again.generation) == (2, 1, 1)
    async with db.read() as connection:
        rows = await connection.fetch("SELECT seq, task, rank, attempt FROM status_history ORDER BY seq")
        attempt = await connection.fetchrow("SELECT attempt, outcome, exit_code FROM attempts")
        names = await connection.fetch("SELECT pod_name FROM replicas ORDER BY rank")
    assert [tuple(row) for row in rows] == [(1, None, None, None), (2, "worker", 0, 1), (3, None, None, None)]
    assert tuple(attempt) == (1, "Failed", 137)
    assert [row[0] for row in names] == ["train-worker-0", None]


async def test_the_row_of_a_removed_rank_is_deleted(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    both = [replica("worker", 0), replica("worker", 1)]
    await controller.persist(db, lease, [(await stored(db, uid)).write(decision(RUNNING, changed=both))])
    fewer = replace(decision(RUNNING, changed=both[:1]), changed=())
    await controller.persist(db, lease, [(await stored(db, uid)).write(fewer)])
    assert list((await stored(db, uid)).recorded.replicas) == [WORKER]


@pytest.mark.parametrize("column", ["generation", "status_version", "intent_version"])
async def test_a_decision_on_an_older_version_is_rejected(db: Database, lease: Lease, column: str) -> None:
    moved, still = await submitted(db, new_job("moved"), new_job("still"))
    jobs = await controller.load(db, [moved, still])
    async with db.begin() as connection:
        await connection.execute(f"UPDATE jobs SET {column} = {column} + 1 WHERE uid = $1", moved)
    writes = [jobs[uid].write(decision(RUNNING)) for uid in (moved, still)]
    assert await controller.persist(db, lease, writes) == [moved]
    assert (await stored(db, moved)).recorded.status.phase is JobPhase.QUEUED
    assert (await stored(db, still)).recorded.status.phase is JobPhase.RUNNING


async def test_of_two_decisions_on_one_version_only_one_is_written(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    job = await stored(db, uid)
    write = job.write(decision(RUNNING, history=[history(JobPhase.RUNNING)]))
    answers = await asyncio.gather(*(controller.persist(db, lease, [write]) for _ in range(6)))
    assert sorted(map(len, answers)) == [0, 1, 1, 1, 1, 1]
    assert await count_rows(db, "status_history") == 2


async def test_a_clean_decision_acknowledges_the_intent_and_stores_the_next_wake_up(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    assert [one.uid for one in await controller.read_pending_intents(db, 10)] == [uid]
    job = await stored(db, uid)
    for wake_at in (later(5), None):
        clean = decision(job.recorded.status, dirty=False, wake_at=wake_at)
        assert await controller.persist(db, lease, [job.write(clean)]) == []
        again = await stored(db, uid)
        assert (again.version, again.status_version, again.intent_is_new) == (1, 0, False)
        assert again.wake_at == wake_at
    assert await controller.read_pending_intents(db, 10) == []
    assert await count_rows(db, "job_events") == 1
    assert await controller.find_existing(db, [uid, UNKNOWN]) == {uid}


async def test_one_job_that_cannot_be_stored_leaves_the_others_to_be_repeated(db: Database, lease: Lease) -> None:
    bad, good = await submitted(db, new_job("bad"), new_job("good"))
    jobs = await controller.load(db, [bad, good])
    writes = [jobs[bad].write(decision(replace(RUNNING, message="a\0b"))), jobs[good].write(decision(RUNNING))]
    with pytest.raises(NotStorable):
        await controller.persist(db, lease, writes)
    assert (await stored(db, good)).recorded.status.phase is JobPhase.QUEUED
    assert await controller.persist(db, lease, writes[1:]) == []
    assert (await stored(db, good)).recorded.status.phase is JobPhase.RUNNING


async def test_an_old_epoch_writes_nothing(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    write = (await stored(db, uid)).write(decision(RUNNING))
    await leases.release(db, lease)
    newer = await leases.acquire(db, "controller", "another", ttl=60)
    assert newer is not None
    with pytest.raises(LeaseLost):
        await controller.persist(db, lease, [write])
    with pytest.raises(LeaseLost):
        await evidence.store(db, lease, uid, [Capture(key=WORKER, attempt=1, state=Evidence.CAPTURED, logs={})])
    assert (await stored(db, uid)).recorded.status.phase is JobPhase.QUEUED
    assert await controller.persist(db, newer, [write]) == []


async def test_live_due_and_gone(db: Database, lease: Lease) -> None:
    sleeper, awake, gone = await submitted(db, new_job("sleeper"), new_job("awake"), new_job("gone"))
    for uid, wake_at in ((sleeper, later(100)), (awake, later(5))):
        await controller.persist(db, lease, [(await stored(db, uid)).write(decision(RUNNING, wake_at=wake_at))])
    await move(db, lease, gone, JobPhase.FAILED, gone_at=NOW, quiet=True)
    assert {one.uid for one in await controller.read_live(db)} == {sleeper, awake}
    assert [one.uid for one in await controller.read_overdue(db, later(10), 10)] == [awake]
    assert [one.uid for one in await controller.read_overdue(db, later(1000), 10)] == [awake, sleeper]


async def test_ended_jobs_whose_objects_are_kept_expire(db: Database, lease: Lease) -> None:
    first, second, live, own, gone, unfinished = await submitted(
        db, *(new_job(name) for name in ("first", "second", "live", "own", "gone", "unfinished"))
    )
    for uid, seconds, change in (
        (second, 2, {"quiet": True}),
        (first, 1, {"quiet": True}),
        (gone, 1, {"quiet": True, "gone_at": NOW}),
        (unfinished, 1, {"quiet": False}),
    ):
        await move(db, lease, uid, JobPhase.SUCCEEDED, finished_at=later(seconds), **change)
    await move(db, lease, live, JobPhase.RUNNING)
    ended = replace(RUNNING, phase=JobPhase.SUCCEEDED, finished_at=later(1), quiet=True)
    await controller.persist(db, lease, [(await stored(db, own)).write(decision(ended, wake_at=later(1)))])
    assert [one.uid for one in await controller.read_expired(db, later(1.5), 10)] == [first]
    assert [one.uid for one in await controller.read_expired(db, later(9), 10)] == [first, second]
    assert [one.uid for one in await controller.read_expired(db, later(9), 1)] == [first]
    assert await controller.read_expired(db, later(9), 10, NamespaceSet.of("other")) == []


async def test_names_are_released_at_the_end_and_deleted_with_the_objects(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    await move(db, lease, uid, JobPhase.SUCCEEDED)
    async with db.read() as connection:
        assert await connection.fetchval("SELECT bool_and(released) FROM names") is True
    # For the removal, which reads the objects with these names.
    kinds = (NameKind.SERVICE, NameKind.CONFIG_MAP)
    assert await names.of_objects(db, str(uid), kinds) == [NameRange(NameKind.SERVICE, "train")]
    await move(db, lease, uid, JobPhase.SUCCEEDED, gone_at=NOW)
    assert await count_rows(db, "names") == 0


async def ended_job(db: Database, lease: Lease) -> StoredJob:
    (uid,) = await submitted(db, new_job())
    ended = decision(RUNNING, changed=[replica("worker", 0, ENDED)], ended=[(WORKER, ENDED)])
    await controller.persist(db, lease, [(await stored(db, uid)).write(ended)])
    return await stored(db, uid)


async def test_evidence_is_stored_as_bytes_and_increases_the_status_version(db: Database, lease: Lease) -> None:
    job = await ended_job(db, lease)
    words = {"main": Log(tail=b"\xff\0 last words", truncated=True), "init": Log(tail=b"")}
    events = [{"reason": "Killing", "count": 3}]
    capture = Capture(key=WORKER, attempt=1, state=Evidence.CAPTURED, logs=words, events=events)
    assert await evidence.store(db, lease, job.uid, [capture])
    assert await evidence.log(db, job.uid, WORKER, 1, "main") == words["main"]
    assert await evidence.log(db, job.uid, WORKER, 1, "none") is None
    assert [one.event for one in await evidence.events_page(db, job.uid, None, 9)] == events
    after = await stored(db, job.uid)
    assert after.recorded.replicas[WORKER].attempt.evidence is Evidence.CAPTURED
    assert after.status_version == job.status_version + 1
    assert await controller.persist(db, lease, [job.write(decision(RUNNING))]) == [job.uid]


async def test_evidence_of_a_former_attempt_does_not_change_the_current_one(db: Database, lease: Lease) -> None:
    job = await ended_job(db, lease)
    second = decision(RUNNING, changed=[replica("worker", 0, ATTEMPT)])
    await controller.persist(db, lease, [job.write(second)])
    capture = Capture(key=WORKER, attempt=1, state=Evidence.UNAVAILABLE, reason="the pod is gone", logs={})
    assert await evidence.store(db, lease, job.uid, [capture])
    assert (await stored(db, job.uid)).recorded.replicas[WORKER].attempt == ATTEMPT
    async with db.read() as connection:
        row = await connection.fetchrow("SELECT evidence, evidence_reason FROM attempts")
    assert tuple(row) == ("Unavailable", "the pod is gone")


async def test_many_replicas_of_many_jobs_in_one_write(db: Database, lease: Lease) -> None:
    uids = await submitted(db, *(new_job(f"job-{n}", names=()) for n in range(5)))
    jobs = await controller.load(db, uids)
    many = [replica("worker", rank) for rank in range(700)]
    assert (
        await controller.persist(db, lease, [job.write(decision(RUNNING, changed=many)) for job in jobs.values()]) == []
    )
    loaded = await controller.load(db, uids)
    assert [len(job.recorded.replicas) for job in loaded.values()] == [700] * 5


async def test_nothing_of_a_reserved_namespace_is_found(db: Database) -> None:
    served = NamespaceSet(never=frozenset({"vault"}))
    made = [new_job(f"in-{namespace}", namespace=namespace) for namespace in ("vault", "kube-system", "team")]
    await submitted(db, *made)
    theirs = {job.uid for job in made if job.row.namespace == "team"}
    assert {job.uid for job in await controller.read_live(db, served)} == theirs
    assert {job.uid for job in await controller.read_pending_intents(db, 1, served)} == theirs
    assert set(await controller.load(db, [job.uid for job in made], served)) == theirs
    only = NamespaceSet.of("team", "kube-system")
    assert {job.uid for job in await controller.read_pending_intents(db, 9, only)} == theirs


async def test_reconciles_of_a_single_job_use_kept_plans(database_url: str) -> None:
    """PostgreSQL makes five plans for the values of a statement before it compares them with one for all values."""
    db = await Database.open(database_url, pool_size=1)
    try:
        lease = await leases.acquire(db, "controller", "me", ttl=600)
        assert lease is not None
        (uid,) = await submitted(db, new_job())
        for number in range(12):
            await controller.read_sizes(db, [uid])
            phase = (JobPhase.PENDING, JobPhase.RUNNING)[number % 2]
            await move(db, lease, uid, phase)
        async with db.read() as connection:
            planned = await connection.fetch(
                "SELECT statement, custom_plans FROM pg_prepared_statements WHERE generic_plans + custom_plans > 10"
            )
    finally:
        await db.close()
    assert len(planned) > 5
    assert [row["statement"] for row in planned if row["custom_plans"] > 5] == []
