"""What the bodies of requests may take of the memory of a process: of each, and of all that it holds at once."""

import enum
from typing import Final

# Smaller bodies are not counted, so that large ones keep no ordinary submission out. The limit of connections bounds
# them: 6000 of 16 KiB are 94 MiB.
UNCOUNTED_BYTES: Final = 16 * 1024


class Excess(enum.Enum):
    """Which limit a body would exceed."""

    OF_ONE = "one"
    OF_ALL = "all"


class BodyBudget:
    """The bytes of request bodies that a process may hold at once; `held` are those that it holds."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0

    def has_room(self, count: int) -> bool:
        return self.held + count <= self.max_bytes


class Receipt:
    """The body of one request as it arrives. It counts against the budget until `release`, and never after it."""

    def __init__(self, max_bytes: int, budget: BodyBudget) -> None:
        self._max_bytes = max_bytes
        self._budget = budget
        self._received = 0
        self._held = 0
        self._released = False

    def add(self, count: int) -> Excess | None:
        """Count a piece that has arrived; returns the limit that it exceeds, if any."""
        self._received += count
        if self._received > self._max_bytes:
            return Excess.OF_ONE
        if self._released or self._received <= UNCOUNTED_BYTES:
            return None
        wanted = self._received - self._held
        if not self._budget.has_room(wanted):
            return Excess.OF_ALL
        self._budget.held += wanted
        self._held += wanted
        return None

    def release(self) -> None:
        self._budget.held -= self._held
        self._held = 0
        self._released = True
