"""A change is reconciled at once after a pause; those that follow share a reconcile, the larger the job the later."""

import pytest

from app.loops.jobs.reconcile_intervals import LONGEST, ReconcileIntervals, interval
from tests.loops.harness import SkippingClock

LEAST = 0.05


@pytest.mark.parametrize(
    ("replicas", "seconds"), [(0, LEAST), (20, LEAST), (1000, 0.3), (10_000, LONGEST), (1_000_000, LONGEST)]
)
def test_the_interval_grows_with_the_job_and_is_bounded(replicas: int, seconds: float) -> None:
    assert interval(replicas, LEAST) == pytest.approx(seconds)


def test_only_changes_shortly_after_a_reconcile_wait() -> None:
    clock = SkippingClock()
    intervals = ReconcileIntervals(clock, {"large": 8000, "small": 1}.__getitem__, least=1000.0)
    assert intervals.delay("large") == 0
    intervals.note_reconcile("large")
    assert 0 < intervals.delay("large") <= 1000
    assert intervals.delay("small") == 0
    clock.skip(1001)
    assert intervals.delay("large") == 0
    intervals.note_reconcile("large")
    intervals.forget("large")
    assert intervals.delay("large") == 0
