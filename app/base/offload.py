"""Runs long computations for requests in threads, so that the event loop stays free for other requests."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

import msgspec

# The threads share the interpreter lock with the event loop. Two threads leave the loop a third of the CPU time; more
# threads would leave it less and would not be faster.
_THREADS: Final = 2
# Validation takes about 10 microseconds per value, so a smaller document takes less than 20 ms.
_SMALL: Final = 2000
_LONG_TEXT: Final = 256  # characters of a text that cost as much as one value
_LISTS: Final = (list, tuple)
_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="offloaded")
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def offload(compute: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `compute` in a thread, and return or raise what it does.

    It must not use state that the event loop changes. It has the context variables of the caller, such as the trace.
    Cancelling the caller does not stop it.
    """
    work = partial(contextvars.copy_context().run, partial(compute, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_threads, work)


async def offload_if_large(value: object, compute: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `compute`, in a thread if its input `value` is large: a thread costs more than a small computation."""
    if is_large(value):
        return await offload(compute, *args, **kwargs)
    return compute(*args, **kwargs)


def is_large(value: object) -> bool:
    """Return whether a decoded document has so many values or such long texts that work on it blocks the event loop."""
    return not _is_short(value) and _count_exceeds(value)


def _is_short(value: object) -> bool:
    """Return whether the JSON of a value is so short that the value is surely small.

    Every submission is measured. Encoding it takes an eighth of the time of counting its values; 1 MiB takes about a
    millisecond.
    """
    try:
        # With the comma or bracket beside it, a value has at least two bytes.
        return len(msgspec.json.encode(value)) < 2 * _SMALL - 1
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


def _count_exceeds(value: object) -> bool:
    """Return whether the values of a document and the lengths of its texts add up to _SMALL."""
    values, texts = [value], 0
    # The loop also reads the values that it appends.
    for part in values:
        if isinstance(part, str):  # first, because most values are texts
            texts += len(part) // _LONG_TEXT
        elif isinstance(part, dict):
            values += part.values()
            texts += sum(map(len, part)) // _LONG_TEXT  # JSON: every key is a string
        elif isinstance(part, _LISTS):
            values += part
        else:
            continue
        if len(values) + texts >= _SMALL:
            return True
    return False
