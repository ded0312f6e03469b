"""Helpers that keep error handlers from swallowing a cancellation.

asyncio cancels a task by raising one exception at one `await`. The cancellation is lost if a callee replaces this
exception by another (a driver whose clean-up fails, a TaskGroup whose child fails) and a caller handles that error
and continues. `Task.cancelling()` still counts the cancellation; the functions of this module read that counter.

Rule: a handler `except*` never waits. Early versions of Python 3.11, such as 3.11.2, put a cancellation there into a
group, and the task ends as failed.
"""

import asyncio
import sys
from collections.abc import Iterator
from types import TracebackType

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
        """A TaskGroup that restores `cancelling()`, as the one of Python 3.13 does.

        In earlier versions, `cancelling()` stays one too high if a child fails while the parent waits for it at the end
        of the block.
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
    """Yield forever. An endless loop iterates over this in place of `while True`.

    Raises:
        asyncio.CancelledError: the task was cancelled during an iteration that handled the cancellation as an error.
    """
    before = _requests()
    while True:
        if _requests() > before:
            raise asyncio.CancelledError
        yield


class CancellationFirst:
    """Raises CancelledError in place of an error that leaves the block, if the task was cancelled inside the block.

    Use it around a library that may raise another error when cancelled. Cancellations from before the block do not
    count, so a `finally` of a cancelled task can use it.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _requests()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and _requests() > self._before:
            raise asyncio.CancelledError from error
