"""Durations and times of options, as kubectl accepts them."""

import re
from datetime import datetime
from typing import Final

import typer

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
# A century: sums with the clock, and waits, cannot have all numbers.
_MAX: Final = 100 * 366 * 86400.0
_SECONDS: Final = re.compile(r"\d+(?:\.\d+)?")


def seconds(text: str) -> float:
    """Return a duration such as 90, 30s, 5m or 1h30m in seconds.

    Raises:
        BadParameter: the text is no duration.
    """
    if not _SECONDS.fullmatch(text) and not _DURATION.fullmatch(text):
        raise typer.BadParameter(f"{text} is no duration; accepted: seconds, or 30s, 5m, 1h30m or 2d")
    parts = _PART.findall(text) or [(text, "s")]
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if total > _MAX:
        raise typer.BadParameter(f"{text} is too long; accepted: up to {_MAX / _UNITS['d']:.0f}d")
    return total


def moment(text: str) -> datetime:
    """Return a time such as 2026-01-31T12:00:00Z. One without an offset is in the local time zone.

    Raises:
        BadParameter: the text is no time.
    """
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text} is no time; accepted: 2026-01-31T12:00:00Z or 2026-01-31 12:00") from None
