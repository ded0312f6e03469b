"""Which stages in the life of a job end with a change of its status, and after how long."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.queueing.admission import Queueing
from app.domain.status.milestones import Stage, evictions, milestones, queue_wait
from app.domain.status.records import JobStatus

SUBMITTED = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else SUBMITTED + timedelta(seconds=seconds)


def status(initialized: float | None = None, started: float | None = None, finished: float | None = None) -> JobStatus:
    return JobStatus(initialized_at=at(initialized), started_at=at(started), finished_at=at(finished))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (status(), status(), {}),
        (status(), status(2), {Stage.CREATION: 2}),
        (status(2), status(2, 5), {Stage.START: 3}),
        (status(2, 5), status(2, 5, 65), {Stage.RUN: 60}),
        (status(), status(1, 2, 4), {Stage.CREATION: 1, Stage.START: 1, Stage.RUN: 2}),
        (status(2, 5), status(2, 5), {}),
        (status(2, 5, 65), status(2, 5, 65), {}),
        (status(), status(None, None, 9), {}),
        (status(), status(None, 3), {Stage.START: 3}),
        (status(None, 3), status(4, 3), {Stage.CREATION: 4}),
        (status(), status(-1), {Stage.CREATION: 0}),
    ],
    ids=[
        "nothing",
        "created",
        "running",
        "ended",
        "all at once",
        "nothing new",
        "ended before",
        "ended without a run",
        "runs without all pods",
        "all pods after the start",
        "another clock",
    ],
)
def test_stages_end_once(before: JobStatus, after: JobStatus, expected: dict[Stage, float]) -> None:
    assert {one.stage: one.seconds for one in milestones(before, after, SUBMITTED)} == expected


def test_a_restart_ends_no_stage_again() -> None:
    running = status(2, 5)
    assert list(milestones(running, replace(running, restarts=1), SUBMITTED)) == []


WAITING = Queueing(name="team", queued_at=at(10))
ADMITTED = replace(WAITING, admission={}, admitted_at=at(25))
EVICTED = replace(ADMITTED, evicted="Preempted", evicted_at=at(40))
WAITS_AGAIN = replace(EVICTED, admission=None, queued_at=at(50), admitted_at=None)
ADMITTED_AGAIN = replace(WAITS_AGAIN, admission={}, admitted_at=at(55))


@pytest.mark.parametrize(
    ("before", "after", "waited", "reason"),
    [
        (None, None, None, None),
        (None, WAITING, None, None),
        (WAITING, WAITING, None, None),
        (WAITING, ADMITTED, 15, None),
        # The first reconcile finds an admission.
        (None, ADMITTED, 15, None),
        (ADMITTED, ADMITTED, None, None),
        (ADMITTED, EVICTED, None, "Preempted"),
        (EVICTED, EVICTED, None, None),
        (EVICTED, WAITS_AGAIN, None, None),
        # The pods of an evicted job can be gone at once.
        (ADMITTED, WAITS_AGAIN, None, "Preempted"),
        (WAITS_AGAIN, ADMITTED_AGAIN, 5, None),
        (ADMITTED_AGAIN, replace(ADMITTED_AGAIN, evicted="Stopped", evicted_at=at(60)), None, "Stopped"),
        # A job that waits gives nothing back.
        (WAITING, replace(WAITING, evicted="Deactivated", evicted_at=at(40)), None, None),
        (ADMITTED, None, None, None),
        # An earlier version did not store these times. The clock of another process was ahead.
        (Queueing(name="team"), Queueing(name="team", admission={}, admitted_at=at(25)), None, None),
        (replace(WAITING, queued_at=at(30)), replace(ADMITTED, queued_at=at(30)), 0, None),
    ],
)
def test_each_wait_and_each_eviction_counts_once(
    before: Queueing | None, after: Queueing | None, waited: float | None, reason: str | None
) -> None:
    statuses = JobStatus(queueing=before), JobStatus(queueing=after)
    assert (queue_wait(*statuses), [*evictions(*statuses)]) == (waited, [] if reason is None else [reason])
