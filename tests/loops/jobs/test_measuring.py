"""The lag of the mirror counts from the first change that no stored decision has observed."""

import pytest

from app.loops.jobs.measuring import ChangeLag
from tests.k8s.support import ManualClock
from tests.support.telemetry.metrics import value

JOB = "a job"
# Each step: the second at which it happens, and what happens.
CASES = {
    "one change": ([(0, "changed"), (1, "observed"), (3, "stored")], [3.0]),
    "several changes": ([(0, "changed"), (2, "changed"), (3, "observed"), (4, "stored")], [4.0]),
    "a change after the observation": (
        [(0, "changed"), (1, "observed"), (2, "changed"), (3, "stored"), (5, "observed"), (9, "stored")],
        [3.0, 7.0],
    ),
    "a decision that is not stored": ([(0, "changed"), (1, "observed"), (5, "observed"), (6, "stored")], [6.0]),
    "no change": ([(0, "observed"), (1, "stored")], []),
    "forgotten": ([(0, "changed"), (1, "observed"), (1, "changed"), (2, "forget"), (3, "observed"), (4, "stored")], []),
}


@pytest.mark.parametrize(("steps", "lags"), CASES.values(), ids=list(CASES))
def test_lag(steps: list[tuple[float, str]], lags: list[float]) -> None:
    clock = ManualClock()
    lag = ChangeLag(clock)
    before = value("jobgate_mirror_lag_seconds_count"), value("jobgate_mirror_lag_seconds_sum")
    for second, step in steps:
        clock.seconds = second
        getattr(lag, step)(JOB)
    assert value("jobgate_mirror_lag_seconds_count") - before[0] == len(lags)
    assert value("jobgate_mirror_lag_seconds_sum") - before[1] == pytest.approx(sum(lags))
