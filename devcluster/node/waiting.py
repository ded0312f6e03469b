"""Waiting on asyncio events."""

import asyncio
import contextlib


async def wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Return once the event is set or the time has passed, whichever comes first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def wait_for_any(*events: asyncio.Event) -> None:
    """Return once one of the events is set."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(event.wait()) for event in events]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
