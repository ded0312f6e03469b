"""A server that keeps its connections and does not answer. Cancelled tasks and closing pools do not wait for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.timeouts import DatabaseTimeouts
from app.embedded_postgres.server import EmbeddedPostgres
from tests.support.machine.freezing import frozen
from tests.support.postgres import FORGETFUL
from tests.support.waiting import until

# Longer than the test may take: nothing below ends because one of them is over.
PATIENT = DatabaseTimeouts(connect=600, acquire=600, statement=600, lock=600, idle_in_transaction=600)
PROMPTLY = 30.0  # seconds, on a machine under any load
DURATION = "SELECT pg_sleep(600)"


@pytest_asyncio.fixture
async def server(postgres_directory: Path) -> AsyncIterator[EmbeddedPostgres]:
    async with EmbeddedPostgres(postgres_directory, settings=FORGETFUL) as running:
        yield running


async def in_a_statement(db: Database) -> None:
    async with db.read() as connection:
        await connection.execute(DURATION)


async def in_a_transaction(db: Database) -> None:
    async with db.begin() as connection:
        await connection.execute(DURATION)


async def in_a_snapshot(db: Database) -> None:
    async with db.snapshot() as connection:
        await connection.execute(DURATION)


async def between_statements(db: Database) -> None:
    async with db.begin() as connection:
        await connection.execute("SELECT 1")
        await asyncio.Event().wait()


async def while_connecting(db: Database) -> None:
    async with db.read(), db.read(), db.read():
        await asyncio.Event().wait()


async def until_busy(db: Database, tasks: int) -> None:
    """Until so many connections of the pool are in use."""
    await until(lambda: db.connections_in_use, lambda count: count >= tasks, within=PROMPTLY)


@pytest.mark.parametrize("work", [in_a_statement, in_a_transaction, in_a_snapshot, between_statements])
async def test_a_cancelled_task_leaves_a_frozen_server_as_cancelled(work: object, server: EmbeddedPostgres) -> None:
    assert callable(work)
    db = await Database.open(server.url, pool_size=3, timeouts=PATIENT)
    task = asyncio.get_running_loop().create_task(work(db))
    await until_busy(db, 1)
    assert server.pid is not None
    with frozen(server.pid):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PROMPTLY)
        await asyncio.wait_for(db.close(), PROMPTLY)


async def test_a_task_cancelled_while_it_connects_leaves_as_cancelled(server: EmbeddedPostgres) -> None:
    db = await Database.open(server.url, pool_size=3, timeouts=PATIENT)
    assert server.pid is not None
    with frozen(server.pid):
        task = asyncio.get_running_loop().create_task(while_connecting(db))
        await until_busy(db, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PROMPTLY)
        await asyncio.wait_for(db.close(), PROMPTLY)


async def test_connections_are_closed_although_the_server_is_frozen_and_one_is_in_use(
    server: EmbeddedPostgres,
) -> None:
    db = await Database.open(server.url, pool_size=3, min_size=3, timeouts=PATIENT)
    task = asyncio.get_running_loop().create_task(in_a_statement(db))
    await until_busy(db, 1)
    assert server.pid is not None
    with frozen(server.pid):
        await asyncio.wait_for(db.close(), PROMPTLY)
        with pytest.raises(DatabaseUnavailable):
            await asyncio.wait_for(task, PROMPTLY)


async def test_a_timeout_on_one_connection_replaces_the_idle_ones(server: EmbeddedPostgres) -> None:
    """Idle connections may be as dead as the one that timed out, so the pool replaces them."""
    short = DatabaseTimeouts(statement=0.5, silence=0.5)
    db = await Database.open(server.url, pool_size=3, min_size=3, timeouts=short)
    before = {await backend(db) for _ in range(3)}
    assert server.pid is not None
    with frozen(server.pid), pytest.raises(DatabaseUnavailable):
        async with db.read() as connection:
            await connection.execute("SELECT 1")
    async with db.read() as one, db.read() as two, db.read() as three:
        after = {await connection.fetchval("SELECT pg_backend_pid()") for connection in (one, two, three)}
    assert not before & after
    await db.close()


async def backend(db: Database) -> int:
    async with db.read() as connection:
        return int(await connection.fetchval("SELECT pg_backend_pid()"))
