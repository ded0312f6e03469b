"""Computed metrics have the values of their owners, and no sample without an owner."""

from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, generate_latest

from app.base.instruments import ComputedMetric, expose


@pytest.fixture
def gauge() -> Iterator[ComputedMetric]:
    made = ComputedMetric("gauge", "jobgate_made_up", "Made up.", ("of",))
    yield made
    REGISTRY.unregister(made)


@pytest.fixture
def counter() -> Iterator[ComputedMetric]:
    made = ComputedMetric("counter", "jobgate_made_up_total", "Made up.")
    yield made
    REGISTRY.unregister(made)


def lines(name: str) -> list[str]:
    return [line for line in generate_latest(REGISTRY).decode().splitlines() if line.startswith(name)]


def test_values_are_computed_at_each_scrape_while_they_have_an_owner(gauge: ComputedMetric) -> None:
    values = iter([1, 2])
    assert lines("jobgate_made_up") == []
    with expose({gauge: lambda: {("a",): next(values), ("b",): 5}}):
        assert lines("jobgate_made_up") == ['jobgate_made_up{of="a"} 1.0', 'jobgate_made_up{of="b"} 5.0']
        assert lines("jobgate_made_up") == ['jobgate_made_up{of="a"} 2.0', 'jobgate_made_up{of="b"} 5.0']
    assert lines("jobgate_made_up") == []


def test_the_last_of_several_owners_counts(gauge: ComputedMetric) -> None:
    with expose({gauge: lambda: {("a",): 1}}):
        with expose({gauge: lambda: {("a",): 2}}):
            assert lines("jobgate_made_up") == ['jobgate_made_up{of="a"} 2.0']
        assert lines("jobgate_made_up") == ['jobgate_made_up{of="a"} 1.0']


def test_a_counter_has_its_suffix_once(counter: ComputedMetric) -> None:
    with expose({counter: lambda: {(): 3}}):
        assert lines("jobgate_made_up") == ["jobgate_made_up_total 3.0"]
    assert "# TYPE jobgate_made_up_total counter" in generate_latest(REGISTRY).decode()
