"""When a server measures its cache."""

import asyncio
from typing import Any

from cacheserver.options import CacheInfo
from cacheserver.server.status_loop import CacheInfoLoop

LONG = 3600.0


class Looks:
    """An engine and a store that count measurements. A measurement ends when the test allows it."""

    def __init__(self) -> None:
        self.begun = 0
        self.saved: list[str] = []
        self.changed = asyncio.Condition()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.breaks = False

    async def create_cache_status(self) -> CacheInfo:
        self.begun += 1
        number = self.begun
        await self._tell()
        await self.goes_on.wait()
        if self.breaks:
            raise OSError("no such volume")
        return CacheInfo(total_size=str(number))

    def save_status(self, status: CacheInfo) -> None:
        self.saved.append(status.total_size)

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(lambda: self.begun >= count)

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()


async def watching(looks: Any, *pauses: float) -> tuple[CacheInfoLoop, asyncio.Task[None]]:
    watch = CacheInfoLoop(looks, looks, pauses)
    return watch, asyncio.get_running_loop().create_task(watch.run())


async def test_the_short_pauses_start_again_after_a_job() -> None:
    looks = Looks()
    watch, task = await watching(looks, 0.01, LONG)
    await looks.until_begun(2)
    for before in (2, 5):  # one look by the job, two more before the next long pause
        await watch.after_job()
        await looks.until_begun(before + 3)
    task.cancel()
    assert looks.begun == 8


async def test_a_job_waits_for_a_measurement_that_started_after_its_end() -> None:
    looks = Looks()
    looks.goes_on.clear()
    watch, task = await watching(looks, LONG)
    await looks.until_begun(1)
    ended = asyncio.get_running_loop().create_task(watch.after_job())
    looks.goes_on.set()
    await ended
    task.cancel()
    assert looks.saved[:2] == ["1", "2"]


async def test_a_failed_measurement_ends_neither_job_nor_loop() -> None:
    looks = Looks()
    looks.breaks = True
    watch, task = await watching(looks, 0.01, LONG)
    await watch.after_job()
    looks.breaks = False
    await watch.after_job()
    assert looks.saved
    assert not task.done()
    task.cancel()
