"""A sweep ends with nothing left that is past its time, however much there was and whatever comes meanwhile."""

import asyncio
from datetime import timedelta

from app.base.clock import SystemClock
from app.db.postgres.engine import Database
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
RUNS = """
INSERT INTO autoscaler_runs (at, max_load, period_seconds, freeze_seconds, error)
SELECT now() - interval '8 days', 1, 1, 1, '' FROM generate_series(1, $1::int)
"""
LONG_AGO, RECENT = timedelta(hours=25), timedelta(hours=23)


async def insert(db: Database, statement: str, *values: object) -> None:
    async with db.begin() as connection:
        await connection.execute(statement, *values)


async def test_a_sweep_deletes_all_expired_rows(db: Database) -> None:
    await insert(db, KEYS, "old", LONG_AGO, MANY)
    await insert(db, KEYS, "new", RECENT, 7)
    await insert(db, FEED, FEED_ROWS_KEPT + MANY)
    await insert(db, RUNS, RUNS_KEPT + MANY)
    await Sweeper(db, SystemClock(), batch=1_000).sweep()
    left = [await count_rows(db, table) for table in ("idempotency_keys", "job_events", "autoscaler_runs")]
    assert left == [7, FEED_ROWS_KEPT, RUNS_KEPT]


async def test_rows_that_expire_during_a_sweep_are_deleted_too(db: Database) -> None:
    """Ten writers add expired keys while one sweeper works in small batches: afterwards none is left."""
    done = asyncio.Event()

    async def write(number: int) -> None:
        for turn in range(10):
            await insert(db, KEYS, f"{number}-{turn}-", LONG_AGO, 50)

    async def sweep() -> None:
        while not done.is_set():
            await Sweeper(db, SystemClock(), batch=100).sweep()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sweep())
        async with asyncio.TaskGroup() as writers:
            for number in range(10):
                writers.create_task(write(number))
        done.set()
    await Sweeper(db, SystemClock(), batch=100).sweep()
    assert await count_rows(db, "idempotency_keys") == 0
