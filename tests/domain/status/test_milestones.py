"""Which stages in the life of a job end with a change of its status, and after how long."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.status.milestones import Stage, milestones
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
