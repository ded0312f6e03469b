"""A sweep ends with nothing left that is past its time, however much there was and whatever comes meanwhile."""

import asyncio
from datetime import timedelta

from app.base.clock import InstallationClock, SystemClock
from app.db import purge
from app.db.postgres.engine import Database
from app.domain.retention import Keeping, Retention
from app.loops.maintenance.sweeper import FEED_ROWS_KEPT, RUNS_KEPT, Sweeper
from tests.support.postgres import count_rows

MANY = 5_003
KEYS = """
INSERT INTO idempotency_keys (scope, key, fingerprint, job_uid, answer, created_at)
SELECT 's', $1 || n, 'f', gen_random_uuid(), 'answer', now() - $2::interval FROM generate_series(1, $3::int) AS n
"""
FEED = """
WITH head AS (UPDATE feed SET last = last + $1::int RETURNING last - $1::int AS before)
INSERT INTO job_events (at, type, namespace, job_uid, version, seq)
SELECT now() - interval '2 days', 'status', 'a', gen_random_uuid(), 1, head.before + n
FROM head, generate_series(1, $1::int) AS n
"""
PURGED = """
INSERT INTO purged (uid, purged_at, has_records, resource, namespace)
SELECT gen_random_uuid(), now() - $1::interval, $2, 'jobs', 'a' FROM generate_series(1, $3::int) AS n
"""
JOBS = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet, finished_at, gone_at)
SELECT gen_random_uuid(), $1, 'job-' || n, 'X', 'v1', '{}', now(), 'me', 'Failed', '', '', true, now() - $2::interval,
       now()
FROM generate_series(1, $3::int) AS n
"""
RUNS = """
INSERT INTO autoscaler_runs (at, max_load, period_seconds, freeze_seconds, error)
SELECT now() - interval '8 days', 1, 1, 1, '' FROM generate_series(1, $1::int)
"""
LONG_AGO, RECENT = timedelta(hours=25), timedelta(hours=23)
DAY = timedelta(days=1)


async def insert(db: Database, statement: str, *values: object) -> None:
    async with db.begin() as connection:
        await connection.execute(statement, *values)


async def test_a_sweep_deletes_all_expired_rows(db: Database) -> None:
    await insert(db, KEYS, "old", LONG_AGO, MANY)
    await insert(db, KEYS, "new", RECENT, 7)
    await insert(db, FEED, FEED_ROWS_KEPT + MANY)
    await insert(db, RUNS, RUNS_KEPT + MANY)
    await insert(db, PURGED, 91 * DAY, False, MANY)
    await insert(db, PURGED, 89 * DAY, False, 5)
    await Sweeper(db, SystemClock(), Keeping(), batch=1_000).sweep()
    tables = ("idempotency_keys", "job_events", "autoscaler_runs", "purged")
    assert [await count_rows(db, table) for table in tables] == [7, FEED_ROWS_KEPT, RUNS_KEPT, 5]


async def test_a_sweep_purges_jobs_by_the_time_of_their_namespace_and_of_the_installation(db: Database) -> None:
    """The time is that of the clock of the installation, and not that of PostgreSQL or of this machine."""
    await insert(db, JOBS, "a", 4 * DAY, 120)
    await insert(db, JOBS, "b", 4 * DAY, 7)
    await insert(db, JOBS, "c", 4 * DAY, 9)
    keeping = Keeping(jobs=Retention.parse("5d,a=3d,c=never"))

    async def left_after(days: float) -> dict[str, int]:
        clock = InstallationClock()
        clock.shift(days * DAY.total_seconds())
        await Sweeper(db, clock, keeping).sweep()
        async with db.read() as connection:
            return dict(await connection.fetch("SELECT namespace, count(*) FROM jobs GROUP BY 1"))

    assert await left_after(-2) == {"a": 120, "b": 7, "c": 9}
    assert await left_after(0) == {"b": 7, "c": 9}
    assert await left_after(2) == {"c": 9}


async def test_nothing_is_deleted_that_is_kept_for_ever(db: Database) -> None:
    await insert(db, KEYS, "old", 1000 * DAY, 3)
    await insert(db, FEED, FEED_ROWS_KEPT + 3)
    await insert(db, PURGED, 1000 * DAY, False, 3)
    await insert(db, JOBS, "a", 1000 * DAY, 3)
    for_ever = Retention()
    keeping = Keeping(jobs=for_ever, samples=for_ever, purged=None, feed=None, idempotency_keys=None)
    await Sweeper(db, SystemClock(), keeping).sweep()
    tables = ("idempotency_keys", "job_events", "purged", "jobs")
    assert [await count_rows(db, table) for table in tables] == [3, FEED_ROWS_KEPT + 3, 3, 3]


async def test_the_uid_of_an_object_stays_until_its_rows_are_deleted(db: Database) -> None:
    await insert(db, PURGED, 1000 * DAY, True, 1)
    assert await purge.forget(db, SystemClock().now(), 10) == 0
    await Sweeper(db, SystemClock(), Keeping()).sweep()
    await Sweeper(db, SystemClock(), Keeping()).sweep()
    assert await count_rows(db, "purged") == 0


async def test_rows_that_expire_during_a_sweep_are_deleted_too(db: Database) -> None:
    """Ten writers add expired keys while one sweeper works in small batches: afterwards none is left."""
    done = asyncio.Event()

    async def write(number: int) -> None:
        for turn in range(10):
            await insert(db, KEYS, f"{number}-{turn}-", LONG_AGO, 50)

    async def sweep() -> None:
        while not done.is_set():
            await Sweeper(db, SystemClock(), Keeping(), batch=100).sweep()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sweep())
        async with asyncio.TaskGroup() as writers:
            for number in range(10):
                writers.create_task(write(number))
        done.set()
    await Sweeper(db, SystemClock(), Keeping(), batch=100).sweep()
    assert await count_rows(db, "idempotency_keys") == 0
