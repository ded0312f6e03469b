"""Measures calls to the API server: for metrics, and how long the latest ones took."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from app.base.clock import Clock, SystemClock
from app.k8s.errors import KubeStatusError
from app.k8s.session.metrics import count_request

RECENT: Final = 60.0
"""Seconds. Older calls do not show how fast the cluster is now."""
# The most calls that are kept: the latest ones, if there are more than 10 per second.
_MOST: Final = 600


@dataclass(slots=True)
class MeasuredCall:
    """A call in progress. The caller sets `status` when an answer has arrived."""

    status: int | None = None


class CallTimes:
    """The durations of recent calls, failed ones included: a call without an answer took as long as its timeout.

    Watches and logs are not among them, because they last as long as clients want.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._calls: deque[tuple[float, float]] = deque(maxlen=_MOST)

    @contextmanager
    def measure(self, verb: str, *, is_stream: bool = False) -> Iterator[MeasuredCall]:
        """Measure the block, unless it is cancelled. The block of a stream ends when its answer begins."""
        call = MeasuredCall()
        started = self._clock.monotonic()
        try:
            yield call
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if isinstance(error, KubeStatusError):
                call.status = error.status
            self._add(verb, call, started, is_stream=is_stream)
            raise
        self._add(verb, call, started, is_stream=is_stream)

    def quantile(self, share: float) -> float | None:
        """Return the seconds within which this share of the recent calls ended, or None if there were none."""
        since = self._clock.monotonic() - RECENT
        recent = sorted(seconds for ended, seconds in self._calls if ended >= since)
        return recent[min(len(recent) - 1, int(share * len(recent)))] if recent else None

    def _add(self, verb: str, call: MeasuredCall, started: float, *, is_stream: bool) -> None:
        now = self._clock.monotonic()
        count_request(verb, call.status, now - started)
        if not is_stream:
            self._calls.append((now, now - started))
