"""Gives room to the jobs that wait for it within the limits of live pods (`app/db/reservations/room_waits.py`).

    a job ends      ─▶ the next jobs of its namespace ─┬─▶ those that fit get room ─▶ reconciled
    a second passes ─▶ those of each namespace        ─┘   the others report what they wait for

All of it is in PostgreSQL, so a restart of the controller changes neither the order nor which jobs have room.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from app.base.cancellation import rounds
from app.db.postgres.errors import DatabaseUnavailable
from app.db.reservations import room_waits
from app.db.reservations.room_waits import Turn
from app.loops.context import ControllerContext
from app.loops.leadership.lease import Leadership

LEAST_PAUSE: Final = 0.05  # seconds between two reads, however many jobs end
MESSAGES_EVERY: Final = 5.0  # seconds between two changes of the messages of the jobs of a namespace about their turn


class _Reported(NamedTuple):
    turn: Turn
    at: float


class RoomTurns:
    """The turns of one controller. `wake` queues a job to be reconciled."""

    def __init__(self, context: ControllerContext, leadership: Leadership, wake: Callable[[str], None]) -> None:
        self._db = context.db
        self._leadership = leadership
        self._clock = context.clock
        self._wake = wake
        self._limits = context.settings.pod_limits
        self._every = context.settings.poll_every
        self._changed = asyncio.Event()
        self._freed: set[str] = set()
        self._reported: dict[str, _Reported] = {}

    def note_end(self, namespace: str) -> None:
        """Note that a job of the namespace has ended. If others wait there, they get room at once."""
        if namespace in self._reported:
            self._freed.add(namespace)
            self._changed.set()

    async def run(self) -> None:
        """Let jobs that wait take the room that others leave, in their order, until cancelled.

        Raises:
            LeaseLost: another controller holds the lease.
        """
        due = 0.0
        for _ in rounds():
            with suppress(DatabaseUnavailable):  # the reconciler logs the outage
                if self._clock.monotonic() >= due:
                    due = self._clock.monotonic() + self._every
                    await self._give(None)
                else:
                    await self._give(sorted(self._freed))
            await asyncio.sleep(LEAST_PAUSE)
            with suppress(TimeoutError):
                async with asyncio.timeout(due - self._clock.monotonic()):
                    await self._changed.wait()

    async def _give(self, namespaces: Sequence[str] | None) -> None:
        """Give room in these namespaces; None stands for all."""
        self._changed.clear()
        self._freed.clear()
        turns, room = await room_waits.turns(self._db, self._limits, namespaces)
        known = {turn.namespace for turn in turns}
        read = self._reported if namespaces is None else namespaces
        for namespace in set(read) - known:
            self._reported.pop(namespace, None)
        for turn in turns:
            # Only a hint: the transaction reads the room again, with all locks.
            if room.take_in_turn(turn.namespace, turn.jobs):
                await self._start(turn.namespace)
            self._report(turn)

    async def _start(self, namespace: str) -> None:
        started = await room_waits.start(self._db, self._leadership.lease, namespace, self._limits)
        for uid in started:
            self._wake(str(uid))
        if started:
            self._freed.add(namespace)  # there may be room for more
            self._changed.set()

    def _report(self, turn: Turn) -> None:
        """Let the next jobs of a namespace report what they wait for, if that has changed."""
        before, now = self._reported.get(turn.namespace), self._clock.monotonic()
        if before is not None and (before.turn == turn or now < before.at + MESSAGES_EVERY):
            return
        self._reported[turn.namespace] = _Reported(turn, now)
        for job in turn.jobs:
            self._wake(str(job.uid))
