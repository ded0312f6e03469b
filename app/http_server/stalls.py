"""Reports callbacks that block the event loop for too long, with their stack.

The limit is CPU time of the thread that runs the loop, not wall time, so a busy machine causes no report. A second
thread samples that CPU time and captures the stack while the callback is still running.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from app.http_server.metrics import STALLS

log = structlog.get_logger(__name__)

_SAMPLES: Final = 5  # samples of the CPU time within the limit
_CAPTURED_AT: Final = 0.8  # share of the limit at which the stack is captured: later, the callback may have returned


@dataclass(frozen=True, slots=True)
class Stall:
    """A callback that blocked the loop, its seconds of CPU time, and its stack when it was sampled."""

    seconds: float
    callback: str
    stack: str


def log_stall(stall: Stall) -> None:
    STALLS.inc()
    log.error("loop.stalled", seconds=round(stall.seconds, 3), callback=stall.callback, exception=stall.stack)


@contextmanager
def watch(limit: float, report: Callable[[Stall], None] = log_stall) -> Iterator[None]:
    """Report callbacks of this thread's event loop that take more than `limit` seconds of CPU time; 0 disables this."""
    if limit <= 0:
        yield
        return
    watch = _Watch(limit, report)
    run = asyncio.Handle._run  # noqa: SLF001 - asyncio has no other place that sees each callback
    setattr(asyncio.Handle, "_run", lambda handle: watch.run(handle, run))  # noqa: B010 - mypy knows no such assignment
    sampler = threading.Thread(target=watch.sample, name="stall-watch", daemon=True)
    sampler.start()
    try:
        yield
    finally:
        setattr(asyncio.Handle, "_run", run)  # noqa: B010
        watch.ended.set()
        sampler.join()


class _Watch:
    def __init__(self, limit: float, report: Callable[[Stall], None]) -> None:
        self.ended = threading.Event()
        self._limit = limit
        self._report = report
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._began: float | None = None  # CPU time at which the present callback began
        self._stack = ""

    def run(self, handle: asyncio.Handle, run: Callable[[asyncio.Handle], None]) -> None:
        if threading.get_ident() != self._thread:
            run(handle)
            return
        began = self._began = time.thread_time()
        try:
            run(handle)
        finally:
            self._began = None
            held = time.thread_time() - began
            stack, self._stack = self._stack, ""
            if held > self._limit:
                self._report(Stall(held, repr(handle), stack))

    def sample(self) -> None:
        while not self.ended.wait(self._limit / _SAMPLES):
            began = self._began  # read once: the loop's thread changes it at any time
            if began is None or self._stack:
                continue
            if time.clock_gettime(self._clock) - began < self._limit * _CAPTURED_AT:
                continue
            frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - there is no public name for it
            stack = "".join(traceback.format_stack(frame)) if frame else ""
            if self._began == began:  # else the callback has returned, and the stack belongs to another one
                self._stack = stack
