"""Cancellation that no error handler can swallow.

asyncio cancels a task by one exception at one `await`. The cancellation is lost when something below replaces that
exception by an error of its own (a driver whose clean-up fails, a TaskGroup whose child fails) and something above
handles the error and continues. The task still counts the request in `cancelling()`, which the functions here read.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from typing_extensions import override


def _requests() -> int:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # code without an event loop cannot be cancelled
        return 0
    return 0 if task is None else task.cancelling()


if sys.version_info >= (3, 13):
    TaskGroup = asyncio.TaskGroup
else:

    class TaskGroup(asyncio.TaskGroup):
        """A TaskGroup that leaves `cancelling()` as it was, as that of Python 3.13 does.

        Before, a child that fails while the parent waits for it at the end of the block leaves one request too many.
        """

        @override
        async def __aexit__(self, *exception: object) -> None:
            requested = self._parent_cancel_requested  # type: ignore[attr-defined]
            try:
                await super().__aexit__(*exception)  # type: ignore[arg-type]
            finally:
                if self._parent_cancel_requested and not requested:  # type: ignore[attr-defined]
                    self._parent_task.uncancel()  # type: ignore[attr-defined]


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
