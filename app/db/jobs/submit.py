"""Stores new jobs, several in one transaction, each with its own answer.

    claim idempotency keys ─▶ reserve names, room for pods ─▶ jobs, history, feed ─▶ request removal of old objects
    │ known: replay or conflict   │ taken, or no room: release the key     if any have these names

Unique indexes decide between concurrent transactions; no transaction reads first to decide. The second one waits for
the commit of the first and then sees its result. Keys and names are inserted once and in sorted order, and rows of
other jobs are locked last, so that transactions with the same names do not deadlock. Transactions with ranges that
overlap in part can: PostgreSQL ends one of them, and the group commit stores its jobs one by one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.db.installation.timekeeping import NOW
from app.db.jobs.rows import STATUS, JobRow, status_document
from app.db.objects import idempotency
from app.db.objects.idempotency import KeyId, StoredAnswer
from app.db.objects.submission import Answer, NameTaken, New, Submitted
from app.db.postgres import codec
from app.db.postgres.columns import Columns, columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import DatabaseContended
from app.db.reservations import room_waits
from app.db.reservations.names import (
    Holder,
    holders,
    previous_objects_exist,
    range_columns,
    request_removal_of_previous,
    reserve_with_room,
)
from app.db.reservations.pod_room import RoomReader, with_room
from app.db.reservations.room_waits import NewWait
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, OverLimit, PodLimits, PodRoom
from app.models.jobs import jobs

# Characters of manifests in one statement. Encoding them takes about 5 ms, after which other tasks run.
_STATEMENT_LENGTH: Final = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob(New[JobRow]):
    """A job to store. Its status has no conditions.

    `pods` is the number of planned pods. If they have no room, `priority` decides how long the job waits for it.
    """

    pods: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nothing of the job was stored, and it must be submitted again, alone: a key or name was released meanwhile.

    Another transaction released it, or a job of the same transaction that was refused. To take the name now, the
    transaction would leave the order of names, and could deadlock.
    """


_RELEASE_NAMES = "DELETE FROM names WHERE job_uid = ANY($1::uuid[])"
# Only later changes set these columns. A transaction with one job would take a tenth more time with them.
_LATER: Final = (
    *("generation", "version", "cancel_requested_at", "remove_requested_at", "deleted_at", "imported_at"),
    *("scale_count", "reported"),
)
_ROW: Final = record_columns(jobs, JobRow, elsewhere=["manifest", "status"]).without(*_LATER)
_POSTED: Final = columns(jobs, "posted_manifest")
_JOB: Final = _ROW + STATUS + _POSTED + columns(jobs, "status", "planned_pods", "manifest")
# One statement, because each costs a round trip. The feed entries are in the order of the request. The result says
# whether finished jobs have objects with these names. The names are reserved, so no further job can release one.
_JOBS: Final = f"""
WITH w AS (
    SELECT * FROM {_JOB.rows("w", number="number")}
), job AS (
    INSERT INTO jobs ({_JOB}, history_count, intent_at) SELECT {_JOB}, 1, created_at FROM w
), counted AS (
    INSERT INTO planned_pods (namespace, pods)
    SELECT namespace, sum(planned_pods) FROM w GROUP BY namespace HAVING sum(planned_pods) > 0
), history AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor, actor_id)
    SELECT uid, 1, created_at, phase, reason, message, created_by, created_by_id FROM w
), announced AS (
    INSERT INTO job_events (at, type, namespace, job_uid, version)
    SELECT {NOW}, 'created', namespace, uid, 1 FROM w ORDER BY number
)
SELECT {previous_objects_exist(len(_JOB.names) + 1)}
"""  # noqa: S608  constants
_DOCUMENTS: Final = tuple(map(_JOB.names.index, ("manifest", "posted_manifest")))
# The holder of a name may release it before it is read. After this many transactions, report contention.
MAX_TRIES: Final = 5


async def submit(db: Database, jobs: Sequence[NewJob], limits: PodLimits = DEFAULT_LIMITS) -> list[Answer | Undecided]:
    """Store each job that is acceptable, durably, in one transaction. Return the answers in the order of `jobs`.

    Raises:
        NotStorable: a job cannot be stored, so none was. The caller retries them one by one.
        DatabaseContended: another transaction holds a key or name for too long. None was stored.
    """

    async def store(connection: Connection, room: RoomReader) -> list[Answer | Undecided]:
        batch = _Batch(connection, jobs, room)
        await batch.decide()
        # Last, because it locks the rows of other jobs.
        await batch.request_removal_of_previous()
        return [batch.answers.get(index, Undecided()) for index in range(len(jobs))]

    return await with_room(db, _pods_of(jobs), limits, store)


async def submit_together(
    db: Database, jobs: Sequence[NewJob], limits: PodLimits = DEFAULT_LIMITS
) -> Mapping[int, Answer]:
    """Store all jobs in one transaction, durably, or none. Return the refusals by position: none if all are stored.

    The idempotency key of the first job stands for all. No two of the jobs may need the same name.

    Raises:
        NotStorable, DatabaseContended: none was stored.
    """
    for _ in range(MAX_TRIES):
        try:
            await with_room(db, _pods_of(jobs), limits, partial(_store_all, jobs))
        except _RolledBack as rolled_back:
            if rolled_back.refused:
                return rolled_back.refused
        else:
            return {}
    raise DatabaseContended("the names of these jobs change hands too fast")


class _RolledBack(Exception):  # noqa: N818 - leaves a transaction to roll it back
    """The transaction is rolled back. If no job was refused, it may be retried."""

    def __init__(self, refused: Mapping[int, Answer]) -> None:
        super().__init__()
        self.refused = refused


def _pods_of(jobs: Sequence[NewJob]) -> Mapping[str, int]:
    """Return the number of planned pods by namespace."""
    pods: Counter[str] = Counter()
    for job in jobs:
        pods[job.row.namespace] += job.pods
    return pods


async def _store_all(jobs: Sequence[NewJob], connection: Connection, room: RoomReader) -> None:
    batch = _Batch(connection, jobs, room)
    await batch.decide()
    refused = {index: answer for index, answer in batch.answers.items() if not isinstance(answer, Submitted)}
    if refused or len(batch.answers) < len(jobs):
        raise _RolledBack(refused)
    await batch.request_removal_of_previous()


class _Batch:
    """The jobs of one transaction, by their position in it, and the answers so far."""

    def __init__(self, connection: Connection, jobs: Sequence[NewJob], room: RoomReader) -> None:
        self._connection = connection
        self._room = room
        self._jobs = jobs
        self._known: dict[KeyId, StoredAnswer] = {}
        self._needs_removal = False
        self._waits: set[int] = set()
        self.answers: dict[int, Answer] = {}

    async def decide(self) -> None:
        """Store or refuse the jobs. A job that has no answer afterwards is undecided."""
        claimed = await self._claim_keys()
        winners, blocked = await self._reserve(claimed)
        if winners:
            ranges = range_columns(self._ranges(winners))
            for rows in _portions([(self._jobs[index], self._planned_pods(index)) for index in winners]):
                if await self._connection.fetchval(_JOBS, *Columns.arguments(rows), *ranges):
                    self._needs_removal = True
            await room_waits.add(self._connection, [_wait_of(self._jobs[index]) for index in sorted(self._waits)])
        for index in winners:
            self._win(index)
        await self._find_holders(blocked)
        self._answer_known()

    def _answer_known(self) -> None:
        """Answer the jobs without an answer whose idempotency keys are known."""
        for index, job in enumerate(self._jobs):
            known = self._known.get(job.idempotency.id) if job.idempotency else None
            if job.idempotency is not None and known is not None and index not in self.answers:
                self.answers[index] = known.replay_or_conflict(job.idempotency)

    async def _claim_keys(self) -> list[int]:
        """Claim the keys. Return the positions of the jobs that have no key or are the first to use theirs."""
        free = [index for index, job in enumerate(self._jobs) if job.idempotency is None]
        first: dict[KeyId, int] = {}
        keys = []
        for index, job in enumerate(self._jobs):
            # The first of several jobs with the same key claims it. The others get its answer.
            if job.idempotency is not None and job.idempotency.id not in first:
                first[job.idempotency.id] = index
                keys.append((job.idempotency, job.uid, job.row.created_at))
        refused = await idempotency.claim(self._connection, keys)
        self._known |= {key: answer for key, answer in refused.items() if answer is not None}
        return free + [index for key, index in first.items() if key not in refused]

    async def _reserve(self, indexes: Sequence[int]) -> tuple[list[int], dict[int, list[NameRange]]]:
        """Reserve all names of each job or none, and room for its pods.

        Return the positions of the jobs that have both, and the names that the others lack, by position.
        """
        if not indexes:
            return [], {}
        jobs = {index: self._jobs[index] for index in indexes}
        wanted = [(job.uid, job.row.namespace, names) for job in jobs.values() for names in job.names]
        refused, room = await reserve_with_room(self._connection, wanted, self._room)
        blocked = {index: refused[job.uid] for index, job in jobs.items() if job.uid in refused}
        if blocked:
            await self._release(list(blocked))
        return await self._with_room([index for index in indexes if index not in blocked], room), blocked

    async def _with_room(self, indexes: Sequence[int], room: PodRoom) -> list[int]:
        """Return the positions of the jobs that have room or may wait. Refuse the others and release what they hold."""
        refused: dict[int, OverLimit] = {}
        # In the order of the request, in which jobs of the same priority and age get room.
        for index in sorted(indexes):
            over = room.take(self._jobs[index].row.namespace, self._jobs[index].pods)
            if over is None:
                continue
            if room.enqueue(over):
                self._waits.add(index)
            else:
                refused[index] = over
        if refused:
            self.answers.update(refused)
            await self._release(list(refused))
        return [index for index in indexes if index not in refused]

    async def _release(self, indexes: Sequence[int]) -> None:
        """Release the names and keys of jobs that are not stored."""
        await self._connection.execute(_RELEASE_NAMES, [self._jobs[index].uid for index in indexes])
        keys = [key for index in indexes if (key := self._jobs[index].idempotency)]
        await idempotency.release(self._connection, keys)

    def _planned_pods(self, index: int) -> int:
        return 0 if index in self._waits else self._jobs[index].pods

    def _win(self, index: int) -> None:
        job = self._jobs[index]
        self.answers[index] = Submitted()
        if job.idempotency:
            key = job.idempotency
            self._known[key.id] = StoredAnswer(fingerprint=key.fingerprint, uid=job.uid, answer=key.answer)

    async def _find_holders(self, blocked: Mapping[int, Sequence[NameRange]]) -> None:
        """Answer blocked jobs with the holder of a name.

        A job remains undecided if its name was released meanwhile, or was taken by a refused job of this batch.
        """
        if not blocked:
            return
        wanted = {
            (self._jobs[index].row.namespace, name_range) for index, names in blocked.items() for name_range in names
        }
        found = await holders(self._connection, sorted(wanted))
        for index, names in blocked.items():
            answer = _find_taken(self._jobs[index].row.namespace, names, found)
            if answer is not None:
                self.answers[index] = answer

    async def request_removal_of_previous(self) -> None:
        """Request the removal of finished jobs whose objects have names of the new jobs."""
        if self._needs_removal:
            new = [index for index, answer in self.answers.items() if isinstance(answer, Submitted)]
            await request_removal_of_previous(self._connection, self._ranges(new))

    def _ranges(self, indexes: Sequence[int]) -> list[tuple[str, NameRange]]:
        """Return the names of these jobs with their namespaces."""
        return [(self._jobs[index].row.namespace, names) for index in indexes for names in self._jobs[index].names]


def _find_taken(namespace: str, names: Sequence[NameRange], found: Sequence[Holder]) -> NameTaken | None:
    for name_range in names:
        for holder in found:
            name = name_range.first_shared(holder.names) if holder.namespace == namespace else None
            if name is not None:
                return NameTaken(
                    kind=NameKind(name_range.kind),
                    name=name,
                    holder_name=holder.job_name,
                    holder_uid=holder.job_uid,
                    holder_kind="live job",
                )
    return None


def _wait_of(job: NewJob) -> NewWait:
    row = job.row
    return NewWait(
        job_uid=row.uid, namespace=row.namespace, priority=job.priority, created_at=row.created_at, pods=job.pods
    )


def _portions(jobs: Sequence[tuple[NewJob, int]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of all jobs in portions, each of which one statement inserts.

    Each job comes with the number of its planned pods. Other tasks run between statements.
    """
    rows: list[tuple[Any, ...]] = []
    length = 0
    for job, planned in jobs:
        row = _job_row(job, planned)
        rows.append(row)
        length += sum(len(row[index] or "") for index in _DOCUMENTS)
        if length > _STATEMENT_LENGTH:
            yield rows
            rows, length = [], 0
    if rows:
        yield rows


def _job_row(job: NewJob, planned: int) -> tuple[Any, ...]:
    row = job.row
    return (
        *_ROW.values(row),
        *STATUS.values(row.status),
        *_POSTED.values(job),
        codec.text_of(status_document(row.status)),
        planned,
        codec.text_of(row.manifest),
    )
