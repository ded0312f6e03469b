"""Pools of Postgres connections with timeouts, and JSON that goes in and out as Python values.

Nothing here waits for a server that does not answer longer than the timeouts say, neither a statement, nor a roll-back,
nor the return of a connection: a connection whose state is unknown is dropped, and the server ends its transaction.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import asyncpg
import msgspec
import structlog
from typing_extensions import override

from app.db.errors import translated

log = structlog.get_logger()

# asyncpg ships no types; a connection as a pool lends it.
Connection: TypeAlias = Any

_DRIVER_PREFIX = "postgresql+asyncpg://"
_JSONB_VERSION = b"\x01"
# Seconds. A server that is alive answers a roll-back, a CancelRequest or a goodbye within milliseconds.
_RELEASE_SECONDS = 1.0
_CLOSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTimeouts:
    """Seconds. Without them a request that went away, or a frozen server, would hold a connection for ever.

    `statement`, `lock` and `idle_in_transaction` are kept by the server. A server that has not answered `silence`
    seconds after the end of `statement` is taken for dead.
    """

    connect: float = 10.0
    acquire: float = 10.0
    statement: float = 10.0
    lock: float = 5.0
    idle_in_transaction: float = 10.0
    silence: float = 5.0

    @classmethod
    def of(cls, statement: float) -> Self:
        """The timeouts that go with the longest statement."""
        half = statement / 2
        return cls(
            connect=statement,
            acquire=statement,
            statement=statement,
            lock=half,
            idle_in_transaction=statement,
            silence=half,
        )


def driver_url(url: str) -> str:
    """The URL as asyncpg reads it; SQLAlchemy's spelling of the same is accepted too."""
    return "postgresql://" + url.removeprefix(_DRIVER_PREFIX) if url.startswith(_DRIVER_PREFIX) else url


def session_settings(timeouts: DatabaseTimeouts, application: str) -> dict[str, str]:
    return {
        "application_name": application,
        "statement_timeout": _milliseconds(timeouts.statement),
        "lock_timeout": _milliseconds(timeouts.lock),
        "idle_in_transaction_session_timeout": _milliseconds(timeouts.idle_in_transaction),
        "timezone": "UTC",
        "jit": "off",  # our statements are short: compiling one would take longer than running it
    }


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))


class _Connection(asyncpg.Connection):
    """A connection whose orderly end is bounded, and fails quietly: the pool closes some in the background."""

    __slots__ = ()

    @override
    async def close(self, *, timeout: float | None = None) -> None:
        try:
            await super().close(timeout=min(timeout or _CLOSE_SECONDS, _CLOSE_SECONDS))
        except Exception as error:  # noqa: BLE001  asyncpg has aborted the connection by now
            log.info("database.connection_dropped", error=repr(error))


class Database:
    """One pool. Uses that must not wait for each other have a Database each."""

    def __init__(self, pool: Any, url: str, timeouts: DatabaseTimeouts) -> None:
        self._pool = pool
        self._timeouts = timeouts
        self.url = url

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        pool_size: int = 10,
        min_size: int = 1,
        timeouts: DatabaseTimeouts | None = None,
        application: str = "jobgate",
    ) -> Self:
        """Connect.

        Raises:
            DatabaseUnavailable: no server answers there.
        """
        timeouts = timeouts or DatabaseTimeouts()
        with translated():
            pool = await asyncpg.create_pool(
                driver_url(url),
                min_size=min(min_size, pool_size),
                max_size=pool_size,
                init=_prepare,
                reset=_keep,
                connection_class=_Connection,
                timeout=timeouts.connect,
                command_timeout=timeouts.statement + timeouts.silence,
                server_settings=session_settings(timeouts, application),
            )
        return cls(pool, url, timeouts)

    async def close(self) -> None:
        """Close every connection; drop those whose server does not answer, or that are still in use, after a while."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._pool.close()
        except Exception as error:  # noqa: BLE001  asyncpg has terminated the pool by now
            log.warning("database.connections_dropped", error=repr(error))

    @property
    def connections_in_use(self) -> int:
        """Connections that are open and lent."""
        return int(self._pool.get_size() - self._pool.get_idle_size())

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """A connection on which every statement stands alone.

        Raises:
            DatabaseUnavailable: no connection was free in time, or the server did not answer.
        """
        with translated():
            connection = await self._pool.acquire(timeout=self._timeouts.acquire)
            try:
                yield connection
            except TimeoutError:
                # The server is silent on this connection. The idle ones are as old: nobody should wait for them too.
                await self._pool.expire_connections()
                raise
            finally:
                await self._give_back(connection)

    @asynccontextmanager
    async def begin(self, **options: Any) -> AsyncIterator[Connection]:
        """A transaction: committed at the end of the block, rolled back when it is left by an error."""
        async with self.read() as connection:
            transaction = connection.transaction(**options)
            try:
                await transaction.start()
                yield connection
                await transaction.commit()
            except BaseException:
                await _undo(connection, transaction)
                raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A read-only transaction all of whose statements see one moment."""
        async with self.begin(isolation="repeatable_read", readonly=True) as connection:
            yield connection

    async def _give_back(self, connection: Connection) -> None:
        """Return a connection to the pool. asyncpg terminates one that cannot be returned in time."""
        try:
            await self._pool.release(connection, timeout=_RELEASE_SECONDS)
        except Exception as error:  # noqa: BLE001  what was done on the connection counts, not how it ended
            log.info("database.connection_dropped", error=repr(error))


async def _undo(connection: Connection, transaction: Any) -> None:
    """Roll back; drop the connection when that is not possible at once, and the server rolls back."""
    try:
        async with asyncio.timeout(_RELEASE_SECONDS):
            await transaction.rollback()
    except Exception:  # noqa: BLE001  the error that led here is the one to report
        connection.terminate()
    except BaseException:
        connection.terminate()
        raise


async def _keep(_: Connection) -> None:
    """Nothing here changes a session, so there is nothing to reset and no round trip to pay for it."""


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
