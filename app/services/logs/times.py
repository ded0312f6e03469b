"""Times of lines, in nanoseconds since 1970, as texts and as times of PostgreSQL. Without I/O."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from app.domain.kept_logs.repeats import NANOSECONDS

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Times that a line of a log can have. A selection by others includes everything or nothing.
_FIRST: Final = _EPOCH
_LAST: Final = datetime(2262, 1, 1, tzinfo=UTC)


def nanoseconds(time: datetime) -> int:
    """Return a time in nanoseconds since 1970; one that they cannot express becomes the nearest one."""
    since_epoch = min(max(time, _FIRST), _LAST) - _EPOCH
    return ((since_epoch.days * 86400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds) * 1000


def time_text(time: int) -> str:
    """Return a time as the kubelet writes it, with nine digits of the second."""
    seconds, rest = divmod(time, NANOSECONDS)
    return f"{_second(seconds)}.{rest:09d}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
