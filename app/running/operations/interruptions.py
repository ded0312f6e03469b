"""How a signal ends a long command: the present batch is finished, or abandoned if that takes too long."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from app.base.cancellation import TaskGroup

INTERRUPTED: Final = 1
"""The exit status if a signal has ended a command before its work was complete."""
LAST_SECONDS: Final = 30.0
"""Within this time after a signal, the process ends even if a disk hangs. A kubelet grants as much by default."""
_GRACE: Final = 5.0  # seconds for a batch; an export of a hundred jobs and a transaction of a purge take less


async def finish_or_abandon(work: Awaitable[object], stop: asyncio.Event, *, grace: float = _GRACE) -> None:
    """Do the work, which ends by itself after its present batch when `stop` is set. Cancel it `grace` seconds later."""
    limit = asyncio.timeout(None)
    try:
        async with limit, TaskGroup() as group:
            watching = group.create_task(_limit_when(stop, limit, grace))
            await work
            watching.cancel()
    except TimeoutError:
        if not limit.expired():
            raise


async def _limit_when(stop: asyncio.Event, limit: asyncio.Timeout, grace: float) -> None:
    await stop.wait()
    limit.reschedule(asyncio.get_running_loop().time() + grace)
