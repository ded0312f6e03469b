"""The processes that keep logs. Each announces itself, and learns which others live. All times are the database's."""

from datetime import timedelta
from typing import Final, NamedTuple

from app.db.postgres.engine import Database

_ANNOUNCE: Final = """
INSERT INTO log_keepers (id, expires_at, store_error) VALUES ($1, clock_timestamp() + $2::interval, $3)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, store_error = excluded.store_error
"""
_DELETE_EXPIRED: Final = "DELETE FROM log_keepers WHERE expires_at < clock_timestamp() - $1::interval"
_LIVE: Final = "SELECT id, store_error FROM log_keepers WHERE expires_at >= clock_timestamp() ORDER BY id"
_WITHDRAW: Final = "DELETE FROM log_keepers WHERE id = $1"


class LogKeeperRow(NamedTuple):
    """A process that keeps logs. `store_error` says why it cannot write to the store now."""

    id: str
    store_error: str | None


async def announce(db: Database, keeper: LogKeeperRow, seconds: float) -> None:
    """Announce a process for this time."""
    lasting = timedelta(seconds=seconds)
    async with db.read() as connection:
        await connection.execute(_ANNOUNCE, keeper.id, lasting, keeper.store_error)
        await connection.execute(_DELETE_EXPIRED, lasting)


async def withdraw(db: Database, keeper_id: str) -> None:
    """Announce that a process ends."""
    async with db.read() as connection:
        await connection.execute(_WITHDRAW, keeper_id)


async def live(db: Database) -> list[LogKeeperRow]:
    """Return the processes that keep logs now."""
    async with db.read() as connection:
        return [LogKeeperRow(*row) for row in await connection.fetch(_LIVE)]
