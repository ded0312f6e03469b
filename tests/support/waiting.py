"""Tests wait for conditions with `until`. No test sleeps for synchronization."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from typing import Any, TypeVar, overload

T = TypeVar("T")

# A wait ends at most half its length too late, and never more than the longest pause.
_FIRST, _GROWTH, _LONGEST = 0.02, 1.5, 0.25


@overload
async def until(
    read: Callable[[], Awaitable[T | None]],
    wanted: Callable[[T], object] = ...,
    *,
    what: str | Callable[[], str] = ...,
    within: float = ...,
    every: float | None = ...,
) -> T: ...
@overload
async def until(
    read: Callable[[], T | None],
    wanted: Callable[[T], object] = ...,
    *,
    what: str | Callable[[], str] = ...,
    within: float = ...,
    every: float | None = ...,
) -> T: ...
async def until(
    read: Callable[[], Any],
    wanted: Callable[[Any], object] = bool,
    *,
    what: str | Callable[[], str] = "",
    within: float = 60,
    every: float | None = None,
) -> Any:
    """Read again and again, and return the first value that is wanted: by default, the first that is true.

    The pauses between reads grow, so that a long wait costs little. A test that has to catch a short state, or whose
    reads bring about what it waits for, gives a fixed pause `every`.

    `read` may be asynchronous. None means that there is no value yet, so it is never wanted. At the deadline the test
    fails, and its message contains the last value and `what` was awaited. If `what` is a function, its result is shown.
    """
    __tracebackhide__ = True  # pytest shows the line of the test that waits
    last: Any = None
    pauses = _growing() if every is None else repeat(every)
    deadline = asyncio.timeout(within)
    try:
        async with deadline:
            while True:
                value = read()
                last = await value if inspect.isawaitable(value) else value
                if last is not None and wanted(last):
                    return last
                await asyncio.sleep(next(pauses))
    except TimeoutError:
        if not deadline.expired():  # raised by `read` itself
            raise
    awaited = what() if callable(what) else what or getattr(read, "__qualname__", repr(read))
    raise AssertionError(f"after {within:g} s the last value is {last!r}; awaited: {awaited}")


def _growing() -> Iterator[float]:
    pause = _FIRST
    while True:
        yield pause
        pause = min(pause * _GROWTH, _LONGEST)
