"""How long records are kept: the form of the settings, and what has expired."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.retention import KeptFor, Retention, parse_duration

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", 90 * DAY),
        (" 36h ", timedelta(hours=36)),
        ("30m", timedelta(minutes=30)),
        ("45s", timedelta(seconds=45)),
        ("86400", DAY),
        ("0.5d", DAY / 2),
        ("0", timedelta(0)),
        ("36500d", 36500 * DAY),
        ("never", None),
    ],
)
def test_a_duration_has_a_unit(text: str, expected: KeptFor) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "d", "-1d", "90 d", "90D", "1w", "36501d", "999999999d", "1e3s", "Never", "٣d"])
def test_any_other_duration_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number with s, m, h or d, such as 90d, at most 36500d; or never"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90d", {"a": 90 * DAY, "b": 90 * DAY}),
        ("90d, a=1d,b = never", {"a": DAY, "a~uid": DAY, "b": None, "c": 90 * DAY}),
        ("never,a=7d", {"a": 7 * DAY, "b": None}),
    ],
)
def test_namespaces_can_have_a_retention_of_their_own(text: str, expected: dict[str, KeptFor]) -> None:
    retention = Retention.parse(text)
    assert {namespace: retention.of(namespace) for namespace in expected} == expected
    assert retention.ends(expected, NOW) == {name: NOW - kept for name, kept in expected.items() if kept is not None}


@pytest.mark.parametrize(
    "text", ["", "90d,", "90d,a", "90d,a=", "90d,=1d", "90d,A=1d", "90d,a=1d,a=2d", "a=1d", "90d;a=1d"]
)
def test_any_other_retention_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Retention.parse(text)


@pytest.mark.parametrize(("namespace", "expected"), [("a", NOW + DAY), ("b", None), ("c", NOW + 2 * DAY)])
def test_an_ended_object_expires_by_its_namespace(namespace: str, expected: Any) -> None:
    assert Retention.parse("2d,a=1d,b=never").expires_at(namespace, NOW) == expected
