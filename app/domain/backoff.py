"""Exponential back-off: the wait after a failure doubles with each further failure, up to a limit."""

from dataclasses import dataclass
from typing import Final

# 2.0 ** 1024 overflows a float. Long before, every limit is reached.
MAX_DOUBLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Waits in seconds: `first` after the first failure in a row, and never more than `longest`."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Return the wait after so many failures in a row. Without a failure there is none."""
        if failures < 1:
            return 0.0
        return min(self.first * 2.0 ** min(failures - 1, MAX_DOUBLINGS), self.longest)
