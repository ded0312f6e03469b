"""Which requests are repeated, and when. Pure: the caller sleeps."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

# Seconds. The first repetition is quick, because most failures are restarts of one gateway behind a load balancer.
_FIRST_DELAY: Final = 0.25
_MAX_DELAY: Final = 10.0
# A gateway that asks for more than this is treated as unavailable.
_MAX_RETRY_AFTER: Final = 60.0
# Codes of problems of requests that had no effect, and that may succeed when they are repeated.
_WITHOUT_EFFECT: Final = frozenset(
    {"Contended", "DatabaseContended", "KeyInFlight", "Overloaded", "TooManyBodies", "TooManyConnections"}
)


class Failure(Enum):
    """How far a failed request came."""

    NOT_SENT = auto()  # no connection: the gateway has not seen the request
    REFUSED = auto()  # the gateway answered that it had no effect
    UNKNOWN = auto()  # the request was sent, and it is not known whether it was carried out


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is sent in all. `random` is in [0, 1): it spreads the repetitions of many clients."""

    attempts: int = 5

    def delay(
        self, failure: Failure, *, attempt: int, is_repeatable: bool, retry_after: float | None = None, random: float
    ) -> float | None:
        """Return the seconds until the next attempt, or None if the failure is final. The first attempt is number 1."""
        if attempt >= self.attempts or (failure is Failure.UNKNOWN and not is_repeatable):
            return None
        if retry_after is not None and retry_after > _MAX_RETRY_AFTER:
            return None
        backoff = min(_FIRST_DELAY * 2.0 ** (attempt - 1), _MAX_DELAY) * (0.5 + random / 2)
        return max(backoff, retry_after or 0.0)


def failure_of(status: int, code: str) -> Failure | None:
    """Return the failure of an error answer that a repetition may avoid, otherwise None."""
    if status == 429 or code in _WITHOUT_EFFECT:
        return Failure.REFUSED
    return Failure.UNKNOWN if status in {502, 503, 504} else None


def seconds_of(retry_after: str | None) -> float | None:
    """Return the value of a Retry-After header in seconds. The gateway sends no dates."""
    try:
        return max(0.0, float(retry_after)) if retry_after is not None else None
    except ValueError:
        return None
