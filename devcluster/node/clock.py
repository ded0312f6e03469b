"""The agent's clock, and the time formats of the Kubernetes API."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), tz=UTC)


def rfc3339(moment: datetime) -> str:
    """Seconds precision, as `metav1.Time`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """Microseconds precision, as `metav1.MicroTime`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rfc3339_nano(nanoseconds: int) -> str:
    """Nanoseconds precision with all nine digits, as log lines carry it."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09d}Z"


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time of the API; finer digits than microseconds are dropped."""
    head, dot, rest = text.partition(".")
    if not dot:
        return datetime.fromisoformat(text)
    digits = rest.rstrip("Z").split("+")[0].split("-")[0]
    zone = rest[len(digits) :]
    return datetime.fromisoformat(f"{head}.{digits[:6].ljust(6, '0')}{zone}")
