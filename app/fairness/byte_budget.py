"""A bound on the bytes that the requests of a process hold at once."""

from collections.abc import Callable
from typing import Final, Protocol

UNCOUNTED_BYTES: Final = 16 * 1024
"""Smaller bodies are not counted, so that large bodies never cause the refusal of an ordinary request."""
GRACE_SECONDS: Final = 5.0
"""Seconds for which a holder may wait for its client. After that, another one that needs the memory evicts it. A client
that sends or reads slowly therefore blocks other clients no longer than this."""


class ByteHolder(Protocol):
    """What holds bytes: a body or an answer. `since` is when it began to wait for its client.

    Times are those of the event loop.
    """

    since: float

    def evict(self) -> None:
        """Release the bytes if their holder waits for its client. Otherwise do nothing."""


class ByteBudget:
    """The bytes that holders may have together; `held` is the number that they have."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0
        self._counted: dict[ByteHolder, None] = {}  # the oldest first

    def fits(self, count: int) -> bool:
        return self.held + count <= self.max_bytes

    def add(self, holder: ByteHolder, count: int) -> None:
        self.held += count
        self._counted.setdefault(holder)

    def release(self, holder: ByteHolder, count: int) -> None:
        """Stop counting bytes of a holder that has no others."""
        self.held -= count
        self._counted.pop(holder, None)

    def evict_slow(self, now: float, *, is_enough: Callable[[], bool]) -> None:
        """Evict slow holders, the oldest first, until the free memory is enough."""
        for holder in list(self._counted):
            if holder.since + GRACE_SECONDS <= now:
                if is_enough():
                    return
                holder.evict()
