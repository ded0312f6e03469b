"""What the time of a hold was good for, and when a job waits and works."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.usage.holds import (
    UNUSED,
    Hold,
    JobMoment,
    JobUse,
    Period,
    UsePart,
    end_hold,
    held_requests,
    next_use,
    parts_of,
    use_of,
    wait_of,
)
from app.domain.vocabulary import Outcome, StopReason, Use

U, R, D, IDLE = Use.USEFUL, Use.REPEATED, Use.DISRUPTED, Use.IDLE
SUCCEEDED, FAILED, STOPPED = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.STOPPED


def lengths(hold: Hold, outcome: Outcome | None, job: JobUse = UNUSED) -> list[Any]:
    return [tuple(piece) for piece in parts_of(hold, job, outcome, None)]


# A hold from 0 to 100.
@pytest.mark.parametrize(
    ("started", "work", "outcome", "pieces"),
    [
        pytest.param(None, None, FAILED, [(R, 0, 100)], id="never started"),
        pytest.param(10, Period(since=10), FAILED, [(R, 0, 10), (R, 10, 100)], id="the only replica"),
        pytest.param(10, Period(since=40), FAILED, [(R, 0, 10), (IDLE, 10, 40), (R, 40, 100)], id="waits for others"),
        pytest.param(10, None, FAILED, [(R, 0, 10), (IDLE, 10, 100)], id="waits to its end"),
        pytest.param(10, Period(since=40), SUCCEEDED, [(U, 0, 40), (U, 40, 100)], id="a success has not waited"),
        pytest.param(10, None, SUCCEEDED, [(U, 0, 100)], id="a success before the others start"),
        pytest.param(
            10, Period(since=5, until=70), SUCCEEDED, [(U, 0, 5), (U, 5, 70), (IDLE, 70, 100)], id="outlives its job"
        ),
        pytest.param(30, Period(since=5, until=7), None, [(U, 0, 30), (IDLE, 30, 100)], id="starts after the end"),
        pytest.param(
            None, Period(since=50, until=50), STOPPED, [(U, 0, 50), (IDLE, 50, 100)], id="stopped before it works"
        ),
        pytest.param(-5, Period(since=-9), FAILED, [(R, 0, 100)], id="joins a job that works"),
        pytest.param(10, Period(since=140, until=150), FAILED, [(R, 0, 10), (IDLE, 10, 100)], id="the job works later"),
    ],
)
def test_each_part_of_a_hold_has_one_use(
    started: int | None, work: Period | None, outcome: Outcome | None, pieces: list[Any]
) -> None:
    hold = Hold(since=0, until=100, started=started, work=work, requests={})
    assert lengths(hold, outcome) == pieces


def test_a_hold_that_goes_on_is_open_at_its_end() -> None:
    hold = Hold(since=0, started=10, requests={})
    assert lengths(hold, None) == [(U, 0, 10), (IDLE, 10, None)]
    works = JobUse(work=Period(since=20))
    assert lengths(hold, None, works) == [(U, 0, 10), (IDLE, 10, 20), (U, 20, None)]
    over = JobUse(work=Period(since=20, until=30))
    assert lengths(hold, None, over) == [(U, 0, 10), (IDLE, 10, 20), (U, 20, 30), (IDLE, 30, None)]


@pytest.mark.parametrize(("now", "until"), [(90, 90), (50, 50), (20, 50)])
def test_no_clock_makes_a_hold_negative(now: int, until: int) -> None:
    work = Period(since=40)
    ended = end_hold(Hold(since=50, requests={}), JobUse(work=work), now)
    assert (ended.until, ended.work) == (until, work)
    assert sum((piece.until or 0) - piece.since for piece in parts_of(ended, UNUSED, FAILED, None)) == until - 50


@pytest.mark.parametrize(
    ("outcome", "stopping", "use"),
    [
        (None, None, U),
        (None, StopReason.EVICT, U),
        (SUCCEEDED, None, U),
        (FAILED, None, R),
        (FAILED, StopReason.SCALE_DOWN, R),
        (Outcome.DISRUPTED, None, D),
        (STOPPED, StopReason.PAUSE, U),
        (STOPPED, StopReason.CANCEL, U),
        (STOPPED, StopReason.EVICT, D),
        (STOPPED, StopReason.UNPLACEABLE, D),
        (STOPPED, StopReason.START_DEADLINE, D),
    ],
)
def test_the_use_of_an_attempt_follows_from_its_end(
    outcome: Outcome | None, stopping: StopReason | None, use: Use
) -> None:
    assert use_of(outcome, stopping) is use


WAITS = JobMoment(works=False, stops=False, starts=True, waits=True, holds=False, submitted=None, now=50)
WORKS = replace(WAITS, works=True, holds=True)
STOPS = replace(WAITS, stops=True, starts=False, waits=False)


@pytest.mark.parametrize(
    ("before", "moment", "after"),
    [
        pytest.param(UNUSED, replace(WAITS, submitted=20), JobUse(queued_since=20), id="waits since its submission"),
        pytest.param(UNUSED, replace(WAITS, submitted=80), JobUse(queued_since=50), id="submitted by another clock"),
        pytest.param(UNUSED, replace(WAITS, holds=True), UNUSED, id="holds a node"),
        pytest.param(
            JobUse(queued_since=20, queued=5), replace(WAITS, holds=True), JobUse(queued=35), id="gets a node"
        ),
        pytest.param(JobUse(queued_since=70), replace(WAITS, holds=True), UNUSED, id="the clock was set back"),
        pytest.param(JobUse(queued_since=20), WAITS, JobUse(queued_since=20), id="goes on waiting"),
        pytest.param(JobUse(queued_since=20), WORKS, JobUse(queued=30, work=Period(since=50)), id="works at once"),
        pytest.param(JobUse(work=Period(since=9)), WAITS, JobUse(work=Period(since=9)), id="works on in a restart"),
        pytest.param(JobUse(work=Period(since=9)), STOPS, JobUse(work=Period(since=9, until=50)), id="is stopped"),
        pytest.param(UNUSED, STOPS, JobUse(work=Period(since=50, until=50)), id="is stopped before it works"),
        pytest.param(
            JobUse(work=Period(since=9, until=12)), STOPS, JobUse(work=Period(since=9, until=12)), id="stays stopped"
        ),
        pytest.param(JobUse(work=Period(since=9, until=12)), WAITS, JobUse(queued_since=50), id="waits to start again"),
        pytest.param(
            JobUse(work=Period(since=9, until=12)),
            replace(WAITS, starts=False),
            JobUse(queued_since=50, work=Period(since=9, until=12)),
            id="waits for its queue",
        ),
        pytest.param(JobUse(work=Period(since=9, until=12)), WORKS, JobUse(work=Period(since=50)), id="works again"),
        pytest.param(
            JobUse(work=Period(since=60)), STOPS, JobUse(work=Period(since=60, until=60)), id="never negative"
        ),
    ],
)
def test_when_a_job_waits_and_works(before: JobUse, moment: JobMoment, after: JobUse) -> None:
    assert next_use(before, moment) == after
    assert next_use(after, replace(moment, submitted=None)) == after


def test_a_wait_is_counted_when_it_ends() -> None:
    waits, holds = JobUse(queued_since=20, queued=5), JobUse(queued=35)
    assert wait_of(waits, holds) == UsePart(Use.QUEUED, 20, 50)
    assert wait_of(waits, waits) is None
    assert wait_of(holds, waits) is None


def test_requests_are_whole_numbers_and_a_pod_is_one_of_them() -> None:
    resources = {"requests": {"cpu": "100.5m", "memory": "1Gi", "hugepages-2Mi": "0"}, "limits": {"a.b/gpu": "3"}}
    requests = held_requests({"containers": [{"resources": resources}], "overhead": {"cpu": "1"}})
    assert requests == {"cpu": 1101, "memory": 2**30, "a.b/gpu": 3, "pods": 1}
    assert held_requests({}) == {"pods": 1}
