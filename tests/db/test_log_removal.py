"""Kept logs are removed with the notes of their objects, and with what they count for."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from app.db import kept_logs, log_removal
from app.db.kept_logs import LogWrite, Totals
from app.db.postgres.engine import Database
from app.domain.kept_logs.keys import LogKey, chunk_name
from app.domain.kept_logs.records import GapReason, KeptChunk, KeptLog, KeptLogState
from tests.db.factories import NOW, later, new_job, submitted
from tests.db.test_kept_logs import add, chunk_of, opened
from tests.support.waiting import until


async def kept(db: Database, job: UUID | None = None, *, ended: float | None = None, run: int = 0) -> KeptLog:
    """Return a log of ten bytes that ended at this time, or that is followed."""
    log = await opened(db, LogKey(job or uuid4(), "worker", 0, 1, "main", run))
    chunk = chunk_of(0, 10, 0)
    log = await add(db, log, _named(log, chunk.start))
    if ended is None:
        return log
    written = await kept_logs.write(db, log, LogWrite(state=KeptLogState.COMPLETE), later(ended))
    assert written is not None
    return written[0]


def _named(log: KeptLog, start: int) -> KeptChunk:
    return replace(chunk_of(start, 10, start), object_name=name_of(log.key, start))


def name_of(key: LogKey, start: int = 0) -> str:
    return chunk_name("here", key, start, "n")


async def test_logs_expire_by_the_time_of_their_end(db: Database) -> None:
    old, young, followed = await kept(db, ended=0), await kept(db, ended=20), await kept(db)
    assert await log_removal.remove_expired(db, "team-a", later(10), NOW, 100) == 1
    assert await kept_logs.read(db, old.key) is None
    assert await kept_logs.chunks_in_bytes(db, old.key) == []
    assert await log_removal.due_deletions(db, 100) == [name_of(old.key)]
    for log in (young, followed):
        assert await kept_logs.read(db, log.key) == log
    assert await kept_logs.totals(db, "team-a", old.job_uid) == Totals(job=0, namespace=20)
    await log_removal.note_deleted(db, [name_of(old.key)])
    assert await log_removal.due_deletions(db, 100) == []


async def test_the_logs_of_other_namespaces_and_of_pinned_jobs_stay(db: Database) -> None:
    manifest = {"kind": "GenericJob", "metadata": {"annotations": {"jobgate.dev/keep": "true"}}, "spec": {}}
    [pinned] = await submitted(db, new_job(manifest=manifest))
    logs = [await kept(db, pinned, ended=0), await kept(db, ended=0)]
    assert await log_removal.remove_expired(db, "team-b", later(10), NOW, 100) == 0
    assert await log_removal.remove_expired(db, "team-a", later(10), NOW, 100) == 1
    assert [await kept_logs.read(db, log.key) for log in logs] == [logs[0], None]


async def test_totals_of_namespaces_follow_those_of_their_jobs(db: Database) -> None:
    gone, other = await kept(db), await kept(db)
    async with db.read() as connection:
        await connection.execute("DELETE FROM kept_log_totals WHERE job_uid = $1", gone.job_uid)
    assert await kept_logs.totals(db, "team-a", other.job_uid) == Totals(job=10, namespace=20)
    await log_removal.recount(db)
    assert await kept_logs.totals(db, "team-a", other.job_uid) == Totals(job=10, namespace=10)
    assert await log_removal.namespaces(db) == ["team-a"]


async def test_a_redaction_removes_the_text_and_not_what_follows(db: Database) -> None:
    log = await kept(db)
    async with db.begin() as connection:
        assert await log_removal.redact(connection, log.job_uid, NOW) == 1
        assert await log_removal.redact(connection, log.job_uid, NOW) == 0
    [gap] = await kept_logs.chunks_in_bytes(db, log.key)
    assert (gap.gap, gap.start, gap.object_name) == (GapReason.REDACTED, 0, None)
    assert await log_removal.due_deletions(db, 100) == [name_of(log.key)]
    # What a follower had read before must not be written.
    assert await kept_logs.write(db, log, LogWrite(chunks=[_named(log, 10)]), NOW) is None
    assert await log_removal.due_deletions(db, 100) == [name_of(log.key), name_of(log.key, 10)]
    after = await kept_logs.read(db, log.key)
    assert after is not None
    assert after.passes_over
    await add(db, after, _named(log, 10))
    assert [chunk.start for chunk in await kept_logs.chunks_in_bytes(db, log.key)] == [0, 10]


async def test_a_log_that_begins_after_a_redaction_passes_over_what_may_be_older(db: Database) -> None:
    [job, other] = await submitted(db, new_job("one"), new_job("two"))
    async with db.begin() as connection:
        await log_removal.redact(connection, job, NOW)
        at = await connection.fetchval("SELECT redacted_at FROM jobs WHERE uid = $1", job)
    begins: Sequence[tuple[UUID, datetime | None, bool]] = (
        (job, None, True),
        (job, at + timedelta(seconds=59), True),
        (job, at + timedelta(seconds=61), False),
        (other, None, False),
    )
    for run, (uid, started_at, passes_over) in enumerate(begins):
        key = LogKey(uid, "worker", 0, 1, "main", run)
        log = await kept_logs.open_log(db, key, "team-a", NOW, started_at=started_at)
        assert log.passes_over == passes_over


async def test_a_log_cannot_begin_beside_a_redaction_that_does_not_see_it(db: Database) -> None:
    [job] = await submitted(db, new_job())
    async with asyncio.TaskGroup() as group, db.begin() as connection:
        await connection.fetchrow("SELECT FROM jobs WHERE uid = $1 FOR UPDATE", job)
        begun = group.create_task(kept_logs.open_log(db, LogKey(job, "worker", 0, 1, "main"), "team-a", NOW))
        await until(lambda: _waiting(db), what="the log waits for the redaction")
        await log_removal.redact(connection, job, NOW)
    assert begun.result().passes_over


async def _waiting(db: Database) -> int:
    """Return how many statements wait for a lock."""
    async with db.read() as connection:
        return int(await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))


async def test_objects_are_known_by_their_log_and_their_name(db: Database) -> None:
    log = await kept(db)
    places = [
        (log.key, 0, name_of(log.key)),
        (log.key, 0, chunk_name("here", log.key, 0, "another")),
        (log.key, 10, name_of(log.key, 10)),
        (log.key.of_run("main", 1), 0, name_of(log.key)),
    ]
    assert await log_removal.known_objects(db, places) == {name_of(log.key)}
    assert await log_removal.known_objects(db, []) == set()
