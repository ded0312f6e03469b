"""Sums of usage in the units that users see, and their cost."""

from decimal import Decimal

import pytest

from app.domain.usage.holds import CPU, JOBS
from app.domain.usage.prices import Prices, unit_of
from app.domain.usage.query import UsageRow
from app.domain.usage.report import HELD, show
from app.domain.vocabulary import Use

HOUR = 3_600_000  # milliseconds
GIB = 2**30


def a_row() -> UsageRow:
    row = UsageRow(key=("team-a",))
    row.add(CPU, Use.USEFUL, 2000 * HOUR)  # two cores for an hour
    row.add("memory", Use.REPEATED, 8 * GIB * HOUR)
    row.add("example.com/gpu", Use.USEFUL, HOUR)
    row.add(JOBS, Use.QUEUED, 90_000)
    return row


def test_usage_is_shown_in_seconds_of_cores_bytes_and_devices() -> None:
    shown = show(a_row(), None)
    assert (shown.key, shown.queued, shown.cost) == (("team-a",), Decimal(90), None)
    assert list(shown.resources) == [CPU, "example.com/gpu", "memory"]
    assert shown.resources[CPU][Use.USEFUL] == 7200
    assert shown.resources["memory"][Use.REPEATED] == 8 * GIB * 3600
    assert shown.resources["example.com/gpu"] == {use: 3600 if use is Use.USEFUL else 0 for use in HELD}


def test_a_cost_is_that_of_the_resources_with_a_price() -> None:
    prices = Prices(currency="EUR", hourly={CPU: Decimal("0.05"), "memory": Decimal("0.01"), "tpu": Decimal(9)})
    cost = show(a_row(), prices).cost
    assert cost == {use: {Use.USEFUL: Decimal("0.1"), Use.REPEATED: Decimal("0.08")}.get(use, 0) for use in HELD}


@pytest.mark.parametrize(
    ("resource", "unit"),
    [(CPU, 1000), ("memory", GIB), ("ephemeral-storage", GIB), ("hugepages-2Mi", GIB), ("example.com/gpu", 1)],
)
def test_the_unit_of_a_price(resource: str, unit: int) -> None:
    assert unit_of(resource) == unit
