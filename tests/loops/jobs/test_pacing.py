"""A change is reconciled at once after a pause; those that follow share a reconcile, the larger the job the later."""

import pytest

from app.loops.jobs.pacing import LONGEST, Pacing, interval
from tests.loops.harness import SkippingClock

LEAST = 0.05


@pytest.mark.parametrize(
    ("replicas", "seconds"), [(0, LEAST), (20, LEAST), (1000, 0.3), (10_000, LONGEST), (1_000_000, LONGEST)]
)
def test_the_interval_grows_with_the_job_and_is_bounded(replicas: int, seconds: float) -> None:
    assert interval(replicas, LEAST) == pytest.approx(seconds)


def test_only_changes_shortly_after_a_reconcile_wait() -> None:
    clock = SkippingClock()
    pacing = Pacing(clock, {"large": 8000, "small": 1}.__getitem__, least=1000.0)
    assert pacing.delay("large") == 0
    pacing.reconciled("large")
    assert 0 < pacing.delay("large") <= 1000
    assert pacing.delay("small") == 0
    clock.skip(1001)
    assert pacing.delay("large") == 0
    pacing.reconciled("large")
    pacing.forget("large")
    assert pacing.delay("large") == 0
