"""The statement of a poll: what it sees of other processes, its indexes, and its errors."""

import asyncio
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from app.db.jobs.rows import STORED_JOBS
from app.db.objects.resources import Stored
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseRefused
from app.domain.planning import Planner
from app.services.reading.jobs import JobReader
from app.services.reading.objects import Address
from tests.db.factories import NOW, new_job, submitted
from tests.db.lists.rows import FILL_JOBS, FILL_SAMPLES
from tests.db.samples.factories import SETS

UPDATE = "UPDATE jobs SET version = version + 1 WHERE uid = $1 RETURNING version"


async def test_a_poll_sees_each_version_that_another_process_has_committed(database_url: str) -> None:
    here, there = await Database.open(database_url, pool_size=4), await Database.open(database_url, pool_size=4)
    job = new_job()
    await submitted(here, job)
    reading = JobReader(there, Planner(installation="i"))
    addresses = [Address(uid=job.uid), Address(namespace=job.row.namespace, name=job.row.name)]
    written = 1
    stop = asyncio.Event()

    async def poll(address: Address) -> None:
        while not stop.is_set():
            before = written
            found = await reading.version(address)
            assert found.uid == job.uid
            assert found.version >= before

    async with asyncio.TaskGroup() as group:
        running = group.create_task(reading.run())
        polls = [group.create_task(poll(address)) for address in addresses * 8]
        for _ in range(200):
            async with here.read() as connection:
                written = await connection.fetchval(UPDATE, job.uid)
        stop.set()
        await asyncio.wait(polls)
        running.cancel()
    await here.close()
    await there.close()


@pytest.mark.parametrize("stored", [STORED_JOBS, SETS], ids=["jobs", "sets"])
async def test_the_statements_of_polls_read_only_indexed_rows(stored: Stored[Any], database_url: str) -> None:
    connection = await asyncpg.connect(database_url, timeout=60)
    # In a short table, reading all rows is cheaper than an index.
    await connection.execute(FILL_JOBS, NOW, 20_000)
    await connection.execute(FILL_SAMPLES, NOW, 20_000)
    await connection.execute("ANALYZE jobs, samples")
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    for sql, types, values in (
        (stored.versions_by_name, "text[], text[]", "ARRAY['team-1'], ARRAY['job-1']"),
        (stored.versions_by_uid, "uuid[]", "ARRAY[gen_random_uuid()]"),
    ):
        await connection.execute(f"PREPARE reading ({types}) AS {sql}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE reading ({values})"))
        await connection.execute("DEALLOCATE reading")
        assert f"{stored.table.name}_pkey" in plan
        assert "Seq Scan" not in plan
    await connection.close()


async def test_polls_do_not_read_the_documents(db: Database) -> None:
    """For the size of a large manifest, PostgreSQL would read megabytes in the statement that all polls share."""
    env = [{"name": f"V{number}", "value": uuid4().hex} for number in range(20_000)]
    job = new_job(manifest={"spec": {"env": env}})
    await submitted(db, job)
    named = (STORED_JOBS.versions_by_name, [job.row.namespace], [job.row.name])
    sized = f"SELECT {STORED_JOBS.stored_size} FROM jobs AS {STORED_JOBS.alias} WHERE uid = ANY($1)"
    async with db.read() as connection:
        assert await blocks_read(connection, STORED_JOBS.sizes, [job.uid]) > 50
        assert await blocks_read(connection, *named) < 20
        assert await blocks_read(connection, STORED_JOBS.versions_by_uid, [job.uid]) < 20
        assert await blocks_read(connection, sized, [job.uid]) < 20


async def blocks_read(connection: Any, statement: str, *arguments: Any) -> int:
    (found,) = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {statement}", *arguments)
    return int(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])


async def test_the_error_of_a_statement_reaches_its_lookups_and_no_later_ones(db: Database) -> None:
    job = new_job()
    await submitted(db, job)
    reading = JobReader(db, Planner(installation="i"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(reading.run())
        async with db.read() as connection:
            await connection.execute("ALTER TABLE names RENAME TO names_away")
            with pytest.raises(DatabaseRefused, match="names"):
                await reading.version(Address(namespace=job.row.namespace, name=job.row.name))
            assert (await reading.version(Address(uid=job.uid))).version == 1
            await connection.execute("ALTER TABLE names_away RENAME TO names")
        assert (await reading.version(Address(namespace=job.row.namespace, name=job.row.name))).uid == job.uid
        running.cancel()
