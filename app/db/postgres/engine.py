"""Pools of PostgreSQL connections with timeouts. JSON columns are Python values.

Every wait for the server has a timeout: statements, roll-backs, and the return of a connection. A connection in an
unknown state is dropped, and the server ends its transaction.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, Self, TypeAlias

import asyncpg
import msgspec
import structlog
from typing_extensions import override

from app.base.instruments import expose
from app.db.postgres import metrics
from app.db.postgres.errors import TranslatedErrors
from app.db.postgres.timeouts import DatabaseTimeouts
from app.fairness.fair_slots import FairSlots
from app.fairness.share import caller

log = structlog.get_logger(__name__)

# A connection of a pool. asyncpg has no type annotations.
Connection: TypeAlias = Any

_DRIVER_PREFIX = "postgresql+asyncpg://"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# A plan for unknown values would not use an index for a prefix.
_SNAPSHOT_BY_INDEX = (
    f"{_SNAPSHOT}; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; "
    "SET LOCAL enable_bitmapscan = off; SET LOCAL plan_cache_mode = force_custom_plan"
)
# Where statistics are older than very many rows, a nested loop compares each row of one side with each of the other.
_SNAPSHOT_BY_HASH = f"{_SNAPSHOT}; SET LOCAL enable_nestloop = off"
# The binary format of jsonb is a version byte and then the text.
_JSONB_VERSION = b"\x01"
# Seconds. A server that is alive answers a roll-back, a CancelRequest or the end of a session within milliseconds.
_RELEASE_SECONDS = 1.0
_CLOSE_SECONDS = 2.0
# Every caller that waits is a request or a task of this process, and the limits of these are lower.
_MAX_WAITING = 1_000_000


def driver_url(url: str) -> str:
    """Return the URL in the form that asyncpg accepts. SQLAlchemy's form is converted."""
    return "postgresql://" + url.removeprefix(_DRIVER_PREFIX) if url.startswith(_DRIVER_PREFIX) else url


def session_settings(timeouts: DatabaseTimeouts, application: str) -> dict[str, str]:
    return {
        # `app.db.postgres.stuck_sessions` finds the sessions of all processes by the beginning of this name.
        "application_name": application,
        "statement_timeout": _milliseconds(timeouts.statement),
        "lock_timeout": _milliseconds(timeouts.lock),
        "idle_in_transaction_session_timeout": _milliseconds(timeouts.idle_in_transaction),
        "timezone": "UTC",
        "jit": "off",  # the statements are short: compiling one takes longer than running it
    }


def _milliseconds(seconds: float) -> str:
    # 0 would disable the timeout.
    return str(max(1, round(seconds * 1000)))


class _Connection(asyncpg.Connection):
    """Closes within _CLOSE_SECONDS and raises no errors, because the pool closes connections in the background."""

    __slots__ = ()

    @override
    async def close(self, *, timeout: float | None = None) -> None:
        try:
            await super().close(timeout=min(timeout or _CLOSE_SECONDS, _CLOSE_SECONDS))
        except Exception as error:  # noqa: BLE001  asyncpg has aborted the connection
            log.info("database.connection_dropped", error=repr(error))


class Database:
    """A pool of connections. Callers that must not wait for each other use separate pools, which `name` tells apart."""

    def __init__(self, pool: Any, name: str, url: str, timeouts: DatabaseTimeouts) -> None:
        self._pool = pool
        self._timeouts = timeouts
        self._slots = FairSlots(pool.get_max_size(), _MAX_WAITING)
        self.url = url
        self._exposed = ExitStack()
        self._exposed.enter_context(
            expose(
                {
                    metrics.POOL_LIMIT: lambda: {(name,): pool.get_max_size()},
                    metrics.POOL_OPEN: lambda: {(name,): pool.get_size()},
                    metrics.POOL_IN_USE: lambda: {(name,): self.connections_in_use},
                    metrics.POOL_WAITING: lambda: {(name,): self._slots.waiting},
                }
            )
        )

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        pool_size: int = 10,
        min_size: int = 1,
        timeouts: DatabaseTimeouts | None = None,
        name: str = "requests",
        max_kept_jobs: int = 0,
    ) -> Self:
        """Open a pool. Its `name` is part of the name of its sessions, and a label of its metrics.

        With `max_kept_jobs`, its sessions refuse to pin more jobs of one namespace.

        Raises:
            DatabaseUnavailable: the server does not answer.
        """
        timeouts = timeouts or DatabaseTimeouts()
        with TranslatedErrors():
            pool = await asyncpg.create_pool(
                driver_url(url),
                # asyncpg refuses a minimum above the maximum.
                min_size=min(min_size, pool_size),
                max_size=pool_size,
                init=_prepare,
                reset=_keep,
                connection_class=_Connection,
                timeout=timeouts.connect,
                command_timeout=timeouts.statement + timeouts.silence,
                # A trigger reads the last one.
                server_settings=session_settings(timeouts, f"jobgate {name}")
                | {"jobgate.max_kept_jobs": str(max_kept_jobs)},
            )
        return cls(pool, name, url, timeouts)

    async def close(self) -> None:
        """Close every connection. Connections still in use after _CLOSE_SECONDS are dropped."""
        self._exposed.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._pool.close()
        except Exception as error:  # noqa: BLE001  asyncpg has terminated the pool
            log.warning("database.connections_dropped", error=repr(error))

    @property
    def acquire_timeout(self) -> float:
        """Seconds that a caller waits for a free connection."""
        return self._timeouts.acquire

    @property
    def connections_in_use(self) -> int:
        """The number of connections that callers hold."""
        return int(self._pool.get_size() - self._pool.get_idle_size())

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """Yield a connection without a transaction: each statement commits by itself.

        Raises:
            DatabaseUnavailable: no connection was free in time, or the server did not answer.
        """
        # Around the caller's block too, so that the errors of its statements are translated.
        with TranslatedErrors():
            connection = await self._acquire()
            try:
                yield connection
            except TimeoutError:
                # The server does not answer on this connection. The idle ones go to the same server: replace them.
                await self._pool.expire_connections()
                raise
            finally:
                await self._release(connection)

    async def _acquire(self) -> Connection:
        """Return a connection when one is free. Callers take turns: one with many requests does not delay others."""
        async with asyncio.timeout(self._timeouts.acquire):
            await self._slots.take(caller())
            try:
                return await self._pool.acquire()  # it waits only for a connection that is new or is being returned
            except BaseException:
                self._slots.release()
                raise

    @asynccontextmanager
    async def begin(self, start: str = "BEGIN") -> AsyncIterator[Connection]:
        """Yield a connection in a transaction. It commits at the end of the block and rolls back on an error.

        `start` begins the transaction. Further statements in it, without parameters, share its round trip.
        """
        async with self.read() as connection:
            try:
                await connection.execute(start)
                yield connection
                await connection.execute("COMMIT")
            # Also on cancellation: the connection must not return to the pool within the transaction.
            except BaseException:
                await _undo(connection)
                raise

    @asynccontextmanager
    async def snapshot(self, *, by_index: bool = False, by_hash: bool = False) -> AsyncIterator[Connection]:
        """Yield a connection in a read-only transaction whose statements see the same snapshot.

        With `by_index`, they read rows in the order of an index where one has it; with `by_hash`, they join tables
        without nested loops. Statistics that are wrong or old cannot make the planner read and sort a table, or compare
        all rows of two tables, in place of that.
        """
        start = _SNAPSHOT_BY_INDEX if by_index else _SNAPSHOT_BY_HASH if by_hash else _SNAPSHOT
        async with self.begin(start) as connection:
            yield connection

    async def _release(self, connection: Connection) -> None:
        """Return a connection to the pool. asyncpg terminates it if that takes longer than _RELEASE_SECONDS."""
        try:
            await self._pool.release(connection, timeout=_RELEASE_SECONDS)
        except Exception as error:  # noqa: BLE001  the result of the caller does not depend on it
            log.info("database.connection_dropped", error=repr(error))
        finally:
            self._slots.release()


async def _undo(connection: Connection) -> None:
    """Roll back. If that fails or takes too long, drop the connection; the server then rolls back."""
    try:
        async with asyncio.timeout(_RELEASE_SECONDS):
            await connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001  the error that led here is the one to report
        _drop(connection)
    # A roll-back that was cancelled leaves the connection in an unknown state.
    except BaseException:
        _drop(connection)
        raise


def _drop(connection: Connection) -> None:
    """Close a connection without waiting for the server, unless the server has closed it already."""
    with suppress(asyncpg.InterfaceError):  # the pool has taken a closed connection back
        connection.terminate()


async def _keep(_: Connection) -> None:
    """Reset nothing when a connection is returned: no statement changes the session, and a reset is a round trip."""


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encode_jsonb, decoder=_decode_jsonb, format="binary"
    )
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=msgspec.json.encode, decoder=msgspec.json.decode, format="binary"
    )


def _encode_jsonb(value: Any) -> bytes:
    return _JSONB_VERSION + msgspec.json.encode(value)


def _decode_jsonb(value: bytes) -> Any:
    return msgspec.json.decode(value[1:])
