"""Connections come with timeouts, errors with our words, and a server that went away is found again."""

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock, Mock, patch

import asyncpg
import pytest

from app.db.installation import leases
from app.db.jobs.rows import STORED_JOBS
from app.db.objects import resources
from app.db.postgres import migrations
from app.db.postgres.engine import Database, driver_url
from app.db.postgres.errors import (
    DatabaseContended,
    DatabaseRefused,
    DatabaseUnavailable,
    NotStorable,
    TranslatedErrors,
)
from app.db.postgres.timeouts import DatabaseTimeouts
from app.embedded_postgres.server import EmbeddedPostgres
from app.fairness.share import CURRENT, FairShares
from tests.db.factories import new_job, submitted
from tests.fairness.test_fair_memory import Client
from tests.support.telemetry.metrics import value
from tests.support.waiting import until

SHORT = DatabaseTimeouts(statement=0.2, lock=0.1, idle_in_transaction=0.2, acquire=0.3)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql+asyncpg://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u@/d?host=/run", "postgresql://u@/d?host=/run"),
        ("postgres://u@h:1/d", "postgres://u@h:1/d"),
    ],
)
def test_both_spellings_of_a_url_are_read(url: str, expected: str) -> None:
    assert driver_url(url) == expected


async def test_every_connection_has_its_timeouts(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=3, timeouts=SHORT)
    for _ in range(3):
        async with db.read() as one, db.read() as two, db.read() as three:
            for connection in (one, two, three):
                shown = [
                    await connection.fetchval(f"SHOW {name}")
                    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "timezone")
                ]
                assert shown == ["200ms", "100ms", "200ms", "UTC"]
    await db.close()


async def test_a_caller_with_many_reads_does_not_delay_another(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=1)
    shares, order = FairShares(), list[str]()

    async def read(address: str) -> None:
        CURRENT.set(shares.share(address, None, Client()))
        async with db.read() as connection:
            order.append(address)
            await connection.execute("SELECT 1")

    async with asyncio.TaskGroup() as group:
        for address in ["many"] * 20 + ["one"]:
            group.create_task(read(address))
    assert order.index("one") == 2
    await db.close()


async def test_a_slow_statement_is_unavailable(database_url: str) -> None:
    db = await Database.open(database_url, timeouts=DatabaseTimeouts(statement=0.2))
    with pytest.raises(DatabaseUnavailable):
        async with db.read() as connection:
            await connection.execute("SELECT pg_sleep(60)")
    await db.close()


async def test_a_value_that_does_not_fit_is_not_storable(db: Database) -> None:
    with pytest.raises(NotStorable) as refused:
        async with db.read() as connection:
            await connection.fetchval("SELECT $1::int", 2**40)
    assert str(2**40) not in str(refused.value), "the message does not repeat the value"


@pytest.mark.parametrize("statement", ["SELECT $1::int", "SELECT $1::int + $2::int"])
async def test_a_wrong_number_of_arguments_is_a_bug_and_no_outage(db: Database, statement: str) -> None:
    """A client that is told to repeat the request would do so for ever."""
    with pytest.raises(asyncpg.InterfaceError, match="the server expects"):
        async with db.begin() as connection:
            await connection.fetchval(statement, 1, 2, 3)
    async with db.read() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_connection_that_was_lost_is_unavailable(db: Database) -> None:
    async with db.read() as lost:
        lost.terminate()
        with pytest.raises(DatabaseUnavailable), TranslatedErrors():
            await lost.fetchval("SELECT 1")
    await db.close()
    with pytest.raises(DatabaseUnavailable):
        async with db.read():
            pass


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot perform operation: connection is closed", DatabaseUnavailable),
        ("cannot perform operation: another operation is cancelling", DatabaseUnavailable),
        ("cannot perform operation: another operation is in progress", DatabaseUnavailable),
        ("cannot call Connection.fetch(): connection has been released back to the pool", DatabaseUnavailable),
        ("pool is closing", DatabaseUnavailable),
        ("unsupported authentication method requested by the server: 'gss'", DatabaseRefused),
        ("could not verify server signature for SCRAM authentication: scram-sha-256", DatabaseRefused),
        ("cannot use custom codec on type public.t: it is neither a scalar type nor a composite type", None),
    ],
)
def test_errors_of_the_driver_are_told_apart_by_their_messages(message: str, expected: type[Exception] | None) -> None:
    with pytest.raises(expected or asyncpg.InterfaceError) as raised, TranslatedErrors():
        raise asyncpg.InterfaceError(message)
    assert type(raised.value) is (expected or asyncpg.InterfaceError)


async def test_a_locked_row_is_contended(database_url: str) -> None:
    db = await Database.open(database_url, timeouts=DatabaseTimeouts(lock=0.1))
    await leases.acquire(db, "x", "holder", 60)
    async with db.begin() as holder:
        await holder.execute("SELECT 1 FROM leases FOR UPDATE")
        with pytest.raises(DatabaseContended):
            async with db.begin() as connection:
                await connection.execute("SELECT 1 FROM leases FOR UPDATE")
    await db.close()


async def test_a_pool_without_a_free_connection_is_unavailable(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=1, timeouts=DatabaseTimeouts(acquire=0.1))
    async with db.read():
        with pytest.raises(DatabaseUnavailable):
            async with db.read():
                pass
    await db.close()


async def test_a_caller_that_gets_no_connection_gives_its_turn_back(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=1, timeouts=DatabaseTimeouts(acquire=0.1))
    for failure in (asyncio.Event().wait, AsyncMock(side_effect=OSError)):
        with patch.object(db, "_pool", Mock(acquire=failure)), pytest.raises(DatabaseUnavailable):
            await _read_once(db)
    await _read_once(db)
    await db.close()


async def test_metrics_show_the_use_of_each_pool(database_url: str) -> None:
    def shown(state: str, pool: str = "made up") -> float:
        return value(f"jobgate_database_pool_{state}", pool=pool)

    db = await Database.open(database_url, pool_size=2, name="made up")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group, db.read() as one, db.read():
        assert (shown("max_connections"), shown("connections"), shown("connections_in_use")) == (2, 2, 2)
        assert await one.fetchval("SHOW application_name") == "jobgate made up"
        waiting = group.create_task(_read_once(db))
        await until(lambda: shown("waiting"), lambda count: count == 1, what="a caller that waits", within=60)
        await one.execute("SELECT 1")
    assert waiting.done()
    assert (shown("connections_in_use"), shown("waiting")) == (0, 0)
    await db.close()
    assert shown("max_connections") == 0


async def _read_once(db: Database) -> None:
    async with db.read() as connection:
        await connection.execute("SELECT 1")


async def test_a_transaction_that_does_nothing_is_ended(database_url: str) -> None:
    db = await Database.open(database_url, timeouts=DatabaseTimeouts(idle_in_transaction=0.2))
    with pytest.raises(DatabaseUnavailable):
        await forget_a_transaction(db)
    async with db.read() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await db.close()


async def test_an_error_in_a_transaction_is_raised_also_if_the_server_has_ended_its_session(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_without_a_session(db)
    async with db.read() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def fail_without_a_session(db: Database) -> None:
    async with db.begin() as connection:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        async with db.read() as other:
            await other.execute("SELECT pg_terminate_backend($1)", pid)
        await ended.wait()
        raise ZeroDivisionError


async def forget_a_transaction(db: Database) -> None:
    """The server ends a transaction whose client does nothing for too long."""
    async with db.begin() as connection:
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        async with db.read() as other:
            sessions = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
            await until(lambda: other.fetchval(sessions, pid), lambda count: count == 0, what="its session has ended")
        await connection.execute("SELECT 1")


async def test_a_transaction_left_by_an_error_leaves_nothing(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_after_a_write(db)
    async with db.snapshot() as connection:
        assert await connection.fetchval("SELECT last FROM feed") == 0


async def fail_after_a_write(db: Database) -> None:
    async with db.begin() as connection:
        await connection.execute("UPDATE feed SET last = 99")
        raise ZeroDivisionError


async def test_a_snapshot_stays_at_its_moment(db: Database) -> None:
    async with db.snapshot() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0
        await submitted(db, new_job())
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0


async def test_the_pool_survives_a_restart_of_the_server(postgres_directory: Path) -> None:
    job = new_job()
    async with EmbeddedPostgres(postgres_directory) as server:
        await asyncio.to_thread(migrations.migrate, server.url)
        db = await Database.open(server.url, pool_size=3)
        await submitted(db, job)
        await server.stop()
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                await resources.get(db, STORED_JOBS, job.uid)
        await server.start()
        await until(lambda: found(db, job.uid), what="the job is read")
        await db.close()


async def found(db: Database, uid: object) -> bool:
    try:
        return await resources.get(db, STORED_JOBS, uid) is not None  # type: ignore[arg-type]
    except DatabaseUnavailable:
        return False
