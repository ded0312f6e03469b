"""How long records are kept after their end, and the durations and times in which operators say so."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from app.domain.access.namespaces import base_name
from app.domain.kubernetes.names import dns_label

KeptFor: TypeAlias = timedelta | None
"""A time after an end; None stands for ever."""

DURATION: Final = "a number with s, m, h or d, such as 90d, at most 36500d; or never"
_NEVER: Final = "never"
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PATTERN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd]?)")
_LONGEST: Final = timedelta(days=36500)


def parse_duration(text: str) -> KeptFor:
    """Return the duration of a text such as `90d`, `36h` or `never`. A number without a unit is seconds.

    Raises:
        ValueError: the text is no such duration.
    """
    text = text.strip()
    if text == _NEVER:
        return None
    found = _PATTERN.fullmatch(text)
    duration = _LONGEST + timedelta(1) if found is None else timedelta(**{_UNITS[found[2] or "s"]: float(found[1])})
    if duration > _LONGEST:
        raise ValueError(f'"{text}" is no duration; expected {DURATION}')
    return duration


def parse_time(text: str) -> datetime:
    """Return the time of a text in ISO 8601. One without a zone is in UTC.

    Raises:
        ValueError: the text is no such time.
    """
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long the records of ended objects are kept, and in which namespaces for another time."""

    kept_for: KeptFor = None
    exceptions: Mapping[str, KeptFor] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the retention of a text such as `90d, team-a=365d, team-b=never`.

        Raises:
            ValueError: the text has another form.
        """
        first, *others = text.split(",")
        pairs = [item.partition("=") for item in others]
        exceptions = {name.strip(): parse_duration(duration) for name, _, duration in pairs}
        wrong = [name for name in exceptions if dns_label(name)]
        if wrong or len(exceptions) < len(pairs):
            raise ValueError(
                f'"{text}": expected a duration for all namespaces, then pairs namespace=duration, each namespace once'
            )
        return cls(kept_for=parse_duration(first), exceptions=exceptions)

    def of(self, namespace: str) -> KeptFor:
        """Return how long objects of the namespace are kept. A former namespace is kept as that whose name it had."""
        return self.exceptions.get(base_name(namespace), self.kept_for)

    def expires_at(self, namespace: str, ended_at: datetime) -> datetime | None:
        """Return when an object that ended then expires. None if it never does."""
        kept_for = self.of(namespace)
        return None if kept_for is None else ended_at + kept_for

    def ends(self, namespaces: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Return for each namespace in which objects expire the time before which those that have expired ended."""
        found = {namespace: self.of(namespace) for namespace in namespaces}
        return {namespace: now - kept_for for namespace, kept_for in found.items() if kept_for is not None}


FOR_EVER: Final = Retention()
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How long each sort of records is kept.

    `jobs` and `samples` count from the end of an object, `logs` from that of a whole log, and all others from the time
    of the record itself. `purged` are the uids of objects whose records were deleted.
    """

    jobs: Retention = Retention(kept_for=90 * _DAY)
    logs: Retention = Retention(kept_for=30 * _DAY)
    samples: Retention = Retention(kept_for=90 * _DAY)
    purged: KeptFor = 90 * _DAY
    feed: KeptFor = _DAY
    idempotency_keys: KeptFor = _DAY
    autoscaler_runs: KeptFor = 7 * _DAY


KEEPING: Final = Keeping()
