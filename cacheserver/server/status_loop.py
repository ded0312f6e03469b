"""Measures the cache regularly: often at first and after each job, then at every interval."""

import asyncio
import logging
from collections.abc import Sequence

from cacheserver.engine.cache_engine import CacheEngine
from cacheserver.server.store import FileStore

log = logging.getLogger(__name__)


class CacheInfoLoop:
    """Saves a cache status after every pause. `pauses` are in seconds; the last one repeats."""

    def __init__(self, store: FileStore, engine: CacheEngine, pauses: Sequence[float]) -> None:
        self._store = store
        self._engine = engine
        self._pauses = pauses
        self._lock = asyncio.Lock()
        self._restart = asyncio.Event()

    async def run(self) -> None:
        """Measure until cancelled."""
        count = 0
        while True:
            await self._measure()
            pause = self._pauses[min(count, len(self._pauses) - 1)]
            count += 1
            try:
                async with asyncio.timeout(pause):
                    await self._restart.wait()
            except TimeoutError:
                continue
            self._restart.clear()
            count = 0

    async def after_job(self) -> None:
        """Save a status that is newer than the job that has just ended, and start again with the short pauses.

        A file system may show new files late, so one measurement is not enough.
        """
        await self._measure()
        self._restart.set()

    async def _measure(self) -> None:
        """Measure once. The lock orders the measurements: one that began earlier must not overwrite a newer status."""
        async with self._lock:
            try:
                self._store.save_status(await self._engine.create_cache_status())
            except Exception:  # jobs do not depend on it, and the next measurement may succeed
                log.exception("the cache cannot be measured")
