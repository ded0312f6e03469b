"""The current time, and the time formats of the Kubernetes API."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def timestamp(moment: datetime | None = None) -> str:
    """Format a moment, by default the present one, as metav1.Time: with whole seconds."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime | None = None) -> str:
    """Format a moment, by default the present one, as metav1.MicroTime, which Leases and Events use."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def nano_timestamp(nanoseconds: int) -> str:
    """Format a Unix time in nanoseconds with all nine digits, as the lines of container logs carry it."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09d}Z"


def parse(text: str) -> datetime:
    """Read an RFC 3339 time. Digits finer than microseconds are dropped.

    Raises:
        ValueError: the text is not such a time.
    """
    # Python 3.11, the oldest version that jobgate supports, reads Z and nine digits.
    return datetime.fromisoformat(text)


def parse_optional(text: str | None) -> datetime | None:
    """Read an RFC 3339 time; return None if it is absent or malformed."""
    try:
        return parse(text) if text else None
    except ValueError:
        return None
