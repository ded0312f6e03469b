"""The time of an installation: followed while it drifts, kept when a clock steps, never behind what was recorded."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.timekeeping import (
    CONVERGENCE,
    PATIENCE,
    Counted,
    Reading,
    correction,
    first_time,
    in_words,
    shift_of_follower,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = 3600.0


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_reading(seconds: float, ahead: float = 0.0, reached: float | None = -5.0) -> Reading:
    return Reading(at=at(seconds), ahead=ahead, reached_at=None if reached is None else at(reached))


def counted(*, took: float = 0.0, since: float = 5.0) -> Counted:
    """The process counts noon in the middle of the reading."""
    return Counted(before=at(-took / 2), after=at(took / 2), since=since)


@pytest.mark.parametrize(
    ("clock", "ahead", "reached", "took", "since", "shift", "step"),
    [
        (0, 0, -5, 0.0, 5, 0, 0),
        (0.3, 0, -5, 0.0, 5, 0.3, 0),  # drift
        (3, 0, -5, 8.0, 5, 0, 0),  # within the time that the reading took
        (40, 0, -5, 0.0, 86_400, 40, 0),  # the database did not answer for a day
        (HOUR, 0, -5, 0.0, 5, 0, HOUR),
        (600, 0, -5, 0.0, 5, 0, 600),
        (-600, 0, -5, 0.0, 5, -5, -595),  # back, but not behind what is recorded
        (-HOUR, 0, None, 0.0, 5, -HOUR, 0),  # nothing is recorded: the earlier time
        (HOUR, -HOUR, -5, 0.0, 5, 0, 0),  # a step that was corrected before
        (0, -HOUR, -5, 0.0, 5, -5, -HOUR + 5),  # and taken back
        (HOUR, 0, 100, 0.0, 5, 100, HOUR - 100),  # this process was paused while another one held the lease
        (-100, 0, 50, 0.0, 5, 50, -150),  # nobody ran while the clock was set back
    ],
)
def test_the_holder_of_the_lease_follows_drift_and_keeps_the_earlier_time_after_a_step(
    clock: float, ahead: float, reached: float | None, took: float, since: float, shift: float, step: float
) -> None:
    found = correction(a_reading(clock, ahead, reached), counted(took=took, since=since))
    assert (found.shift, found.step) == pytest.approx((shift, step))
    if step:
        assert found.reached_at == at(found.shift) == at(clock + found.ahead)


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.none() | st.floats(-1e6, 0.0),
    st.floats(0.0, 30.0),
    st.floats(0.0, 1e5),
)
def test_no_correction_makes_time_pass_faster(
    clock: float, ahead: float, reached: float | None, took: float, since: float
) -> None:
    """Beyond drift, the time of the installation never leaps forward, and a step is not followed by another one."""
    reading, own = a_reading(clock, ahead, reached), counted(took=took, since=since)
    found = correction(reading, own)
    assert found.shift <= 1.001 + 0.001 * since
    if reached is not None and found.step:
        assert found.reached_at >= at(reached)
    stored = Reading(at=reading.at, ahead=found.ahead, reached_at=found.reached_at)
    shift = timedelta(seconds=found.shift)
    moved = Counted(before=own.before + shift, after=own.after + shift, since=since)
    assert correction(stored, moved).step == 0


def test_the_time_returns_to_the_clock_of_the_database_slowly() -> None:
    found = correction(a_reading(HOUR, -HOUR), counted(since=5))
    assert found.ahead == pytest.approx(-HOUR + CONVERGENCE * 5)
    assert correction(a_reading(0, 0.01), counted(since=5)).ahead == 0
    assert correction(a_reading(-HOUR, HOUR), counted(since=5)).ahead == pytest.approx(HOUR - CONVERGENCE * 5)


@pytest.mark.parametrize(
    ("clock", "differs_for", "shift"),
    [(0.5, 0, 0.5), (HOUR, 0, None), (-HOUR, PATIENCE, None), (HOUR, PATIENCE + 1, HOUR), (-600, PATIENCE + 1, -600)],
)
def test_other_processes_wait_for_the_holder_before_they_follow_a_step(
    clock: float, differs_for: float, shift: float | None
) -> None:
    assert shift_of_follower(a_reading(clock), counted(), differs_for=differs_for) == shift


def test_a_process_starts_with_the_stored_time() -> None:
    assert first_time(a_reading(10, 5, None)) == at(15)
    assert first_time(a_reading(10, 5, 3)) == at(15)
    assert first_time(a_reading(-HOUR, 0, -3)) == at(-3)


def test_a_difference_in_words() -> None:
    assert in_words(3600.4) == "3600 s ahead of"
    assert in_words(-600) == "600 s behind"
