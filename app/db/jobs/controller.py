"""What the controller reads of jobs, and the only statement that writes what it concluded.

How it finds out that people want something: whatever they ask for (a new job, an edit, cancel, remove) raises
`jobs.intent_version` and sets `intent_at`; a write that was decided on that version sets `intent_at` to null.
`pending_intents` reads the partial index on the rows where it is not null, whose size is the backlog and not the number
of jobs; a status update does not change the column, so the index costs it nothing. A notification on
`notifications.INTENT` only says "look now": lost hints cost a poll interval, never a job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.db import leases
from app.db.columns import columns, record_columns
from app.db.engine import Connection, Database
from app.db.jobs import scale_records
from app.db.jobs.controller_writes import JobWrite, store
from app.db.jobs.replicas import load_replicas
from app.db.jobs.rows import STATUS, load_conditions, status_from
from app.db.leases import Lease
from app.db.queries import in_namespaces, namespace_arguments
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.plan import Manifest, Rank
from app.domain.reconcile.values import Decision
from app.domain.status.records import Intent, Recorded
from app.models.jobs import jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job as a pass of the controller finds it."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    api_version: str
    manifest: Manifest
    generation: int
    version: int
    intent_version: int
    intent_at: datetime | None
    status_version: int
    created_at: datetime
    deleted_at: datetime | None
    wake_at: datetime | None
    intent: Intent
    recorded: Recorded

    @property
    def intent_is_new(self) -> bool:
        """No decision has known the present intent: persist the next one even if it changes nothing."""
        return self.intent_at is not None

    def write(
        self, decision: Decision, *, observed_at: datetime | None = None, pod_names: Mapping[Rank, str] | None = None
    ) -> JobWrite:
        """The write of a decision that was made on this job as it is here."""
        return JobWrite(
            uid=self.uid,
            generation=self.generation,
            status_version=self.status_version,
            intent_version=self.intent_version,
            decision=decision,
            observed_at=observed_at,
            removed=tuple(key for key in self.recorded.replicas if key not in decision.replicas),
            replaces_conditions=decision.status.conditions != self.recorded.status.conditions,
            pod_names=pod_names or {},
        )


class LiveJob(NamedTuple):
    uid: UUID
    namespace: str
    wake_at: datetime | None


class JobSize(NamedTuple):
    """What decides how much memory a pass over a job takes. `replicas` is the larger of the desired and the stored."""

    replicas: int
    manifest_bytes: int


_SIZES = """
SELECT j.uid,
       GREATEST((SELECT sum(bucket.value::int) FROM jsonb_each_text(j.status -> 'aggregate') AS bucket),
                (SELECT count(*) FROM replicas AS r WHERE r.job_uid = j.uid)),
       octet_length(j.manifest::text)
FROM jobs AS j WHERE j.uid = ANY($1::uuid[])
"""
_STORED: Final = record_columns(jobs, StoredJob, elsewhere=["intent", "recorded"])
_REQUESTS: Final = columns(jobs, "cancel_requested_at", "cancel_requested_by", "cancel_reason", "remove_requested_at")
_LOAD: Final = f"""
SELECT {_STORED + STATUS + _REQUESTS}, status, scale_count
FROM jobs WHERE uid = ANY($1::uuid[]) AND {in_namespaces(2)}
"""  # noqa: S608  constants
_LIVE = f"SELECT uid, namespace, wake_at FROM jobs WHERE NOT quiet AND {in_namespaces(1)}"  # noqa: S608  our own words
_DUE = f"""
SELECT uid, namespace, wake_at FROM jobs WHERE wake_at <= $1 AND {in_namespaces(3)} ORDER BY wake_at LIMIT $2
"""  # noqa: S608  our own words
_EXISTING = "SELECT uid FROM jobs WHERE uid = ANY($1::uuid[])"
_PENDING_INTENTS = f"""
SELECT uid, namespace, wake_at FROM jobs WHERE intent_at IS NOT NULL AND {in_namespaces(2)} ORDER BY intent_at LIMIT $1
"""  # noqa: S608  our own words


async def live(db: Database, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveJob]:
    """Every job that needs the controller: it has not ended, or something of it is still to be done."""
    async with db.read() as connection:
        return [LiveJob(*row) for row in await connection.fetch(_LIVE, *namespace_arguments(served))]


async def due(db: Database, now: datetime, limit: int, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveJob]:
    """Jobs whose `wake_at` has come, the longest overdue first."""
    async with db.read() as connection:
        return [LiveJob(*row) for row in await connection.fetch(_DUE, now, limit, *namespace_arguments(served))]


async def pending_intents(db: Database, limit: int, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveJob]:
    """Jobs of which people want something that no decision has known yet, the longest waiting first."""
    async with db.read() as connection:
        rows = await connection.fetch(_PENDING_INTENTS, limit, *namespace_arguments(served))
    return [LiveJob(*row) for row in rows]


async def existing(db: Database, uids: Sequence[UUID]) -> set[UUID]:
    """Those of the jobs that this database knows."""
    async with db.read() as connection:
        return {row["uid"] for row in await connection.fetch(_EXISTING, uids)}


async def sizes(db: Database, uids: Sequence[UUID]) -> dict[UUID, JobSize]:
    """The sizes of those of the jobs that exist, read without loading them."""
    async with db.read() as connection:
        return {uid: JobSize(int(replicas), size) for uid, replicas, size in await connection.fetch(_SIZES, uids)}


async def load(db: Database, uids: Sequence[UUID], served: NamespaceSet = EVERY_NAMESPACE) -> dict[UUID, StoredJob]:
    """All that a pass over each of these jobs needs, except those that do not exist or are in no served namespace.

    The job rows are read first: what is read after them and is newer makes the write be rejected, never accepted.
    """
    async with db.read() as connection:
        rows = await connection.fetch(_LOAD, uids, *namespace_arguments(served))
        conditions = await load_conditions(connection, uids)
        replicas = await load_replicas(connection, uids)
        scaling = await scale_records.load_open(connection, [row["uid"] for row in rows if row["scale_count"]])
    return {
        row["uid"]: _stored(
            row,
            Recorded(
                status=status_from(row, conditions.get(row["uid"], ())),
                replicas={stored.replica.key: stored.replica for stored in replicas.get(row["uid"], ())},
                created_at=row["created_at"],
                scaling=scaling.get(row["uid"], ()),
                pod_names={
                    stored.replica.key: stored.pod_name
                    for stored in replicas.get(row["uid"], ())
                    if stored.pod_name is not None
                },
            ),
        )
        for row in rows
    }


def _stored(row: Any, recorded: Recorded) -> StoredJob:
    intent = Intent(
        generation=row["generation"],
        cancel=row["cancel_requested_at"] is not None,
        cancel_actor=row["cancel_requested_by"],
        cancel_reason=row["cancel_reason"],
        remove=row["remove_requested_at"] is not None,
    )
    return StoredJob(**_STORED.read(row), intent=intent, recorded=recorded)


async def persist(db: Database, lease: Lease, writes: Sequence[JobWrite]) -> list[UUID]:
    """Write decisions, all in one transaction. Returns the jobs whose rows have moved since: decide those again.

    Raises:
        LeaseLost: another controller is at work; nothing was written.
        NotStorable: something in the batch cannot be stored and nothing was written: repeat it job by job.
    """
    async with db.begin() as connection:
        return await persist_in(connection, lease, writes)


async def persist_in(connection: Connection, lease: Lease, writes: Sequence[JobWrite]) -> list[UUID]:
    """`persist` inside the caller's transaction."""
    await leases.fence(connection, lease)
    return await store(connection, writes)
