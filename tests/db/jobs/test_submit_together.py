"""Clients and controllers change the same rows concurrently. Each change has one feed entry and one history row."""

import asyncio
import random
from dataclasses import replace
from uuid import UUID

from app.db.feed import entries
from app.db.installation.leases import Lease
from app.db.jobs import controller, edits, evidence
from app.db.jobs.edits import JobEdit
from app.db.jobs.evidence import Capture, Log
from app.db.jobs.submit import Undecided, submit
from app.db.objects.submission import NameTaken, Submitted
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.errors import Conflict
from app.domain.plan import Rank
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence, JobPhase
from tests.db.factories import NOW, decision, history, new_job, replica

ROUNDS = 12
NAMES = 6
NEXT = {
    JobPhase.QUEUED: JobPhase.RUNNING,
    JobPhase.RUNNING: JobPhase.SUCCEEDED,
    JobPhase.SUCCEEDED: JobPhase.SUCCEEDED,
}
VERSIONS = """
SELECT j.uid, j.version, array_agg(e.version ORDER BY e.seq) AS announced
FROM jobs AS j JOIN job_events AS e ON e.job_uid = j.uid GROUP BY j.uid, j.version
"""
LINES = """
SELECT j.uid, j.history_count, array_agg(h.seq ORDER BY h.seq) AS lines
FROM jobs AS j JOIN status_history AS h ON h.job_uid = j.uid GROUP BY j.uid, j.history_count
"""


async def client(db: Database, number: int, uids: list[UUID]) -> None:
    chance = random.Random(number)
    for _ in range(ROUNDS):
        batch = [new_job(f"job-{chance.randrange(NAMES)}", created_by=f"client-{number}") for _ in range(3)]
        for job, answer in zip(batch, await submit(db, batch), strict=True):
            assert isinstance(answer, Submitted | NameTaken | Undecided)
            if isinstance(answer, Submitted):
                uids.append(job.uid)
        if uids:
            await change(db, chance, chance.choice(uids))


async def change(db: Database, chance: random.Random, uid: UUID) -> None:
    what = chance.randrange(3)
    if what == 0:
        await edits.request_cancel(db, uid, actor=Actor("a"), at=NOW)
    elif what == 1:
        await edits.request_deletion(db, uid, actor=Actor("a"), at=NOW)
    else:
        try:
            await edits.edit(db, uid, JobEdit(namespace="team-a", manifest={}, labels={}, actor=Actor("a"), at=NOW))
        except Conflict:
            return


async def controller_writes(db: Database, lease: Lease, number: int) -> None:
    """Move all live jobs to their next phases. Several tasks do this concurrently with the same jobs."""
    chance = random.Random(number)
    for _ in range(ROUNDS):
        uids = [one.uid for one in await controller.read_live(db)]
        chance.shuffle(uids)
        writes = []
        for job in (await controller.load(db, uids[:8])).values():
            phase = NEXT[job.recorded.status.phase]
            gone = NOW if phase is job.recorded.status.phase else None
            status = replace(
                job.recorded.status, phase=phase, finished_at=NOW if phase.is_terminal else None, gone_at=gone
            )
            worker = replica("worker", 0, Attempt(number=1))
            writes.append(job.write(decision(status, changed=[worker], history=[history(phase), history(phase)])))
        await controller.persist(db, lease, writes)
        for uid in uids[:2]:
            capture = Capture(key=Rank("worker", 0), attempt=1, state=Evidence.CAPTURED, logs={"c": Log(tail=b"x")})
            await evidence.store(db, lease, uid, [capture])


async def test_concurrent_transactions_do_not_deadlock_and_the_feed_has_every_change_once(
    db: Database, lease: Lease
) -> None:
    uids: list[UUID] = []
    async with asyncio.timeout(200), asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(client(db, number, uids))
        for number in range(3):
            tasks.create_task(controller_writes(db, lease, number))
    while await entries.publish(db, 100):
        pass
    async with db.read() as connection:
        versions, lines = await connection.fetch(VERSIONS), await connection.fetch(LINES)
    assert len(versions) == len(lines) == len(uids) > NAMES
    for row in versions:
        assert row["announced"] == list(range(1, row["version"] + 1)), "the feed has every version once, in order"
    for row in lines:
        assert row["lines"] == list(range(1, row["history_count"] + 1)), "history has no gap"
