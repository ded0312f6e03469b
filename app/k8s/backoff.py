"""How long to wait after a failure, as client-go's reflector does."""

import random
from collections.abc import Callable

from app.clock import Clock

INITIAL = 0.8  # seconds; these five are those of NewReflectorWithOptions in client-go's tools/cache/reflector.go
MAXIMUM = 30.0
FACTOR = 2.0
JITTER = 1.0
RESET_AFTER = 120.0


class Backoff:
    """Doubles with every failure up to a limit; starts anew when the last failure is long past."""

    def __init__(self, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._chance = chance
        self._base = INITIAL
        self._last: float | None = None

    def next(self) -> float:
        """Seconds to wait now."""
        now = self._clock.monotonic()
        if self._last is not None and now - self._last > RESET_AFTER:
            self._base = INITIAL
        self._last = now
        base = self._base
        self._base = min(base * FACTOR, MAXIMUM)
        return min(base * (1.0 + JITTER * self._chance()), MAXIMUM)
