"""Jobs and decisions to store."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from app.db.installation.leases import Lease
from app.db.jobs import controller
from app.db.jobs.controller import StoredJob
from app.db.jobs.rows import JobRow
from app.db.jobs.submit import NewJob, submit
from app.db.objects.submission import Submitted
from app.db.postgres.engine import Database
from app.domain.plan import Rank
from app.domain.reconcile.values import Decision
from app.domain.reservations.name_ranges import NameKind, NameRange, merge_ranges
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Replica
from app.domain.vocabulary import JobPhase

NOW = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def new_job(name: str = "train", **changes: Any) -> NewJob:
    """Return a job to store. `changes` are those of its row and of the job itself."""
    row = JobRow(
        uid=uuid4(),
        namespace="team-a",
        name=name,
        kind="GenericJob",
        api_version="batch.tensorstack.dev/v1beta1",
        labels={"app": "demo"},
        manifest={"kind": "GenericJob", "spec": {"replicaSpecs": [{"type": "worker", "replicas": 2}]}},
        created_at=NOW,
        created_by="alice",
        status=JobStatus(),
    )
    own = {field.name: changes.pop(field.name) for field in fields(NewJob) if field.name in changes}
    row = replace(row, **changes)
    pods = (NameRange("pod", f"{name}-worker-0"), NameRange("pod", f"{name}-worker-1"), NameRange("service", name))
    names = merge_ranges((*own.pop("names", pods), NameRange(NameKind.JOB, row.name)))
    return NewJob(row=row, names=names, **own)


async def submitted(db: Database, *jobs: NewJob) -> list[UUID]:
    answers = await submit(db, jobs)
    assert all(isinstance(answer, Submitted) for answer in answers), answers
    return [job.uid for job in jobs]


def replica(task: str, rank: int, attempt: Attempt | None = None, **changes: Any) -> Replica:
    return replace(Replica(key=Rank(task, rank), attempt=attempt or Attempt(number=1)), **changes)


def decision(
    status: JobStatus,
    *,
    changed: Sequence[Replica] = (),
    ended: Sequence[tuple[Rank, Attempt]] = (),
    history: Sequence[HistoryEntry] = (),
    wake_at: datetime | None = None,
    dirty: bool = True,
) -> Decision:
    return Decision(
        status=status,
        replicas={one.key: one for one in changed},
        changed=tuple(changed),
        ended=tuple(ended),
        history=tuple(history),
        actions=(),
        wake_at=wake_at,
        dirty=dirty,
        again=False,
    )


def history(phase: JobPhase, reason: str = "Because", **changes: Any) -> HistoryEntry:
    return replace(HistoryEntry(at=NOW, phase=phase, reason=reason, message=""), **changes)


async def stored(db: Database, uid: UUID) -> StoredJob:
    return (await controller.load(db, [uid]))[uid]


async def move(db: Database, lease: Lease, uid: UUID, phase: JobPhase, **status: Any) -> None:
    """Write a decision that moves the job to this phase."""
    job = await stored(db, uid)
    finished = NOW if phase.is_terminal else None
    status = {"finished_at": finished} | status
    write = job.write(decision(replace(job.recorded.status, phase=phase, **status), history=[history(phase)]))
    assert await controller.persist(db, lease, [write]) == []


async def names_held(db: Database) -> dict[tuple[str, str], UUID]:
    """The job that has each reserved name, by kind and name."""
    async with db.read() as connection:
        rows = await connection.fetch("SELECT job_uid, kind, name, count FROM names WHERE NOT released")
    held = [
        ((row["kind"], name), row["job_uid"])
        for row in rows
        for name in NameRange(row["kind"], row["name"], row["count"]).names
    ]
    assert len(held) == len(dict(held)), "no two jobs have one name"
    return dict(held)
