"""Exponential back-off: the wait after a failure doubles with each further failure, up to a limit."""

import hashlib
from dataclasses import dataclass
from typing import Final

# 2.0 ** 1024 overflows a float. Every limit is reached long before.
MAX_DOUBLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Computes waits in seconds: `first` after the first consecutive failure, doubling up to `longest`."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Return the wait after this number of consecutive failures; 0 without a failure."""
        if failures < 1:
            return 0.0
        return min(self.first * 2.0 ** min(failures - 1, MAX_DOUBLINGS), self.longest)

    def count(self, failures: int) -> int:
        """Return the number after one more failure. It stays the same at the longest wait, as does a record of it."""
        return failures if failures > 0 and self.delay(failures) == self.longest else failures + 1


def share_of(text: str) -> float:
    """Return a number from 0 to 1 that differs between texts, so that waits in proportion to it end one by one."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32
