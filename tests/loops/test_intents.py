"""A new intent is queued once, and the queries of a backlog take a bounded share of the time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import pytest

from app.db.jobs.controller import LiveJob
from app.loops.intents import FEW, REST, rest, unread

JOB = UUID(int=1)
EARLIER, LATER = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (0, 1))


@pytest.mark.parametrize(
    ("known", "in_work", "queued"),
    [
        ({}, False, True),
        ({JOB: EARLIER}, True, True),
        ({JOB: LATER}, True, False),
        # Its worker gave it back without a decision, or a hint was lost.
        ({JOB: LATER}, False, True),
    ],
    ids=["new", "changed while in work", "in work since the query before", "not in work"],
)
def test_a_job_in_work_is_queued_again_only_for_a_new_intent(
    known: Mapping[UUID, datetime], *, in_work: bool, queued: bool
) -> None:
    job = LiveJob(uid=JOB, namespace="team", wake_at=None, intent_at=LATER)
    assert unread([job], known, {JOB} if in_work else ()) == [job] * queued


@pytest.mark.parametrize(("jobs", "pause"), [(0, 0.0), (FEW, 0.0), (FEW + 1, 2 * REST)])
def test_a_query_of_a_backlog_is_followed_by_a_pause(jobs: int, pause: float) -> None:
    assert rest(jobs, 2.0) == pause
