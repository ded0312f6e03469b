"""Cancellation that no error handler can swallow.

asyncio cancels a task by one exception at one `await`. The cancellation is lost when something below replaces that
exception by an error of its own (a driver whose clean-up fails, a TaskGroup whose child fails) and something above
handles the error and continues. The task still counts the request in `cancelling()`; both functions here read it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


def _requests() -> int:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # code without an event loop cannot be cancelled
        return 0
    return 0 if task is None else task.cancelling()


def rounds() -> Iterator[None]:
    """Yield for ever, to drive an endless loop: written `for _ in rounds` with a call, in place of `while True`.

    Raises:
        asyncio.CancelledError: the task was cancelled during a round, and the round handled that as an error.
    """
    before = _requests()
    while True:
        if _requests() > before:
            raise asyncio.CancelledError
        yield


@contextmanager
def cancellation_first() -> Iterator[None]:
    """Replace an error that leaves the block by CancelledError when the task was cancelled inside the block.

    Use it around a library that may answer a cancellation with an error. A `finally` of a task that is being cancelled
    already is not affected: only requests that arrive inside the block count.
    """
    before = _requests()
    try:
        yield
    except Exception as error:
        if _requests() > before:
            raise asyncio.CancelledError from error
        raise
