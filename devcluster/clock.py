"""The embedded cluster's reading of time, and Kubernetes' two spellings of it."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def timestamp(moment: datetime | None = None) -> str:
    """Spell metav1.Time: whole seconds."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime | None = None) -> str:
    """Spell metav1.MicroTime, as in leases and events."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
