"""Decides when a server that is told to stop has drained: load balancers and clients have stopped choosing it.

A fixed time is not enough: on a busy machine or network, they learn later that it is not ready. So the server serves as
long as requests arrive. Pure: times are arguments, in seconds.
"""

from dataclasses import dataclass
from typing import Final

PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
"""Paths of probes and scrapes, which arrive all the time, also at a process that no client chooses."""
TICK: Final = 0.125
"""Seconds between two looks at whether a server has drained."""
# Seconds without a request after which nobody chooses the server any more. Clients of a gateway poll more often.
_QUIET: Final = 1.0
# Seconds from the end of the longest drain to the end of the process: last and open requests, loops, the interpreter.
_ENDING: Final = 10.0


@dataclass(slots=True)
class Arrivals:
    """How many requests have arrived at a server, without probes."""

    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTimes:
    """A server drains for at least `least` seconds, then as long as requests arrive, and at most for `most` seconds."""

    least: float
    most: float

    @classmethod
    def of(cls, least: float, shutdown: float) -> "DrainTimes":
        """Return the times for a process that ends `shutdown` seconds after the signal.

        Without `least` it does not drain: an operator who sets no time has no load balancer that looks at the process.
        """
        return cls(least=least, most=max(least, shutdown - _ENDING) if least else 0.0)


class Drain:
    """The drain of one server. Call `is_over` every TICK."""

    def __init__(self, times: DrainTimes) -> None:
        self._times = times
        self._spent = 0.0
        self._quiet = 0.0
        self._requests = 0

    def is_over(self, seconds: float, requests: int) -> bool:
        """Return whether the server has drained, `seconds` after the last call, with that many requests in total.

        Time in which the process could not run does not count: it has told nobody that it is not ready, and requests
        have waited for it.
        """
        ran = min(seconds, 2 * TICK)
        self._spent += ran
        self._quiet = self._quiet + ran if requests == self._requests else 0.0
        self._requests = requests
        return self._spent >= self._times.most or (self._spent >= self._times.least and self._quiet >= _QUIET)
