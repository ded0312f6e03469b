"""Ends the process: gracefully after a signal, and by force if something that must end does not.

The watchdog is a thread, so that it works while the event loop is blocked. It counts only time in which this process
could run: a process that was stopped, or a machine that slept, still gets its full grace period afterwards.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import structlog

from app.base.clock import Clock, SystemClock

log = structlog.get_logger(__name__)

EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h: a supervisor such as the kubelet restarts the process
TICK = 0.25  # seconds between two checks
PULSE = 1.0  # seconds between two signs of life of an event loop

OverdueCheck = Callable[[], str | None]


@dataclass(slots=True)
class Limit:
    """The seconds of grace for something that is overdue.

    Args:
        overdue: describes what should have ended by now; None if nothing is overdue.
        grace: seconds for which it may stay overdue.
        spent: seconds for which it has been overdue without interruption.
    """

    overdue: OverdueCheck
    grace: float
    spent: float = 0.0

    def count(self, seconds: float) -> str | None:
        """Count `seconds` if something is overdue, and describe it if its grace period is over."""
        what = self.overdue()
        self.spent = self.spent + seconds if what else 0.0
        return what if self.spent > self.grace else None


class Watchdog:
    """Ends the process when a limit is exceeded. Add all limits before it starts.

    It calls `end` with the exit status, in its own thread.
    """

    def __init__(self, clock: Clock, *, tick: float = TICK, end: Callable[[int], object] = os._exit) -> None:
        self._clock = clock
        self._tick = tick
        self._end = end
        self._limits: list[Limit] = []
        self._stopped = threading.Event()

    def limit(self, overdue: OverdueCheck, grace: float) -> None:
        self._limits.append(Limit(overdue, grace))

    def start(self) -> threading.Thread:
        """Start the thread, which runs until the process ends."""
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        return thread

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the thread during the block."""
        thread = self.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _watch(self) -> None:
        before = self._clock.monotonic()
        while not self._stopped.wait(self._tick):
            now = self._clock.monotonic()
            # A longer interval means that the process or the machine was stopped: that time does not count.
            self.check(min(now - before, 2 * self._tick))
            before = now

    def check(self, seconds: float) -> None:
        """Count `seconds` for everything that is overdue, and end the process if a limit is exceeded."""
        for limit in self._limits:
            what = limit.count(seconds)
            if what is not None:
                log.critical("watchdog.exit", reason=what, grace=limit.grace, status=EXIT_STATUS)
                self._end(EXIT_STATUS)


class LoopPulse:
    """Shows a watchdog whether the event loop still runs callbacks. Start it with `beat` in the loop."""

    def __init__(self, clock: Clock, *, period: float = PULSE) -> None:
        self._clock = clock
        self._period = period
        self._beaten_at = clock.monotonic()

    def beat(self) -> None:
        """Note that the loop runs, now and in every period."""
        self._beaten_at = self._clock.monotonic()
        asyncio.get_running_loop().call_later(self._period, self.beat)

    def overdue(self) -> str | None:
        """Return that the loop is blocked, or None. Every thread may call this."""
        silent = self._clock.monotonic() - self._beaten_at
        return "the event loop is blocked" if silent > 2 * self._period else None


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, limit: float | None = None) -> Iterator[None]:
    """Set `stop` on SIGINT or SIGTERM. A second signal ends the process at once, with the status that a shell reports.

    With `limit`, the process exits at most that many seconds after the first signal. Both stay in force after the
    block: they also cover the end of the event loop and of the interpreter, which wait for threads.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    signalled = threading.Event()

    def on_signal(number: int, _: FrameType | None) -> None:
        if signalled.is_set():
            # An exception, such as KeyboardInterrupt, could begin in a callback of a C extension or while the
            # interpreter ends, and leave either in a state in which it crashes.
            os._exit(128 + number)
        signalled.set()
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        # A signal then wakes the event loop. Otherwise one that comes just before the loop waits for events would be
        # noticed after the next event.
        loop.add_signal_handler(number, _do_nothing)
        # This handler also runs while the event loop is blocked, unlike that of asyncio.
        signal.signal(number, on_signal)
        signal.siginterrupt(number, False)  # noqa: FBT003  as asyncio does; it takes no keyword
    if limit is not None:
        watchdog = Watchdog(SystemClock())
        watchdog.limit(lambda: "the process was told to stop" if signalled.is_set() else None, limit)
        watchdog.start()
    try:
        yield
    finally:
        for number, handler in before.items():
            # Otherwise the end of the event loop would do it, and undo the handlers.
            loop.remove_signal_handler(number)
            signal.signal(number, on_signal if signalled.is_set() else handler)


def _do_nothing() -> None:
    """Do nothing: only the wake-up of the event loop is needed."""
