"""A bound on the bytes of bodies that a process holds at once."""

from collections.abc import Callable
from typing import Final, Protocol

UNCOUNTED_BYTES: Final = 16 * 1024
"""Smaller bodies are not counted, so that large bodies never cause the refusal of an ordinary request."""
GRACE_SECONDS: Final = 5.0
"""Seconds for which a body may keep the process waiting for its client. After that, another body that needs the memory
evicts it. A client that sends or reads slowly therefore blocks other clients no longer than this."""


class HeldBody(Protocol):
    """A body that holds bytes. `since` is when it began to wait for its client, by the clock of the event loop."""

    since: float

    def evict(self) -> None:
        """Release the bytes if the body waits for its client. Otherwise do nothing."""


class ByteBudget:
    """The bytes that bodies may hold together; `held` is the number that they hold."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0
        self._counted: dict[HeldBody, None] = {}  # the oldest first

    def fits(self, count: int) -> bool:
        return self.held + count <= self.max_bytes

    def add(self, body: HeldBody, count: int) -> None:
        self.held += count
        self._counted.setdefault(body)

    def release(self, body: HeldBody, count: int) -> None:
        """Stop counting bytes of a body that holds no others."""
        self.held -= count
        self._counted.pop(body, None)

    def evict_slow(self, now: float, *, is_enough: Callable[[], bool]) -> None:
        """Evict slow bodies, the oldest first, until the free memory is enough."""
        for body in list(self._counted):
            if body.since + GRACE_SECONDS <= now:
                if is_enough():
                    return
                body.evict()
