"""A new intent is queued once, and the queries of a backlog take a bounded share of the time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import pytest

from app.db.jobs.controller import LiveJob
from app.loops.intents import FEW_JOBS, PAUSE_FACTOR, Intents, pause, to_queue
from tests.loops.harness import Harness

JOB = UUID(int=1)
EARLIER, LATER = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (0, 1))


@pytest.mark.parametrize(
    ("known", "busy", "queued"),
    [
        ({}, False, True),
        ({JOB: EARLIER}, True, True),
        ({JOB: LATER}, True, False),
        # Its worker gave it back without a decision, or a hint was lost.
        ({JOB: LATER}, False, True),
    ],
    ids=["new", "changed while busy", "busy since the query before", "not busy"],
)
def test_a_busy_job_is_queued_again_only_for_a_new_intent(
    known: Mapping[UUID, datetime], *, busy: bool, queued: bool
) -> None:
    job = LiveJob(uid=JOB, namespace="team", intent_at=LATER)
    assert to_queue([job], known, {JOB} if busy else ()) == [job] * queued


@pytest.mark.parametrize(
    ("jobs", "seconds", "expected"),
    [(0, 1.0, 0.0), (FEW_JOBS, 1.0, 0.0), (FEW_JOBS + 1, 0.01, PAUSE_FACTOR * 0.01), (FEW_JOBS + 1, 3.0, 1.0)],
)
def test_a_query_of_a_backlog_is_followed_by_a_bounded_pause(jobs: int, seconds: float, expected: float) -> None:
    assert pause(jobs, seconds, longest=1.0) == expected


async def test_each_query_queues_what_no_worker_has_and_no_back_off_delays(harness: Harness) -> None:
    uid = await harness.submit()
    queued: list[LiveJob] = []
    intents = Intents(harness.context, harness.queue, queued.extend)

    async def read() -> list[UUID]:
        queued.clear()
        await intents.read()
        return [job.uid for job in queued]

    assert await read() == [uid]
    key = await harness.queue.get()
    assert await read() == [], "a worker has it"
    harness.queue.add_rate_limited(key)
    harness.queue.done(key)
    assert await read() == [], "it waits for its back-off"
    harness.queue.forget(key)
    assert await read() == [uid]
