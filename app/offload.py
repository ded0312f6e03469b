"""Long computations for requests, in a few threads beside the event loop, which goes on with other requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

# They share one interpreter lock with the loop: two of them leave it a third of the time, and more would not be faster.
_THREADS: Final = 2
# Validation takes about 10 microseconds a value: what has fewer values than this takes less than 20 ms.
_SMALL: Final = 2000
_LONG_TEXT: Final = 256  # characters that count as one more value
_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="offloaded")
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offloaded(compute: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `compute` returns or raises. It must not touch what the event loop changes, and outlives a cancellation."""
    return await asyncio.get_running_loop().run_in_executor(_threads, partial(compute, *args, **kwargs))


async def offloaded_if_large(value: object, compute: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `compute` returns or raises; it runs in a thread if `value`, on which it works, is large.

    A thread costs more than a small computation takes.
    """
    if is_large(value):
        return await offloaded(compute, *args, **kwargs)
    return compute(*args, **kwargs)


def is_large(value: object) -> bool:
    """Whether work on a decoded document may hold the event loop for long: it has many values, or long texts."""
    left, stack = _SMALL, [value]
    while stack and left > 0:
        value = stack.pop()
        left -= 1
        if isinstance(value, dict):
            left -= sum(map(len, value)) // _LONG_TEXT  # JSON: every key is a string
            stack += value.values()
        elif isinstance(value, list | tuple):
            stack += value[:_SMALL]
        elif isinstance(value, str):
            left -= len(value) // _LONG_TEXT
    return left <= 0
