"""Runs file system work in threads, with cancellation that waits for the work to stop."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - a signal, not an error
    """The work has stopped because it was cancelled."""


class Stop:
    """A flag that long work checks between two steps."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise Stopped if the work was cancelled."""
        if self._event.is_set():
            raise Stopped


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Run work in a thread. On cancellation, signal the work to stop, and wait for it.

    A thread that outlived its job could still remove files when the next job runs.
    """
    stop = Stop()
    future = asyncio.get_running_loop().run_in_executor(None, work, stop)
    try:
        # Shielded: a cancelled future would be forgotten while its thread goes on.
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({future})
        future.exception()  # retrieved here, or asyncio would log it
        raise


async def run_with_background(background: Coroutine[Any, Any, None], work: Awaitable[T]) -> T:
    """Return the outcome of the work, with a background task that runs as long as the work does.

    If the background task fails, the work is cancelled and its error is raised.
    """
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
        # A failure of the background task after the work has succeeded does not matter.
        failed = failed or (None if outcome else errors.exceptions[0])
    if failed is not None:
        raise failed
    return outcome[0]
