"""Limits concurrent creates as TCP limits packets: slow start, then linear growth, and half as many after a 429."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType

from app.base.clock import Clock, SystemClock
from app.k8s.errors import KubeTooManyRequests

FIRST = 4.0  # concurrent requests at the start
MOST = 64.0
ROUND = 1.0  # seconds; refusals within it count once, because their requests were sent together
MAX_PAUSE = 120.0  # seconds; the longest Retry-After that is obeyed


class CreateLimiter:
    """A context manager around one request. A KubeTooManyRequests that leaves the block halves the window."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        first: float = FIRST,
        most: float = MOST,
    ) -> None:
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._window = first
        self._threshold = most
        self._most = most
        self._in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._cut_at: float | None = None

    @property
    def window(self) -> int:
        """The number of requests that may run at once now."""
        return int(self._window)

    def slow_down(self, retry_after: float | None) -> None:
        """Halve the window, and send nothing for `retry_after` seconds."""
        now = self._clock.monotonic()
        self._paused_until = max(self._paused_until, now + min(retry_after or 0.0, MAX_PAUSE))
        if self._cut_at is not None and now - self._cut_at < ROUND:
            return
        self._cut_at = now
        self._threshold = self._window = max(1.0, self._window / 2)

    async def __aenter__(self) -> None:
        while True:
            pause = self._paused_until - self._clock.monotonic()
            if pause > 0:
                await self._sleep(pause)
            elif self._in_flight < self.window:
                self._in_flight += 1
                return
            else:
                await self._wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A success in a window that was not full does not show that the server can take more.
        full = self._in_flight >= self.window
        self._in_flight -= 1
        if isinstance(error, KubeTooManyRequests):
            self.slow_down(error.retry_after)
        elif error is None and full:
            self._grow()
        self._wake(self.window - self._in_flight)

    def _grow(self) -> None:
        """Grow by one for each success below the threshold, and by one for each full window of successes above it."""
        step = 1.0 if self._window < self._threshold else 1.0 / self._window
        self._window = min(self._window + step, self._most)

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # This waiter was woken and will not run. Without the next one, the slot would stay unused.
            if waiter.done() and not waiter.cancelled():
                self._wake(1)
            raise

    def _wake(self, count: int) -> None:
        while count > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
