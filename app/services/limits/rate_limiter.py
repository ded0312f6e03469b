"""Limits how often work starts."""

from app.base.clock import Clock


class RateLimiter:
    """Spreads requests so that at most `rate` start in a second, after a burst of as many."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._interval = 1.0 / rate
        self._next = 0.0

    def delay(self) -> float:
        """Reserve the next time to start, and return the seconds until then."""
        now = self._clock.monotonic()
        self._next = max(self._next, now - 1.0) + self._interval
        return max(0.0, self._next - now)
