"""Reads of the controller, and `persist`, through which alone it writes its decisions.

Every request of a client (a new job, an edit, cancel, remove) increases `jobs.intent_version` and sets `intent_at`. The
write of a decision on that version sets `intent_at` to null. `read_pending_intents` reads the partial index on the rows
whose `intent_at` is not null, so its cost depends on the backlog and not on the number of jobs. Status updates do not
change the column, so they do not touch the index. A notification on `notifications.JOB_INTENT` makes the controller
query at once; if it is lost, the job waits for the next poll.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.jobs import scale_records
from app.db.jobs.controller_writes import JobWrite, store
from app.db.jobs.replicas import load_replicas
from app.db.jobs.rows import STATUS, load_conditions, status_from
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length, in_namespaces, namespace_arguments
from app.db.reservations import room_waits
from app.domain.access.actors import Actor
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.plan import Manifest, Rank
from app.domain.reconcile.values import Decision
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits, RoomWait
from app.domain.status.records import Intent, Recorded
from app.domain.usage.groups import UsageGroup, chosen_labels
from app.models.jobs import JOBS_WITH_KEPT_OBJECTS, jobs
from app.telemetry.trace_context import Traced


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob(Traced):
    """A job as the controller reads it before a reconcile. `room_wait` is None if it has room for its pods."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    api_version: str
    labels: Mapping[str, str]
    manifest: Manifest
    generation: int
    version: int
    intent_version: int
    intent_at: datetime | None
    status_version: int
    created_at: datetime
    created_by: str
    created_by_id: str | None
    deleted_at: datetime | None
    wake_at: datetime | None
    intent: Intent
    recorded: Recorded
    room_wait: RoomWait | None = None

    @property
    def intent_is_new(self) -> bool:
        """Whether no decision has observed the current intent. The next decision is then persisted in any case."""
        return self.intent_at is not None

    def write(
        self,
        decision: Decision,
        *,
        observed_at: datetime | None = None,
        pod_names: Mapping[Rank, str] | None = None,
        group: UsageGroup | None = None,
    ) -> JobWrite:
        """Return the write of a decision that is based on this state of the job."""
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
            group=group,
        )

    def usage_group(self, queue: str, label_keys: Iterable[str]) -> UsageGroup:
        """Return the group in which the usage of the job is added up, with its labels of these keys."""
        return UsageGroup(
            namespace=self.namespace,
            user_id=self.created_by_id or "",
            user_name=self.created_by,
            kind=self.kind,
            queue=queue,
            labels=chosen_labels(self.labels, label_keys),
        )


class LiveJob(NamedTuple):
    """`intent_at` is the time of an intent that no decision has observed; None if there is none."""

    uid: UUID
    namespace: str
    intent_at: datetime | None


class AnchoredJob(NamedTuple):
    """A job and the uids that its anchor has had, which prove which objects are its own."""

    namespace: str
    kind: str
    name: str
    anchors: frozenset[str]


class JobSize(NamedTuple):
    """Determines the memory for a reconcile of a job. `replicas` is the larger of the desired and the stored number."""

    replicas: int
    manifest_bytes: int


# The aggregate counts the desired replicas. More rows are stored while replicas are leaving.
_SIZES: Final = f"""
SELECT j.uid,
       GREATEST((SELECT sum(bucket.value::int) FROM jsonb_each_text(j.status -> 'aggregate') AS bucket),
                (SELECT count(*) FROM replicas AS r WHERE r.job_uid = j.uid)),
       octet_length(j.manifest::text)
FROM jobs AS j WHERE j.uid = ANY({any_length("$1::uuid[]")})
"""  # noqa: S608  constants
_STORED: Final = record_columns(jobs, StoredJob, elsewhere=["intent", "recorded", "room_wait"])
_REQUESTS: Final = columns(
    jobs,
    "cancel_requested_at",
    "cancel_requested_by",
    "cancel_requested_by_id",
    "cancel_reason",
    "remove_requested_at",
)
_LOAD: Final = f"""
SELECT {_STORED + STATUS + _REQUESTS}, status, scale_count,
       EXISTS (SELECT FROM room_waits WHERE job_uid = jobs.uid) AS waits_for_room
FROM jobs WHERE uid = ANY({any_length("$1::uuid[]")}) AND imported_at IS NULL AND {in_namespaces(2)}
"""  # noqa: S608  constants
_LIVE = f"SELECT uid, namespace, intent_at FROM jobs WHERE NOT quiet AND {in_namespaces(1)}"  # noqa: S608  constants
_DUE = f"""
SELECT uid, namespace, intent_at FROM jobs WHERE wake_at <= $1 AND {in_namespaces(3)} ORDER BY wake_at LIMIT $2
"""  # noqa: S608  constants
_EXPIRED: Final = f"""
SELECT uid, namespace, intent_at FROM jobs
WHERE {JOBS_WITH_KEPT_OBJECTS} AND finished_at <= $1 AND {in_namespaces(3)} ORDER BY finished_at LIMIT $2
"""  # noqa: S608  constants
_ANCHORED: Final = f"""
SELECT uid, namespace, kind, name, status -> 'anchors' AS anchors FROM jobs
WHERE uid = ANY({any_length("$1::uuid[]")})
"""  # noqa: S608  constants
_EXISTING = "SELECT uid FROM jobs WHERE uid = ANY($1::uuid[]) AND imported_at IS NULL"
_PENDING_INTENTS = f"""
SELECT uid, namespace, intent_at FROM jobs
WHERE intent_at IS NOT NULL AND {in_namespaces(2)} ORDER BY intent_at LIMIT $1
"""  # noqa: S608  constants


async def read_live(db: Database, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveJob]:
    """Return every job that still needs the controller: jobs that are live or whose clean-up is incomplete."""
    async with db.read() as connection:
        return [LiveJob(*row) for row in await connection.fetch(_LIVE, *namespace_arguments(served))]


async def read_overdue(
    db: Database, now: datetime, limit: int, served: NamespaceSet = EVERY_NAMESPACE
) -> list[LiveJob]:
    """Return at most `limit` jobs whose `wake_at` has passed, the longest overdue first."""
    async with db.read() as connection:
        return [LiveJob(*row) for row in await connection.fetch(_DUE, now, limit, *namespace_arguments(served))]


async def read_expired(
    db: Database, finished_before: datetime, limit: int, served: NamespaceSet = EVERY_NAMESPACE
) -> list[LiveJob]:
    """Return at most `limit` jobs that ended before a time and still have objects, the longest ended first.

    Jobs that have their own time for the removal of their objects are left out: `read_overdue` returns them.
    """
    arguments = (finished_before, limit, *namespace_arguments(served))
    async with db.read() as connection:
        return [LiveJob(*row) for row in await connection.fetch(_EXPIRED, *arguments)]


async def read_pending_intents(db: Database, limit: int, served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveJob]:
    """Return at most `limit` jobs whose intent no decision has observed, the longest waiting first."""
    async with db.read() as connection:
        rows = await connection.fetch(_PENDING_INTENTS, limit, *namespace_arguments(served))
    return [LiveJob(*row) for row in rows]


async def find_existing(db: Database, uids: Sequence[UUID]) -> set[UUID]:
    """Return those of the uids that belong to a stored job, not counting imported ones, which have no objects."""
    async with db.read() as connection:
        return {row["uid"] for row in await connection.fetch(_EXISTING, uids)}


async def read_anchored(db: Database, uids: Sequence[UUID]) -> dict[UUID, AnchoredJob]:
    """Return the names of those of the jobs that exist, with the uids of their anchors."""
    async with db.read() as connection:
        return {
            row["uid"]: AnchoredJob(row["namespace"], row["kind"], row["name"], frozenset(row["anchors"] or ()))
            for row in await connection.fetch(_ANCHORED, uids)
        }


async def read_sizes(db: Database, uids: Sequence[UUID]) -> dict[UUID, JobSize]:
    """Return the sizes of those of the jobs that exist, without loading the jobs."""
    async with db.read() as connection:
        return {uid: JobSize(int(replicas), size) for uid, replicas, size in await connection.fetch(_SIZES, uids)}


async def load(
    db: Database, uids: Sequence[UUID], served: NamespaceSet = EVERY_NAMESPACE, limits: PodLimits = DEFAULT_LIMITS
) -> dict[UUID, StoredJob]:
    """Read all that a reconcile needs of each job.

    Jobs that do not exist, were imported, or are in no served namespace are left out.

    The job rows are read first. If another row changes after that, the version of the job row no longer matches and
    the write is rejected. A job that has got room meanwhile is queued again.
    """
    async with db.read() as connection:
        rows = await connection.fetch(_LOAD, uids, *namespace_arguments(served))
        conditions = await load_conditions(connection, uids)
        replicas = await load_replicas(connection, uids)
        scaling = await scale_records.load_open(connection, [row["uid"] for row in rows if row["scale_count"]])
        waits = await room_waits.load(connection, [row["uid"] for row in rows if row["waits_for_room"]], limits)
    return {
        row["uid"]: _job_from(
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
            waits.get(row["uid"]),
        )
        for row in rows
    }


def _job_from(row: Any, recorded: Recorded, room_wait: RoomWait | None) -> StoredJob:
    by = row["cancel_requested_by"]
    intent = Intent(
        generation=row["generation"],
        cancel=row["cancel_requested_at"] is not None,
        cancel_actor=None if by is None else Actor(by, row["cancel_requested_by_id"]),
        cancel_reason=row["cancel_reason"],
        remove=row["remove_requested_at"] is not None,
    )
    return StoredJob(**_STORED.read(row), intent=intent, recorded=recorded, room_wait=room_wait)


async def persist(db: Database, lease: Lease, writes: Sequence[JobWrite]) -> list[UUID]:
    """Write decisions in one transaction. Return the jobs that have changed since; reconcile them again.

    Raises:
        LeaseLost: another controller holds the lease; nothing was written.
        NotStorable: a value cannot be stored, and nothing was written. The caller retries job by job.
    """
    async with db.begin() as connection:
        return await persist_in(connection, lease, writes)


async def persist_in(connection: Connection, lease: Lease, writes: Sequence[JobWrite]) -> list[UUID]:
    """Do what `persist` does, inside the caller's transaction."""
    await leases.fence(connection, lease)
    return await store(connection, writes)
