"""The controller gives room when a job ends, and lets the next jobs report what they wait for."""

import asyncio
from dataclasses import replace

from app.db.jobs.submit import submit
from app.db.objects.submission import Submitted
from app.domain.reservations.name_ranges import NameRange
from app.domain.reservations.pod_limits import PodLimits
from app.domain.vocabulary import JobPhase
from app.loops.jobs.room_turns import RoomTurns
from tests.db.factories import later, move, new_job, stored
from tests.loops.harness import WITHIN, Harness
from tests.support.waiting import until

LIMITS = PodLimits(installation=100, namespace=10, waiting=10)


async def test_the_end_of_a_job_starts_the_next_one(harness: Harness) -> None:
    jobs = [
        new_job(name, pods=pods, names=(NameRange("pod", f"{name}-0"),), created_at=later(age))
        for age, (name, pods) in enumerate((("runs", 8), ("large", 9), ("small", 1)))
    ]
    answers = await submit(harness.db, jobs, LIMITS)
    assert {type(answer) for answer in answers} == {Submitted}
    runs, large, small = (job.uid for job in jobs)
    woken: list[str] = []
    # Without the end, the turns would read again after ten minutes.
    settings = replace(harness.context.settings, pod_limits=LIMITS, poll_every=600.0)
    turns = RoomTurns(replace(harness.context, settings=settings), harness.leadership, woken.append)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turns.run())
        await until(lambda: woken, lambda found: found == [str(large), str(small)], what="they speak", within=WITHIN)
        woken.clear()
        await move(harness.db, harness.leadership.lease, runs, JobPhase.SUCCEEDED)
        turns.note_end("team-a")
        await until(
            lambda: woken, lambda found: set(found) == {str(large), str(small)}, what="both start", within=WITHIN
        )
        running.cancel()
    assert [(await stored(harness.db, uid)).room_wait for uid in (large, small)] == [None, None]
