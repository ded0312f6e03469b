"""Spaces the reconciles that changes of pods cause, so that a large job that changes all the time does not use a core.

The first change after a pause causes a reconcile at once. The changes that follow wait until a time has passed since
the last reconcile of their job, and share the next one. This time grows with the job, as the cost of a reconcile does.
"""

from collections.abc import Callable
from typing import Final

from app.base.clock import Clock

# A reconcile of a thousand replicas takes about 0.1 s of CPU time. With this factor, a job whose pods change all the
# time uses at most a third of a core.
SECONDS_PER_REPLICA: Final = 0.0003
LONGEST: Final = 3.0  # seconds; a change of a job of ten thousand replicas is visible after this time


def interval(replicas: int, least: float) -> float:
    """Return the seconds between two reconciles of a job with this number of pods, at least `least`."""
    return min(max(least, replicas * SECONDS_PER_REPLICA), LONGEST)


class ReconcileIntervals:
    """Remembers when each job was reconciled. `pods_of` returns the number of pods of a job, and `least` is seconds."""

    def __init__(self, clock: Clock, pods_of: Callable[[str], int], *, least: float) -> None:
        self._clock = clock
        self._pods_of = pods_of
        self._least = least
        self._reconciled: dict[str, float] = {}

    def note_reconcile(self, uid: str) -> None:
        """Note that a reconcile of the job begins."""
        self._reconciled[uid] = self._clock.monotonic()

    def delay(self, uid: str) -> float:
        """Return the seconds after which a change of one of the job's pods causes a reconcile."""
        last = self._reconciled.get(uid)
        if last is None:
            return 0.0
        return max(0.0, last + interval(self._pods_of(uid), self._least) - self._clock.monotonic())

    def forget(self, uid: str) -> None:
        """Forget a job that does not change any more."""
        self._reconciled.pop(uid, None)
