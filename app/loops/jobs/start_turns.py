"""Lets one job at a time start again after it was withdrawn (`app/domain/reconcile/placing/starting.py`).

Several at once would take each other's nodes again. The others wait, and namespaces take turns, so that a namespace
with many such jobs delays another one by one turn at most.

    withdrawn ─▶ back-off ─▶ waiting ─▶ turn ─▶ whole, ended, or withdrawn again ─▶ the next one's turn

The turns are in memory only. Two jobs that start together after a restart of the controller are withdrawn once more.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from app.base.clock import Clock
from app.domain.status.records import PartialStart
from app.fairness.fair_queue import FairQueue

TURN_SECONDS: Final = 600.0
_MOST_WAITING: Final = 1_000_000


class StartTurns:
    """The turns of one controller. `wake` queues the job whose turn it is; `longest` is seconds."""

    def __init__(self, clock: Clock, wake: Callable[[str], None], *, longest: float) -> None:
        self._clock = clock
        self._wake = wake
        self._longest = longest
        self._waiting: FairQueue[str, str] = FairQueue(_MOST_WAITING)
        self._listed: set[str] = set()
        self._holder: str | None = None
        self._until = 0.0

    def may_start(self, uid: str, namespace: str, start: PartialStart, now: datetime) -> bool:
        """Return whether nothing but its own back-off keeps the job from starting. A job that is due takes its turn."""
        if start.again_at is None or now < start.again_at or uid == self._holder:
            return True
        if uid not in self._listed:
            self._waiting.push(namespace, uid)
            self._listed.add(uid)
        if self._holder is None or self._clock.monotonic() >= self._until:
            self._pass_on()
        return uid == self._holder

    def follow(self, uid: str, namespace: str, start: PartialStart, now: datetime) -> None:
        """End the turn, or the wait, of a job that is not about to start again any more."""
        if start.withdrawals and (start.again_at is None or start.again_at <= now):
            return
        if uid in self._listed:
            self._listed.remove(uid)
            self._waiting.remove(namespace, uid)
        if uid == self._holder:
            self._pass_on()

    def _pass_on(self) -> None:
        self._holder = None
        if len(self._waiting):
            self._holder = self._waiting.pop()
            self._listed.remove(self._holder)
            self._until = self._clock.monotonic() + self._longest
            self._wake(self._holder)
