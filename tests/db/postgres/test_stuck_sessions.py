"""Sessions whose client froze between the two messages of a statement hold their locks, and are ended."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import pytest

from app.db.postgres.engine import Database
from app.db.postgres.stuck_sessions import end_stuck_sessions
from tests.support.waiting import until

LOCK = 4711
_LOCKED = """
SELECT count(*) FROM pg_locks
WHERE objid = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_OVERDUE = "SELECT state_change < clock_timestamp() - interval '1 s' FROM pg_stat_activity WHERE pid = $1"
NO_PATIENCE = timedelta(milliseconds=1)


async def prepared(connection: asyncpg.Connection) -> None:
    """Send the first message of a statement, as a client that freezes before the second one."""
    await connection.prepare("SELECT count(*) FROM jobs")


async def between_statements(connection: asyncpg.Connection) -> None:
    """Do nothing: `idle_in_transaction_session_timeout` covers this session."""


async def is_locked(db: Database) -> bool:
    async with db.read() as connection:
        return bool(await connection.fetchval(_LOCKED, LOCK))


async def is_overdue(db: Database, pid: int) -> bool:
    """Return whether the session has been in its state for several times its timeouts."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_OVERDUE, pid))


async def test_no_timeout_of_the_server_ends_a_session_that_froze_within_a_statement(
    db: Database, database_url: str
) -> None:
    """This is why the sessions need to be ended: once a server ends them by itself, this test fails."""
    settings = {"statement_timeout": "200", "idle_in_transaction_session_timeout": "200"}
    client = await asyncpg.connect(database_url, server_settings=settings | {"application_name": "jobgate"})
    await client.execute("BEGIN")
    await client.fetchval("SELECT pg_advisory_xact_lock($1)", LOCK)
    await prepared(client)
    await until(lambda: is_overdue(db, client.get_server_pid()), what="the session is overdue")
    assert await is_locked(db)
    await until(lambda: end_stuck_sessions(db, NO_PATIENCE), what="a session is ended")
    await until(lambda: is_locked(db), lambda locked: not locked, what="its lock is released")
    ended = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    with pytest.raises((*ended, asyncpg.AdminShutdownError)):
        await client.fetchval("SELECT 1")
    client.terminate()


@pytest.mark.parametrize(
    ("application", "moment", "patience"),
    [
        ("jobgate", between_statements, NO_PATIENCE),
        ("jobgate controller", prepared, timedelta(minutes=1)),
        ("jobgatekeeper", prepared, NO_PATIENCE),
        ("psql", prepared, NO_PATIENCE),
    ],
)
async def test_other_sessions_stay(
    db: Database,
    database_url: str,
    application: str,
    moment: Callable[[asyncpg.Connection], Awaitable[None]],
    patience: timedelta,
) -> None:
    client = await asyncpg.connect(database_url, server_settings={"application_name": application})
    async with client.transaction():
        await client.fetchval("SELECT pg_advisory_xact_lock($1)", LOCK)
        await moment(client)
        assert await end_stuck_sessions(db, patience) == 0
        assert await is_locked(db)
    await client.close()
