"""A submission is stored durably and completely, or refused without effect on others. Names and keys decide."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import uuid4

import pytest

from app.db.installation.leases import Lease
from app.db.jobs import controller, group_commit
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.rows import STORED_JOBS
from app.db.jobs.submit import NewJob, Undecided, submit
from app.db.objects import idempotency, resources
from app.db.objects.idempotency import IdempotencyKey, KeyConflict, KeyInFlight, Replayed
from app.db.objects.submission import Answer, NameTaken, Submitted
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable, NotStorable
from app.db.postgres.timeouts import DatabaseTimeouts
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.reservations.pod_limits import PodLimits
from app.domain.vocabulary import JobPhase
from app.http_server.stalls import Stall, watch
from tests.db.factories import NOW, later, move, names_held, new_job, stored, submitted
from tests.support.postgres import count_rows
from tests.support.telemetry.metrics import value
from tests.support.waiting import until

_T = TypeVar("_T")
_OTHERS_WAIT = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"

_OTHERS_WAIT_IN_A_ROW = """
SELECT count(*) > 0 FROM pg_locks AS a JOIN pg_locks AS b ON b.pid = ANY(pg_blocking_pids(a.pid))
WHERE NOT a.granted AND NOT b.granted AND pg_backend_pid() = ANY(pg_blocking_pids(b.pid))
"""


def key(name: str = "k", fingerprint: str = "f", answer: bytes = b"{}") -> IdempotencyKey:
    return IdempotencyKey(scope="token POST /jobs", key=name, fingerprint=fingerprint, answer=answer)


async def test_a_submission_writes_job_history_feed_names_and_key(db: Database) -> None:
    job = new_job(idempotency=key(answer=b"\x00answer"))
    assert await submit(db, [job]) == [Submitted()]
    (line,) = await resources.history(db, STORED_JOBS, job.uid, limit=10)
    assert (line.seq, line.entry.phase, line.entry.actor.name, line.entry.at) == (1, JobPhase.QUEUED, "alice", NOW)
    assert (await count_rows(db, "job_events"), len(await names_held(db))) == (1, 4)
    async with db.read() as connection:
        (kept,) = await connection.fetch("SELECT scope, key, job_uid, answer FROM idempotency_keys")
    assert tuple(kept) == ("token POST /jobs", "k", job.uid, b"\x00answer")


@pytest.mark.parametrize("together", [True, False], ids=["one transaction", "one after the other"])
async def test_a_name_conflict_names_the_live_job_and_fails_no_other_submission(
    db: Database, *, together: bool
) -> None:
    first, other = new_job("train"), new_job("other")
    same_name = new_job("train", names=())
    same_pod = new_job("tra", names=(NameRange("pod", "train-worker-1"), NameRange("pod", "free")))
    jobs = [first, same_name, same_pod, other]
    answers = await submit(db, jobs) if together else [(await submit(db, [job]))[0] for job in jobs]
    taken = NameTaken(
        kind=NameKind.JOB, name="train", holder_name="train", holder_uid=first.uid, holder_kind="live job"
    )
    assert answers == [
        Submitted(),
        taken,
        replace(taken, kind=NameKind.POD, name="train-worker-1"),
        Submitted(),
    ]
    assert len(await names_held(db)) == 8, "the refused jobs reserve nothing"
    assert isinstance((await submit(db, [new_job("free", names=(NameRange("pod", "free"),))]))[0], Submitted)


async def test_jobs_of_different_namespaces_may_share_a_name(db: Database) -> None:
    await submitted(db, new_job(), new_job(namespace="team-b"))


async def test_two_jobs_that_block_each_other_through_a_third_are_both_decided(db: Database) -> None:
    """b loses a name to the live job; a, that lost one to b, must get it then."""
    live = new_job("live", names=(NameRange("pod", "z"),))
    await submitted(db, live)
    b = new_job("b", names=(NameRange("pod", "m"), NameRange("pod", "z")))
    a = new_job("c", names=(NameRange("pod", "m"),))
    taken = NameTaken(kind=NameKind.POD, name="z", holder_name="live", holder_uid=live.uid, holder_kind="live job")
    assert await in_a_group(db, [b, a]) == [taken, Submitted()]


async def test_of_two_jobs_that_need_the_same_names_one_is_stored(db: Database) -> None:
    one = new_job("one", names=(NameRange("pod", "x"), NameRange("pod", "y")))
    two = new_job("two", names=(NameRange("pod", "x"), NameRange("pod", "y")))
    kinds = Counter(type(answer) for answer in await submit(db, [one, two]))
    assert kinds == {Submitted: 1, NameTaken: 1}


async def test_a_key_replays_the_first_answer_or_reports_a_conflict(db: Database) -> None:
    first = new_job(idempotency=key(answer=b"first"))
    again = new_job(idempotency=key(answer=b"second"))
    different = new_job(idempotency=key(fingerprint="g"))
    replayed = Replayed(uid=first.uid, answer=b"first")
    assert await submit(db, [first, again, different]) == [Submitted(), replayed, KeyConflict()]
    assert await submit(db, [different, again]) == [KeyConflict(), replayed]
    assert await count_rows(db, "jobs") == 1


async def test_a_refused_submission_leaves_its_key_free(db: Database) -> None:
    await submitted(db, new_job("train"))
    refused = new_job("train", idempotency=key())
    assert isinstance((await submit(db, [refused]))[0], NameTaken)
    job = new_job("another", idempotency=key())
    assert await submit(db, [job]) == [Submitted()]


async def test_a_replay_outlives_the_job_and_ends_with_the_key(db: Database, lease: Lease) -> None:
    job = new_job(idempotency=key())
    await submitted(db, job)
    await move(db, lease, job.uid, JobPhase.SUCCEEDED, gone_at=NOW)
    assert isinstance((await submit(db, [new_job(idempotency=key())]))[0], Replayed)
    assert await idempotency.forget(db, before=NOW, limit=10) == 0
    assert await idempotency.forget(db, before=later(1), limit=10) == 1
    assert isinstance((await submit(db, [new_job(idempotency=key())]))[0], Submitted)


async def test_of_many_with_one_key_in_many_transactions_one_is_stored(db: Database) -> None:
    jobs = [new_job(f"job-{n}", idempotency=key()) for n in range(64)]
    answers = [answer for (answer,) in await asyncio.gather(*(submit(db, [job]) for job in jobs))]
    assert Counter(type(answer) for answer in answers) == {Submitted: 1, Replayed: 63}
    (winner,) = (job for job, answer in zip(jobs, answers, strict=True) if isinstance(answer, Submitted))
    assert {answer.uid for answer in answers if isinstance(answer, Replayed)} == {winner.uid}
    assert await count_rows(db, "jobs") == 1


async def test_of_many_with_one_name_one_is_stored(db: Database) -> None:
    jobs = [new_job(names=[NameRange("pod", f"p-{(n + k) % 16}") for k in range(8)]) for n in range(32)]
    answers = [answer for (answer,) in await asyncio.gather(*(submit(db, [job]) for job in jobs))]
    assert Counter(type(answer) for answer in answers) == {Submitted: 1, NameTaken: 31}


async def test_a_new_job_requests_the_removal_of_finished_jobs_with_its_names(db: Database, lease: Lease) -> None:
    finished, pods, stranger = (
        new_job("train"),
        new_job("x", names=(NameRange("pod", "train-worker-9"),)),
        new_job("stranger"),
    )
    for job in (finished, pods, stranger):
        await submitted(db, job)
        await move(db, lease, job.uid, JobPhase.FAILED)
    before = await stored(db, finished.uid)
    await submitted(db, new_job("train", names=(NameRange("pod", "train-worker-9"),)))
    for job, removed in ((finished, True), (pods, True), (stranger, False)):
        after = await stored(db, job.uid)
        assert (after.intent.remove, after.intent_is_new) == (removed, removed), job.row.name
    assert (await stored(db, finished.uid)).version == before.version + 1
    line = (await resources.history(db, STORED_JOBS, finished.uid, limit=10))[-1]
    assert (line.seq, line.entry.reason, line.entry.phase) == (3, "RemoveRequested", JobPhase.FAILED)
    assert await controller.persist(db, lease, []) == []


async def test_a_job_that_ends_while_a_new_one_waits_for_its_name_is_removed(db: Database) -> None:
    before, after = new_job("train"), new_job("train")
    await submitted(db, before)
    async with asyncio.TaskGroup() as tasks:
        async with db.begin() as ending:
            await ending.execute("UPDATE names SET released = true WHERE job_uid = $1", before.uid)
            waiting = tasks.create_task(submit(db, [after]))
            await until(lambda: ending.fetchval(_OTHERS_WAIT), what="the new job waits for the name")
        assert await waiting == [Submitted()]
    assert (await stored(db, before.uid)).intent.remove


async def test_a_name_that_is_released_meanwhile_is_not_taken_out_of_order(db: Database) -> None:
    """One transaction has `b`, and lacks `a`, which is released then. Another one takes `a` and waits for `b`."""
    await submitted(db, before := new_job("before", names=(NameRange("pod", "a"),)))
    lacking, beside = (
        new_job("lacking", names=(NameRange("pod", "a"),)),
        new_job("beside", names=(NameRange("pod", "b"),)),
    )
    other = new_job("other", names=(NameRange("pod", "a"), NameRange("pod", "b")))
    async with asyncio.TaskGroup() as tasks, db.begin() as table:
        # The first transaction stops after it has tried to reserve its names.
        await table.execute("LOCK TABLE status_history IN SHARE MODE")
        of_first = tasks.create_task(submit(db, [lacking, beside]))
        await until(lambda: table.fetchval(_OTHERS_WAIT), what="the first transaction waits for the table")
        async with db.read() as connection:
            await connection.execute("UPDATE names SET released = true WHERE job_uid = $1", before.uid)
        of_other = tasks.create_task(submit(db, [other]))
        await until(lambda: table.fetchval(_OTHERS_WAIT_IN_A_ROW), what="the other transaction waits for the first")
    assert await of_first == [Undecided(), Submitted()]
    assert await of_other == [
        NameTaken(kind=NameKind.POD, name="b", holder_name="beside", holder_uid=beside.uid, holder_kind="live job")
    ]
    assert await in_a_group(db, [lacking]) == [Submitted()]


async def test_a_new_job_does_not_remove_finished_jobs_without_objects(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    await move(db, lease, uid, JobPhase.FAILED, gone_at=NOW)
    await submitted(db, new_job())
    assert not (await stored(db, uid)).intent.remove


async def test_what_cannot_be_stored_is_refused(db: Database) -> None:
    with pytest.raises(NotStorable) as refusal:
        await submit(db, [new_job(labels={"secret": "nul\0"})])
    assert "nul" not in str(refusal.value)
    assert await count_rows(db, "jobs") == 0


async def in_a_group(db: Database, jobs: list[NewJob]) -> list[Answer | BaseException]:
    commits = GroupCommit(db)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(commits.run())
        answers = await asyncio.gather(*(commits.submit(job) for job in jobs), return_exceptions=True)
        running.cancel()
    return answers


async def test_in_a_group_commit_each_gets_an_answer_of_its_own(db: Database) -> None:
    jobs = [
        new_job("good"),
        new_job("bad", labels={"a": "\0"}),
        new_job("good", names=()),
        new_job("keyed", idempotency=key()),
        new_job("keyed-2", idempotency=key(fingerprint="other")),
        new_job("huge", names=[NameRange("pod", "".join(str(uuid4()) for _ in range(400)))]),
        new_job("surrogate", manifest={"a": "\ud800"}),
        new_job("\ud800"),
        new_job("fault", created_at="yesterday"),
        new_job("fault-2", manifest={"a": object()}),
        new_job("last"),
    ]
    answers = await in_a_group(db, jobs)
    types = [Submitted, NotStorable, NameTaken, Submitted, KeyConflict, NotStorable]
    types += [NotStorable, NotStorable, NotStorable, TypeError, Submitted]
    assert [type(answer) for answer in answers] == types


async def test_submissions_that_the_event_loop_is_working_on_share_a_commit(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, sizes = GroupCommit(db), []
    before = value("jobgate_group_commit_jobs_sum"), value("jobgate_group_commit_wait_seconds_count")

    async def counted(db: Database, jobs: Sequence[NewJob], limits: PodLimits) -> list[Answer | Undecided]:
        sizes.append(len(jobs))
        return await submit(db, jobs, limits)

    async def arrive(iteration: int) -> Answer:
        for _ in range(iteration):
            await asyncio.sleep(0)
        return await commits.submit(new_job(f"job-{iteration}", names=()))

    monkeypatch.setattr(group_commit, "submit", counted)
    monkeypatch.setattr(group_commit, "_QUIET_SECONDS", 60.0)
    monkeypatch.setattr(group_commit, "_GATHER_SECONDS", 60.0)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(commits.run())
        answers = await asyncio.gather(*map(arrive, (1, 2, 7, 15, 25)))
        running.cancel()
    assert {type(answer) for answer in answers} == {Submitted}
    assert value("jobgate_group_commit_jobs_sum") - before[0] == len(answers)
    assert value("jobgate_group_commit_wait_seconds_count") - before[1] == len(sizes)
    assert sizes == [5]


async def test_a_group_commit_stores_all_of_many_in_few_transactions(db: Database) -> None:
    answers = await in_a_group(db, [new_job(f"job-{n}", names=()) for n in range(300)])
    assert {type(answer) for answer in answers} == {Submitted}
    async with db.read() as connection:
        assert await connection.fetchval("SELECT count(DISTINCT xmin::text) FROM jobs") < 20
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 300


async def test_a_transaction_takes_four_round_trips_whatever_its_number_of_jobs(database_url: str) -> None:
    statements: list[str] = []
    alone = await Database.open(database_url, pool_size=1)
    # The driver reads the types of a statement when it prepares it.
    await submitted(alone, new_job(pods=2))
    async with alone.read() as connection:
        connection.add_query_logger(lambda record: statements.append(record.query))
    jobs = [new_job(f"job-{number}", pods=2) for number in range(20)]
    assert await submit(alone, jobs) == [Submitted() for job in jobs]
    await alone.close()
    assert len(statements) == 4, statements


async def test_random_concurrent_jobs_never_share_a_name(db: Database) -> None:
    """Two concurrent committers with overlapping batches: no two stored jobs share a name."""
    chance = random.Random(7)

    def crowd(size: int) -> list[NewJob]:
        pods = [f"pod-{n}" for n in range(20)]
        return [
            new_job(f"job-{chance.randrange(40)}", names=[NameRange("pod", p) for p in chance.sample(pods, 3)])
            for _ in range(size)
        ]

    for _ in range(8):
        jobs = [crowd(12), crowd(12), crowd(12)]
        answers = [answer for part in await asyncio.gather(*(in_a_group(db, part) for part in jobs)) for answer in part]
        everyone = [job for part in jobs for job in part]
        winners = {job.uid: job for job, answer in zip(everyone, answers, strict=True) if isinstance(answer, Submitted)}
        held = await names_held(db)
        for uid, job in winners.items():
            wanted = {(one.kind, name) for one in job.names for name in one.names}
            assert {name for name, holder in held.items() if holder == uid} == wanted
        for answer in answers:
            if isinstance(answer, NameTaken):
                assert held[answer.kind, answer.name] == answer.holder_uid
        assert {type(answer) for answer in answers} <= {Submitted, NameTaken}


async def test_a_key_held_by_a_stuck_transaction_is_reported_as_in_flight(db: Database, database_url: str) -> None:
    impatient = await Database.open(database_url, pool_size=2)
    async with impatient.read() as connection:
        await connection.execute("SET lock_timeout = '50ms'")
    async with db.begin() as stuck:
        await stuck.execute(
            "INSERT INTO idempotency_keys VALUES ('token POST /jobs', 'k', 'f', $1, '', $2)", uuid4(), NOW
        )
        held, free = new_job(idempotency=key()), new_job("free")
        answers = await in_a_group(impatient, [held, free])
    await impatient.close()
    assert answers == [KeyInFlight(), Submitted()]


@pytest.mark.parametrize("table", ["jobs", "idempotency_keys", "names"])
async def test_a_locked_table_is_no_key_in_flight(db: Database, database_url: str, table: str) -> None:
    impatient = await Database.open(database_url, pool_size=2, timeouts=DatabaseTimeouts(lock=0.05))
    async with db.begin() as migration:
        await migration.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        (alone,) = await in_a_group(impatient, [new_job(idempotency=key())])
        together = await outcome(
            GroupCommit(impatient).submit_together([new_job(idempotency=key()), new_job("second")])
        )
    await impatient.close()
    assert [type(answer) for answer in (alone, together)] == [DatabaseContended, DatabaseContended]


async def test_a_stopped_group_commit_refuses(db: Database) -> None:
    commits = GroupCommit(db)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(commits.run())
        await commits.submit(new_job())
        running.cancel()
    with pytest.raises(DatabaseUnavailable):
        await commits.submit(replace(new_job("late")))


async def test_a_group_commit_that_runs_again_stores_nothing_that_it_has_refused(db: Database) -> None:
    commits, refused, late = GroupCommit(db), new_job("refused"), new_job("late")
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(outcome(commits.submit(refused)))
        await asyncio.sleep(0)
        ended = tasks.create_task(commits.run())
        await asyncio.sleep(0)
        ended.cancel()
        assert isinstance(await asking, DatabaseUnavailable)
        again = tasks.create_task(commits.run())
        await asyncio.sleep(0)
        assert await commits.submit(late) == Submitted()
        again.cancel()
    assert await count_rows(db, "jobs") == 1


async def outcome(submitting: Awaitable[_T]) -> _T | BaseException:
    (answer,) = await asyncio.gather(submitting, return_exceptions=True)
    return answer


async def test_many_large_manifests_are_not_written_in_one_turn_of_the_loop(db: Database) -> None:
    manifest = {"kind": "GenericJob", "spec": {"args": ["x"] * 90_000}}
    jobs = [new_job(f"large-{number}", manifest=manifest) for number in range(50)]
    found: list[Stall] = []
    with watch(0.06, found.append):
        await submitted(db, *jobs)
    assert found == []
