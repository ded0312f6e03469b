"""The migration that adds up the sums of usage by month does so exactly, beside processes that add to those by day."""

import asyncio
from functools import partial
from uuid import uuid4

import asyncpg

from app.db.postgres import migrations
from app.db.postgres.engine import Database
from app.db.usage import writes as usage_writes
from app.domain.usage.sums import Cell, UsageChange
from app.domain.vocabulary import Use
from tests.db.postgres.test_migration_rules import recorded
from tests.db.usage.test_usage import ALICE, INEXACT_MONTHS, NOON, inexact_months
from tests.support.waiting import until

FILL = """
INSERT INTO usage_days (group_id, day, resource, useful, queued)
SELECT g, '2026-01-20'::date + n, 'cpu', g * n, 1 FROM generate_series(1, 60) AS g, generate_series(0, 799) AS n
"""
# As the controller of the version before does.
ADD = """
INSERT INTO usage_days AS d (group_id, day, resource, useful)
SELECT $1 + g, '2026-01-20'::date + $2::integer, r, 7 FROM generate_series(1, 5) AS g, unnest(ARRAY['cpu', 'pods']) AS r
ON CONFLICT (group_id, day, resource) DO UPDATE SET useful = d.useful + excluded.useful
"""
LOCK = "LOCK TABLE usage_days IN SHARE ROW EXCLUSIVE MODE"


async def test_existing_sums_are_added_up_while_others_write(empty_database_url: str) -> None:
    migrations.migrate(empty_database_url, "0028")
    migrating, writer, reader = [await asyncpg.connect(empty_database_url, timeout=60) for _ in range(3)]
    await migrating.execute(FILL)
    ended, written = asyncio.Event(), 0

    async def write() -> None:
        nonlocal written
        while not ended.is_set():
            await writer.execute(ADD, written * 7 % 60, written % 900)
            written += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        await until(lambda: written, lambda count: count > 3, what="another process writes")
        with recorded() as statements:
            await asyncio.to_thread(migrations.migrate, empty_database_url, "0029")
        after = written
        await until(lambda: written, lambda count: count > after, what="another process writes afterwards")
        ended.set()
    assert await reader.fetchval(INEXACT_MONTHS) == 0
    # 48 000 sums, of which a step adds up 20 000 or a few more. Each step ends with its lock.
    assert [each for each in statements if each in {LOCK, "COMMIT"}] == [LOCK, "COMMIT"] * 3
    for connection in (migrating, writer, reader):
        await connection.close()


async def test_decisions_that_are_stored_at_once_wait_for_each_other_in_one_order(db: Database) -> None:
    # The days of each have the resources in another order, and both change the same months.
    changes = [ended(1, cpu=1, pods=1), ended(2, pods=1) | ended(3, cpu=1)]
    for change in changes:  # the groups exist
        await store(db, change)
    async with asyncio.TaskGroup() as group, db.begin() as connection:
        await connection.execute("SELECT FROM usage_months WHERE resource = 'pods' FOR UPDATE")
        for number, change in enumerate(reversed(changes), 1):
            group.create_task(store(db, change))
            await until(partial(connection.fetchval, WAITING), number.__eq__)
    assert await inexact_months(db) == 0


WAITING = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"


def ended(day: int, **amounts: int) -> dict[Cell, int]:
    return {Cell(NOON // 86_400_000 + day, resource, Use.USEFUL): amount for resource, amount in amounts.items()}


async def store(db: Database, change: dict[Cell, int]) -> None:
    async with db.begin() as connection:
        await usage_writes.store(connection, [(uuid4(), ALICE, UsageChange(ended=change))])
