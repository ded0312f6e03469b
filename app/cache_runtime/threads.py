"""File system work away from the event loop, which can be told to stop and is waited for."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - a signal to the one who cancelled
    """The work noticed that nobody wants it any more."""


class Stop:
    """Asked by long work between two steps."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        if self._event.is_set():
            raise Stopped


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Cancelled, it tells the work so and returns when that has ended: nothing goes on behind a job's back."""
    stop = Stop()
    future = asyncio.get_running_loop().run_in_executor(None, work, stop)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({future})
        future.exception()  # its end is ours; nobody else will ask
        raise


async def beside(background: Coroutine[Any, Any, None], work: Awaitable[T]) -> T:
    """The work's outcome, with the other going on meanwhile and not longer; if that fails, so does the work."""
    outcome: list[T] = []
    failed: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(background)
            try:
                outcome.append(await work)
            except Exception as error:  # noqa: BLE001 - raised below, unwrapped
                failed = error
            finally:
                task.cancel()
    except ExceptionGroup as errors:
        failed = failed or (None if outcome else errors.exceptions[0])
    if failed is not None:
        raise failed
    return outcome[0]
