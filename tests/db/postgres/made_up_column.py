"""Stores and reads values of columns that exist only in the copy of `app` that `test_columns.py` makes."""

import asyncio
import sys
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from app.db.installation import leases
from app.db.jobs import controller, edits, reads, scale_records
from app.db.jobs.rows import STORED_JOBS
from app.db.objects import resources
from app.db.objects.submission import New
from app.db.postgres import migrations
from app.db.postgres.engine import Database
from app.db.samples.rows import storage_of
from app.domain.access.actors import Actor
from app.domain.kinds.samples.kinds import SAMPLE_SET
from app.domain.plan import Rank
from app.domain.resize import ScaleChange
from app.domain.status.records import Attempt, Condition, JobStatus
from app.domain.vocabulary import ConditionType, JobPhase
from tests.db import factories
from tests.db.factories import NOW
from tests.db.samples import factories as samples

COLUMN = "made_up"
OTHER_COLUMN = "made_up_too"  # of a second record that is stored in the same table
_New = TypeVar("_New", bound=New[Any])


def with_value(record: Any, value: str, column: str = COLUMN) -> Any:
    return replace(record, **{column: value})


def with_value_in_row(new: _New, value: str) -> _New:
    return replace(new, row=with_value(new.row, value))


def value_of(record: Any, column: str = COLUMN) -> str | None:
    value: str | None = getattr(record, column)
    return value


async def check_submission(db: Database) -> UUID:
    status = with_value(JobStatus(), "status", OTHER_COLUMN)
    job = with_value_in_row(factories.new_job(status=status), "job")
    await factories.submitted(db, job)
    row = await resources.get(db, STORED_JOBS, job.uid)
    assert row is not None
    assert (value_of(row), value_of(row.status, OTHER_COLUMN)) == ("job", "status")
    (summary,) = (await reads.summaries(db, [job.uid])).values()
    assert value_of(summary.status, OTHER_COLUMN) == "status"
    return job.uid


async def check_scale_record(db: Database, uid: UUID) -> None:
    scale = with_value(ScaleChange(task="worker", from_replicas=1, to_replicas=2, reason="more"), "scale")
    manifest = factories.new_job().row.manifest
    await edits.edit(
        db,
        uid,
        edits.JobEdit(namespace="team-a", manifest=manifest, labels={}, actor=Actor("me"), at=NOW, scales=[scale]),
    )
    assert [value_of(record) for record in await scale_records.page(db, uid, limit=9)] == ["scale"]


async def check_decision(db: Database, uid: UUID) -> None:
    lease = await leases.acquire(db, "controller", "test", ttl=60)
    assert lease is not None
    job = await factories.stored(db, uid)
    assert value_of(job) == "job"
    condition = Condition(
        type=ConditionType.RUNNING,
        status="True",
        reason="",
        message="",
        last_transition_at=NOW,
        observed_generation=1,
    )
    status = replace(job.recorded.status, conditions=(with_value(condition, "condition"),))
    attempt = with_value(Attempt(number=1), "attempt")
    decision = factories.decision(
        with_value(status, "decided", OTHER_COLUMN),
        changed=[with_value(factories.replica("worker", 0, attempt), "replica", OTHER_COLUMN)],
        ended=[(Rank("worker", 1), attempt)],
        history=[with_value(factories.history(JobPhase.RUNNING), "line")],
    )
    for _ in range(2):  # the second time the rows of the replica and of the attempt exist
        job = await factories.stored(db, uid)
        assert await controller.persist(db, lease, [job.write(decision)]) == []
    whole = await reads.whole(db, uid)
    assert whole is not None
    assert value_of(whole.row.status, OTHER_COLUMN) == "decided"
    assert [value_of(one) for one in whole.row.status.conditions] == ["condition"]
    assert [value_of(stored.replica, OTHER_COLUMN) for stored in whole.replicas] == ["replica"]
    assert [value_of(stored.replica.attempt) for stored in whole.replicas] == ["attempt"]
    assert [value_of(ended) for _, _, ended in whole.attempts] == ["attempt"]
    (recorded,) = (await factories.stored(db, uid)).recorded.status.conditions
    assert value_of(recorded) == "condition"
    lines = await resources.history(db, STORED_JOBS, uid, limit=99)
    assert [value_of(line.entry) for line in lines][-2:] == ["line", "line"]


async def check_sample(db: Database) -> None:
    new = with_value_in_row(samples.new_set(), "sample")
    await samples.stored(db, new)
    row = await resources.get(db, storage_of(SAMPLE_SET), new.uid)
    assert value_of(row) == "sample"


async def main(url: str) -> None:
    assert migrations.drift(url) == [], "the models of the copy describe the database"
    db = await Database.open(url, pool_size=4)
    try:
        uid = await check_submission(db)
        await check_scale_record(db, uid)
        await check_decision(db, uid)
        await check_sample(db)
    finally:
        await db.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
