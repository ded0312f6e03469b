"""Quantiles of recent calls to the API server."""

import asyncio

import pytest

from app.k8s.session.latency import RECENT, CallTimes
from tests.k8s.support import ManualClock


def measure(times: CallTimes, clock: ManualClock, seconds: float) -> None:
    with times.measure("get"):
        clock.seconds += seconds


def test_quantiles_of_calls() -> None:
    clock = ManualClock()
    times = CallTimes(clock)
    assert times.quantile(0.5) is None
    for hundredths in range(1, 101):
        measure(times, clock, hundredths / 100)
    assert times.quantile(0.5) == pytest.approx(0.51)
    assert times.quantile(0.99) == pytest.approx(1.0)
    clock.seconds += RECENT + 1
    assert times.quantile(0.5) is None


@pytest.mark.parametrize(("error", "expected"), [(OSError("no answer"), 2.0), (asyncio.CancelledError(), None)])
def test_failed_calls_count_and_cancelled_ones_do_not(error: BaseException, expected: float | None) -> None:
    clock = ManualClock()
    times = CallTimes(clock)

    def call() -> None:
        with times.measure("get"):
            clock.seconds += 2.0
            raise error

    with pytest.raises(type(error)):
        call()
    assert times.quantile(0.99) == expected
