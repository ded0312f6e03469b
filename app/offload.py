"""Long computations for requests, in a few threads beside the event loop, which goes on with other requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

# They share one interpreter lock with the loop: two of them leave it a third of the time, and more would not be faster.
_THREADS: Final = 2
_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="offloaded")
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offloaded(compute: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `compute` returns or raises. It must not touch what the event loop changes, and outlives a cancellation."""
    return await asyncio.get_running_loop().run_in_executor(_threads, partial(compute, *args, **kwargs))
