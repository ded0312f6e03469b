"""Whether the log store can be written. While it cannot, followers hold no text and wait; one probe tries for all."""

import asyncio
from typing import Final
from uuid import uuid4

import structlog

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import rounds
from app.domain.kept_logs.keys import probe_prefix
from app.log_store import LogStore, StoreUnavailable
from app.loops.logs import metrics

log = structlog.get_logger(__name__)

_BACKOFF: Final = ExponentialBackoff(first=0.5, longest=15.0)


class StoreHealth:
    """Writes objects, and remembers whether that works."""

    def __init__(self, store: LogStore, installation: str) -> None:
        self._store = store
        self._probe = f"{probe_prefix(installation)}{uuid4()}"
        self._works = asyncio.Event()
        self._works.set()
        self._has_failed = asyncio.Event()
        self.error: str | None = None
        """Why the store cannot be written; None if it can, as far as is known."""

    async def wait(self) -> None:
        """Wait until the store can be written."""
        await self._works.wait()

    async def put(self, name: str, data: bytes) -> None:
        """Write an object.

        Raises:
            StoreUnavailable: the store cannot be written now.
        """
        try:
            await self._store.put(name, data)
        except StoreUnavailable as error:
            self._note(error)
            raise

    async def run(self) -> None:
        """Find out when a store that has failed works again, until cancelled."""
        for _ in rounds():
            await self._has_failed.wait()
            failures = 0
            while self.error is not None:
                failures = _BACKOFF.count(failures)
                await asyncio.sleep(_BACKOFF.delay(failures))
                await self._try()

    def _note(self, error: StoreUnavailable) -> None:
        metrics.STORE_ERRORS.inc()
        if self.error is None:
            log.warning("log_store.unavailable", error=str(error))
        self.error = str(error)
        self._works.clear()
        self._has_failed.set()

    async def _try(self) -> None:
        try:
            await self._store.put(self._probe, b"")
            await self._store.delete([self._probe])
        except StoreUnavailable as error:
            self._note(error)
            return
        log.info("log_store.available")
        self.error = None
        self._has_failed.clear()
        self._works.set()
