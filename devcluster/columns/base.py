"""The parts that all tables share: columns, and the formats of ages, lists and absent values."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from devcluster import clock
from devcluster.formats.objects import Object, meta

NONE = "<none>"
UNKNOWN = "<unknown>"
Cell = str | int
CellOf = Callable[[Object, datetime], Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `kubectl` shows a wide column with `-o wide` only."""

    name: str
    cell: CellOf
    wide: bool = False
    format: str = ""

    def definition(self) -> Object:
        priority = 1 if self.wide else 0
        return {"name": self.name, "type": "string", "format": self.format, "description": "", "priority": priority}


def text(read: Callable[[Object], Cell]) -> CellOf:
    """Make a cell that does not depend on the current time."""
    return lambda obj, _now: read(obj)


def age(stamp: str | None, now: datetime) -> str:
    """Return the time since a timestamp in the short format of kubectl."""
    moment = clock.parse_optional(stamp)
    return UNKNOWN if moment is None else duration(now - moment)


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
# A duration below the first number of seconds is shown in the large unit, and its rest in the small unit if any.
_DURATION_FORMATS: tuple[tuple[float, int, str, int, str], ...] = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    (math.inf, _YEAR, "y", 0, ""),
)


def duration(span: timedelta) -> str:
    """Format a duration as HumanDuration of k8s.io/apimachinery does: in one or two units."""
    seconds = int(span.total_seconds())
    # The clocks of two machines may differ by a second.
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    _, large, large_unit, small, small_unit = next(row for row in _DURATION_FORMATS if seconds < row[0])
    rest = seconds % large // small if small else 0
    return f"{seconds // large}{large_unit}{f'{rest}{small_unit}' if rest else ''}"


def join(parts: Iterable[str], missing: str = NONE) -> str:
    return ",".join(parts) or missing


def selector_text(labels: Mapping[str, str]) -> str:
    return join(f"{key}={labels[key]}" for key in sorted(labels))


NAME = Column("Name", text(lambda obj: str(meta(obj)["name"])), format="name")
AGE = Column("Age", lambda obj, now: age(meta(obj).get("creationTimestamp"), now))
