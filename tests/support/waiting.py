"""Tests wait for conditions with `until`. No test sleeps for synchronization."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def until(
    read: Callable[[], Awaitable[T | None]],
    wanted: Callable[[T], object] = ...,
    *,
    what: str | Callable[[], str] = ...,
    within: float = ...,
    every: float = ...,
) -> T: ...
@overload
async def until(
    read: Callable[[], T | None],
    wanted: Callable[[T], object] = ...,
    *,
    what: str | Callable[[], str] = ...,
    within: float = ...,
    every: float = ...,
) -> T: ...
async def until(
    read: Callable[[], Any],
    wanted: Callable[[Any], object] = bool,
    *,
    what: str | Callable[[], str] = "",
    within: float = 60,
    every: float = 0.02,
) -> Any:
    """Read every few milliseconds, and return the first value that is wanted: by default, the first that is true.

    `read` may be asynchronous. None means that there is no value yet, so it is never wanted. At the deadline the test
    fails, and its message contains the last value and `what` was awaited. If `what` is a function, its result is shown.
    """
    __tracebackhide__ = True  # pytest shows the line of the test that waits
    last: Any = None
    deadline = asyncio.timeout(within)
    try:
        async with deadline:
            while True:
                value = read()
                last = await value if inspect.isawaitable(value) else value
                if last is not None and wanted(last):
                    return last
                await asyncio.sleep(every)
    except TimeoutError:
        if not deadline.expired():  # raised by `read` itself
            raise
    awaited = what() if callable(what) else what or getattr(read, "__qualname__", repr(read))
    raise AssertionError(f"after {within:g} s the last value is {last!r}; awaited: {awaited}")
