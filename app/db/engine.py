"""One pool of Postgres connections, each with timeouts of its own, and JSON that goes in and out as Python values."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import asyncpg
import msgspec

from app.db.errors import translated

# asyncpg ships no types; a connection as a pool lends it.
Connection: TypeAlias = Any

_DRIVER_PREFIX = "postgresql+asyncpg://"
_JSONB_VERSION = b"\x01"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTimeouts:
    """Seconds. Without them a request that went away, or a frozen server, would hold a connection for ever."""

    connect: float = 10.0
    acquire: float = 10.0
    statement: float = 10.0
    lock: float = 5.0
    idle_in_transaction: float = 10.0


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


class Database:
    """Owns the pool. All connections of a process come from here, the listener's excepted."""

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
                timeout=timeouts.connect,
                # The server ends a statement itself; this is for a server that has stopped answering.
                command_timeout=timeouts.statement + 5.0,
                server_settings=session_settings(timeouts, application),
            )
        return cls(pool, url, timeouts)

    async def close(self) -> None:
        with translated():
            await self._pool.close()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """A connection on which every statement stands alone."""
        with translated():
            async with self._pool.acquire(timeout=self._timeouts.acquire) as connection:
                yield connection

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Connection]:
        """A transaction: committed at the end of the block, rolled back when it is left by an error."""
        async with self.read() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A read-only transaction all of whose statements see one moment."""
        async with self.read() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
            yield connection


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
