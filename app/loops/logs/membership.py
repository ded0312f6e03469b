"""Which processes keep logs now. This one announces itself."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import uuid4

import structlog

from app.base.cancellation import rounds
from app.db import log_keepers
from app.db.log_keepers import LogKeeperRow
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.kept_logs.sharing import owner_of

log = structlog.get_logger(__name__)

_ANNOUNCEMENTS: Final = 3  # within the time for which one holds, so that two may fail


class Membership:
    """Announces this process, and shares work with the others.

    `store_error` returns why the store cannot be written. `on_change` is called when a process comes or goes.
    """

    def __init__(
        self, db: Database, *, seconds: float, store_error: Callable[[], str | None], on_change: Callable[[], None]
    ) -> None:
        self._db = db
        self._seconds = seconds
        self._store_error = store_error
        self._on_change = on_change
        self.id = str(uuid4())
        self._members: frozenset[str] = frozenset()

    def owns(self, key: str) -> bool:
        """Return whether the work with this key belongs to this process."""
        return owner_of(key, self._members) == self.id

    async def run(self) -> None:
        """Announce this process until cancelled. While PostgreSQL does not answer, the shares stay."""
        try:
            for _ in rounds():
                try:
                    await self._announce()
                except DatabaseUnavailable as error:
                    log.warning("log_keeper.database_unavailable", error=str(error))
                await asyncio.sleep(self._seconds / _ANNOUNCEMENTS)
        finally:
            with suppress(DatabaseUnavailable):
                await log_keepers.withdraw(self._db, self.id)

    async def _announce(self) -> None:
        await log_keepers.announce(self._db, LogKeeperRow(self.id, self._store_error()), self._seconds)
        members = frozenset(row.id for row in await log_keepers.live(self._db)) | {self.id}
        if members != self._members:
            self._members = members
            log.info("log_keeper.members", count=len(members))
            self._on_change()
