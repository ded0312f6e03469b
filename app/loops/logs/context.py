"""What the followers of a process share."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from app.base.clock import Clock
from app.db.postgres.engine import Database
from app.domain.retention import Retention
from app.k8s.api import KubeApi
from app.loops.logs.limits import LogLimits
from app.loops.logs.slots import ReadSlots
from app.loops.logs.store_health import StoreHealth

# Chunks that are encoded and written at once. Each needs about three times its size in memory meanwhile.
_WRITES_AT_ONCE: Final = 8
TRANSACTIONS_AT_ONCE: Final = 5
"""Transactions of followers at once. Without the bound, the announcement of the process waits behind thousands."""


class UnwrittenText:
    """How much text of each follower waits to be written, and since when."""

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._sizes: Counter[object] = Counter()
        self._since: dict[object, float] = {}
        self.total = 0

    @property
    def is_full(self) -> bool:
        return self.total > self._most

    @property
    def oldest(self) -> float:
        """The age of the oldest text in seconds; 0 without text."""
        now = self._clock.monotonic()
        return now - min(self._since.values(), default=now)

    def note(self, follower: object, size: int) -> None:
        """Note that this many bytes of a follower wait."""
        self.total += size - self._sizes[follower]
        self._sizes[follower] = size
        if size:
            self._since.setdefault(follower, self._clock.monotonic())
        else:
            del self._sizes[follower]
            self._since.pop(follower, None)

    def age(self, follower: object) -> float | None:
        """Return for how many seconds text of a follower waits; None without text."""
        since = self._since.get(follower)
        return None if since is None else self._clock.monotonic() - since


@dataclass(frozen=True, kw_only=True)
class LogContext:
    """The connections and limits of a process that keeps logs, and what its followers share."""

    api: KubeApi
    db: Database
    clock: Clock
    installation: str
    limits: LogLimits
    retention: Retention
    store: StoreHealth
    slots: ReadSlots
    unwritten: UnwrittenText
    writes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_WRITES_AT_ONCE))
    transactions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TRANSACTIONS_AT_ONCE))
