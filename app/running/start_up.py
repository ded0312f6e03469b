"""Garbage collection while a process of the server starts and after, and what happens to the memory that it frees."""

import ctypes
import gc
from typing import Final

# M_MMAP_THRESHOLD of malloc.h, and its default.
_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 128 * 1024


def begin_start_up() -> None:
    """Stop garbage collection until `end_start_up`.

    Imports make hundreds of thousands of objects that live until the end of the process, and almost no garbage. The
    search for it would take a fifth of the time of a start.
    """
    gc.disable()


def end_start_up() -> None:
    """Exclude the objects of start-up from garbage collection, and begin it.

    They include about two thousand objects of garbage, which are not worth a search.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # a request makes thousands of objects and few cycles
    gc.enable()
    _return_large_blocks()


def _return_large_blocks() -> None:
    """Have the C library return each block of 128 KiB or more to the system when it is freed.

    If this is not set, glibc does so only until the first one is freed. From then on it takes smaller ones from the
    heap, whose holes it keeps: bodies and answers of some megabytes leave many. Other C libraries have no such setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)
