"""The end of a process: in order after a signal, and by force when something that must end does not.

The watchdog is a thread, so that it also works while the event loop is blocked. It counts the time that this process
has had, not the time that has passed: a process that was stopped, or a machine that slept, gets its grace afterwards.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from app.clock import Clock, SystemClock

log = structlog.get_logger()

EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h: whoever supervises the process starts it again
TICK = 0.25  # seconds between two looks

Overdue = Callable[[], str | None]


@dataclass(slots=True)
class Limit:
    """`overdue` says what should have ended by now, and None while nothing should. `grace` is seconds from then on."""

    overdue: Overdue
    grace: float
    spent: float = 0.0

    def exceeded(self, seconds: float) -> str | None:
        """What is still there after its grace, once `seconds` more have been spent."""
        what = self.overdue()
        self.spent = self.spent + seconds if what else 0.0
        return what if self.spent > self.grace else None


class Watchdog:
    """Add limits before it runs. `end` gets the exit status, and runs on the watchdog's thread."""

    def __init__(self, clock: Clock, *, tick: float = TICK, end: Callable[[int], object] = os._exit) -> None:
        self._clock = clock
        self._tick = tick
        self._end = end
        self._limits: list[Limit] = []
        self._stopped = threading.Event()

    def limit(self, overdue: Overdue, grace: float) -> None:
        self._limits.append(Limit(overdue, grace))

    def start(self) -> threading.Thread:
        """Watch to the end of the process."""
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        return thread

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch for as long as the block lasts."""
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
            self.look(min(now - before, 2 * self._tick))
            before = now

    def look(self, seconds: float) -> None:
        """Count `seconds` for everything that is overdue, and end the process when one limit is exceeded."""
        for limit in self._limits:
            what = limit.exceeded(seconds)
            if what is not None:
                log.critical("watchdog.exit", reason=what, grace=limit.grace, status=EXIT_STATUS)
                self._end(EXIT_STATUS)


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, limit: float | None = None) -> Iterator[None]:
    """Set `stop` on SIGINT and SIGTERM; a second signal gets the default treatment.

    With a `limit`, the process exits that many seconds after the first signal, whatever it is doing then. The limit
    outlives the block: it also covers the end of the event loop and of the interpreter, which wait for threads.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    signalled = threading.Event()

    def on_signal() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, on_signal)
        # asyncio learns of a signal through a file descriptor. This handler runs although its loop is busy.
        signal.signal(number, lambda *_: signalled.set())
        signal.siginterrupt(number, False)  # noqa: FBT003  as asyncio does; it takes no keyword
    if limit is not None:
        watchdog = Watchdog(SystemClock())
        watchdog.limit(lambda: "the process was told to stop" if signalled.is_set() else None, limit)
        watchdog.start()
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
