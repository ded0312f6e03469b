"""When a server looks at its cache: often while a set fills and after each job, else every interval."""

import asyncio
import logging
from collections.abc import Sequence

from app.cache_runtime.engine import CacheEngine
from app.cache_runtime.store import Store

log = logging.getLogger(__name__)


class CacheWatch:
    """Saves a status at each look. `pauses` are the seconds after the first looks; the last of them stays."""

    def __init__(self, store: Store, engine: CacheEngine, pauses: Sequence[float]) -> None:
        self._store = store
        self._engine = engine
        self._pauses = pauses
        self._one_at_a_time = asyncio.Lock()
        self._begin_again = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        looks = 0
        while True:
            await self._look()
            pause = self._pauses[min(looks, len(self._pauses) - 1)]
            looks += 1
            try:
                async with asyncio.timeout(pause):
                    await self._begin_again.wait()
            except TimeoutError:
                continue
            self._begin_again.clear()
            looks = 0

    async def after_job(self) -> None:
        """Save a status that is newer than the job that has just ended, and look often for a while.

        A file system may tell of new files late, so one look is not enough.
        """
        await self._look()
        self._begin_again.set()

    async def _look(self) -> None:
        """A look that has begun before is waited for: what it saves is older."""
        async with self._one_at_a_time:
            try:
                self._store.save_status(await self._engine.create_cache_status())
            except Exception:  # the next look may go well, and jobs do not depend on it
                log.exception("the cache cannot be looked at")
