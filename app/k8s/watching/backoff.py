"""The wait before a reflector lists or watches again, as in client-go."""

import random
from collections.abc import Callable

from app.base.backoff import ExponentialBackoff
from app.base.clock import Clock

# These values are those of NewReflectorWithOptions in client-go's tools/cache/reflector.go. All times are seconds.
BACKOFF = ExponentialBackoff(first=0.8, longest=30.0)
JITTER = 1.0
RESET_AFTER = 120.0


class JitteredBackoff:
    """Exponential back-off with jitter, so that many clients do not come back at the same moment.

    The count of failures starts again when the last failure is more than RESET_AFTER seconds ago.
    """

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._last: float | None = None

    def next(self) -> float:
        """Count a failure and return the seconds to wait after it."""
        now = self._clock.monotonic()
        if self._last is not None and now - self._last > RESET_AFTER:
            self._failures = 0
        self._last = now
        self._failures += 1
        return min(BACKOFF.delay(self._failures) * (1.0 + JITTER * self._chance()), BACKOFF.longest)
