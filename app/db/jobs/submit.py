"""Store new jobs, several in one transaction, each with an answer of its own.

    room for pods ─▶ claim idempotency keys ─▶ reserve names ─▶ jobs, history, feed ─▶ ask predecessors' leftovers to go
                     │ known: replay or conflict   │ taken, or no room: give the key back

Uniqueness is decided by indexes, never by looking first. Who comes second waits for the first one's commit and then
sees its outcome. Keys and names are taken in sorted order and rows of other jobs are locked last, so that two such
transactions do not wait for each other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from app.db import codec, idempotency
from app.db.columns import Columns, columns, record_columns
from app.db.engine import Connection, Database
from app.db.errors import DatabaseContended
from app.db.idempotency import IdempotencyKey, KeyConflict, KeyInFlight, KeyPlace, Replayed, StoredAnswer
from app.db.jobs.names import Holder, clear_the_way, holders, reserve
from app.db.jobs.pod_room import with_room
from app.db.jobs.rows import STATUS, status_document
from app.domain.plan import Manifest
from app.domain.reservations.name_ranges import NameKind, NameRange, merged
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, OverLimit, PodLimits, PodRoom
from app.domain.status.records import JobStatus
from app.models.jobs import jobs

# Characters of manifests in a statement after which the next one begins: about five milliseconds.
_STATEMENT_LENGTH: Final = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """`names` are what it reserves in its namespace beside its own name. `status` has no conditions yet. `pods` is how
    many it would have now.
    """

    uid: UUID
    namespace: str
    name: str
    kind: str
    api_version: str
    manifest: Manifest
    created_at: datetime
    created_by: str
    labels: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[NameRange] = ()
    retry_of: UUID | None = None
    idempotency: IdempotencyKey | None = None
    status: JobStatus = field(default_factory=JobStatus)
    pods: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    uid: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """A live job uses the name `name` of this `kind` (a NameKind); or another `holder`, which may be `leaving`."""

    job_name: str
    job_uid: UUID
    kind: str
    name: str
    holder: str = "live job"
    leaving: bool = False


Answer: TypeAlias = Submitted | NameTaken | OverLimit | Replayed | KeyConflict | KeyInFlight

_GIVE_NAMES_BACK = "DELETE FROM names WHERE job_uid = ANY($1::uuid[])"
_NEW_JOB: Final = record_columns(jobs, NewJob, elsewhere=["names", "idempotency", "status", "pods"])
_JOB: Final = _NEW_JOB + STATUS + columns(jobs, "status", "planned_pods")
_JOBS: Final = f"""
WITH w AS (
    SELECT * FROM {_JOB.rows("w", place="place")}
), job AS (
    INSERT INTO jobs ({_JOB}, history_count, intent_at) SELECT {_JOB}, 1, created_at FROM w
), counted AS (
    INSERT INTO planned_pods (namespace, pods)
    SELECT namespace, sum(planned_pods) FROM w GROUP BY namespace HAVING sum(planned_pods) > 0
), history AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    SELECT uid, 1, created_at, phase, reason, message, created_by FROM w
)
INSERT INTO job_events (at, type, namespace, job_uid, version)
SELECT clock_timestamp(), 'created', namespace, uid, 1 FROM w ORDER BY place
"""  # noqa: S608  constants
_MANIFEST: Final = _JOB.names.index("manifest")
# A job may be found in the way and gone when it is looked at; more often than this it is not chance.
_MAX_TRIES = 5


async def submit(db: Database, jobs: Sequence[NewJob], limits: PodLimits = DEFAULT_LIMITS) -> list[Answer]:
    """Store what can be stored, durably, and answer in the order of `jobs`.

    Raises:
        NotStorable: one of them cannot be stored, and none was: repeat them one by one.
        DatabaseContended: a key or name is in the hands of a transaction that does not end; none was stored.
    """

    async def store(connection: Connection, room: PodRoom) -> list[Answer]:
        batch = _Batch(connection, jobs, room)
        undecided = await batch.attempt(range(len(jobs)))
        for place in undecided:
            await _decide(batch, place)
        await batch.clear_the_way()
        return [batch.answers[place] for place in range(len(jobs))]

    return await with_room(db, _pods_of(jobs), limits, store)


async def submit_together(
    db: Database, jobs: Sequence[NewJob], limits: PodLimits = DEFAULT_LIMITS
) -> Mapping[int, Answer]:
    """Store all of them in one transaction, durably, or none: then by place why not, and nothing if all are stored.

    The first one's key stands for all; no two of them may need one name.

    Raises:
        NotStorable, DatabaseContended: none was stored.
    """
    for _ in range(_MAX_TRIES):
        try:
            await with_room(db, _pods_of(jobs), limits, partial(_store_all, jobs))
        except _RolledBack as rolled_back:
            if rolled_back.refused:
                return rolled_back.refused
        else:
            return {}
    raise DatabaseContended("the names of these jobs change hands too fast")


class _RolledBack(Exception):  # noqa: N818 - the way out of a transaction that is not to be
    """Nothing of it stays; where nobody is refused, it may be tried again."""

    def __init__(self, refused: Mapping[int, Answer]) -> None:
        super().__init__()
        self.refused = refused


def _pods_of(jobs: Sequence[NewJob]) -> Mapping[str, int]:
    """The pods that these jobs would have, by namespace."""
    pods: Counter[str] = Counter()
    for job in jobs:
        pods[job.namespace] += job.pods
    return pods


async def _store_all(jobs: Sequence[NewJob], connection: Connection, room: PodRoom) -> None:
    batch = _Batch(connection, jobs, room)
    undecided = await batch.attempt(range(len(jobs)))
    refused = {place: said for place, said in batch.answers.items() if not isinstance(said, Submitted)}
    if refused or undecided:
        raise _RolledBack(refused)
    await batch.clear_the_way()


async def _decide(batch: "_Batch", place: int) -> None:
    """One alone: two that stood in each other's way cannot do so again."""
    for _ in range(_MAX_TRIES):
        if not await batch.attempt([place]):
            return
    raise DatabaseContended("the names of this job change hands too fast")


class _Batch:
    """One transaction's jobs, by their place in it, and what has been decided about them."""

    def __init__(self, connection: Connection, jobs: Sequence[NewJob], room: PodRoom) -> None:
        self._connection = connection
        self._room = room
        self._jobs = jobs
        self._names = [_names_of(job) for job in jobs]
        self._known: dict[KeyPlace, StoredAnswer] = {}
        self.answers: dict[int, Answer] = {}

    async def attempt(self, places: Sequence[int]) -> list[int]:
        """Decide what can be decided now, and return the rest."""
        places = self._answer_known(places)
        claimed = await self._claim_keys(places)
        named, blocked = await self._reserve_names(claimed)
        winners = await self._with_room(named)
        if winners:
            for rows in _portions([self._jobs[place] for place in winners]):
                await self._connection.execute(_JOBS, *Columns.arguments(rows))
        for place in winners:
            self._win(place)
        await self._name_the_holders(blocked)
        return [place for place in places if place not in self.answers]

    def _answer_known(self, places: Sequence[int]) -> list[int]:
        """Answer those whose key is decided, and return the others."""
        unknown = []
        for place in places:
            key = self._jobs[place].idempotency
            known = self._known.get(key.place) if key else None
            if key is None or known is None:
                unknown.append(place)
            else:
                self.answers[place] = known.to(key)
        return unknown

    async def _claim_keys(self, places: Sequence[int]) -> list[int]:
        """Take the keys and return the places that may go on: without a key, or first with it."""
        free = [place for place in places if self._jobs[place].idempotency is None]
        first: dict[KeyPlace, int] = {}
        keys = []
        for place in places:
            job = self._jobs[place]
            if job.idempotency is not None and job.idempotency.place not in first:
                first[job.idempotency.place] = place
                keys.append((job.idempotency, job.uid, job.created_at))
        refused = await idempotency.claim(self._connection, keys)
        self._known |= {key: answer for key, answer in refused.items() if answer is not None}
        self._answer_known([first[key] for key in refused])
        return free + [place for key, place in first.items() if key not in refused]

    async def _reserve_names(self, places: Sequence[int]) -> tuple[list[int], dict[int, list[NameRange]]]:
        """All names of a job or none. Returns the places that have theirs, and what the others lack."""
        if not places:
            return [], {}
        jobs = {place: self._jobs[place] for place in places}
        wanted = [(job.uid, job.namespace, names) for place, job in jobs.items() for names in self._names[place]]
        got = await reserve(self._connection, wanted)
        lacking = {place: [one for one in self._names[place] if one not in got[job.uid]] for place, job in jobs.items()}
        blocked = {place: names for place, names in lacking.items() if names}
        if blocked:
            await self._give_back(list(blocked))
        return [place for place in places if place not in blocked], blocked

    async def _with_room(self, places: Sequence[int]) -> list[int]:
        """Those whose pods fit beside what is planned; the others are answered and give back what they took."""
        refused: dict[int, OverLimit] = {}
        for place in places:
            over = self._room.take(self._jobs[place].namespace, self._jobs[place].pods)
            if over is not None:
                refused[place] = over
        if refused:
            self.answers.update(refused)
            await self._give_back(list(refused))
        return [place for place in places if place not in refused]

    async def _give_back(self, places: Sequence[int]) -> None:
        """Free the names and keys of jobs that are not stored."""
        await self._connection.execute(_GIVE_NAMES_BACK, [self._jobs[place].uid for place in places])
        keys = [key for place in places if (key := self._jobs[place].idempotency)]
        await idempotency.give_back(self._connection, keys)

    def _win(self, place: int) -> None:
        job = self._jobs[place]
        self.answers[place] = Submitted(uid=job.uid)
        if job.idempotency:
            key = job.idempotency
            self._known[key.place] = StoredAnswer(fingerprint=key.fingerprint, uid=job.uid, answer=key.answer)

    async def _name_the_holders(self, blocked: Mapping[int, Sequence[NameRange]]) -> None:
        """A name that was lost to another job of this batch that lost as well has no holder: that one is undecided."""
        if not blocked:
            return
        wanted = {(self._jobs[place].namespace, one) for place, names in blocked.items() for one in names}
        found = await holders(self._connection, sorted(wanted))
        for place, names in blocked.items():
            answer = _taken(self._jobs[place].namespace, names, found)
            if answer is not None:
                self.answers[place] = answer

    async def clear_the_way(self) -> None:
        """Have the objects of finished jobs removed whose names the new jobs are going to use."""
        new = [place for place, answer in self.answers.items() if isinstance(answer, Submitted)]
        names = {(self._jobs[place].namespace, one) for place in new for one in self._names[place]}
        await clear_the_way(self._connection, sorted(names))


def _names_of(job: NewJob) -> list[NameRange]:
    return merged((*job.names, NameRange(NameKind.JOB, job.name)))


def _taken(namespace: str, names: Sequence[NameRange], found: Sequence[Holder]) -> NameTaken | None:
    for one in names:
        for holder in found:
            name = one.first_shared(holder.names) if holder.namespace == namespace else None
            if name is not None:
                return NameTaken(job_name=holder.job_name, job_uid=holder.job_uid, kind=one.kind, name=name)
    return None


def _portions(jobs: Sequence[NewJob]) -> Iterator[list[tuple[Any, ...]]]:
    """A row for each job, in portions for a statement each: between statements others have their turn."""
    rows: list[tuple[Any, ...]] = []
    length = 0
    for job in jobs:
        row = _job_row(job)
        rows.append(row)
        length += len(row[_MANIFEST])
        if length > _STATEMENT_LENGTH:
            yield rows
            rows, length = [], 0
    if rows:
        yield rows


def _job_row(job: NewJob) -> tuple[Any, ...]:
    return (
        *_NEW_JOB.values(job),
        *STATUS.values(job.status),
        codec.text_of(status_document(job.status)),
        job.pods,
    )
