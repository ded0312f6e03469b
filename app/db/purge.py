"""Deletes objects that ended long ago, with all that is recorded about them, in transactions of bounded size.

    found by an index ─▶ copied, if a setting says so
         └─▶ a few of them locked ─▶ their rows deleted, uids kept in `purged`, feed ─▶ rows about them ─▶ commit
                                                            more rows than fit: `has_records` ─▶ later batches

An object is gone for all readers with the commit of its batch. What a crash leaves is found by `has_records`. Any
number of processes can purge at the same time, because each skips what another one has locked.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.feed import changes
from app.db.installation.timekeeping import NOW
from app.db.jobs.rows import STORED_JOBS
from app.db.objects.records import JOB_LOGS, JOB_RECORDS, JOB_RESERVATIONS, SAMPLE_RECORDS, RecordTable
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Connection, Database
from app.domain.kinds.registry import SAMPLE_KINDS
from app.models.jobs import IMPORTED_JOBS_PURGEABLE, JOBS_PURGEABLE, jobs
from app.models.samples import SAMPLE_END, SAMPLES_PURGEABLE, samples

OBJECTS: Final = 20
"""Objects of one transaction. Those of a job of one pod take 0.8 ms each."""
ROWS: Final = 1_000
"""Rows about them that one transaction deletes at most. An attempt can have 64 KiB of logs."""
EXAMINED: Final = 1_000
"""Objects that one search reads at most. If it is for a phase, it may find none of them."""
_COUNTED: Final = 10_000  # objects that one statement counts


@dataclass(frozen=True, kw_only=True)
class Purgeable:
    """A table of objects that can be purged.

    `condition` is the predicate of an index on namespace and `end`, the time from which an object is kept. `resource`
    is an SQL expression for its resource of the API, one of `resources`. `records` are the tables with rows about it.
    """

    table: str
    condition: str
    end: str
    resource: str
    resources: Sequence[str]
    records: Sequence[RecordTable]

    @cached_property
    def namespaces(self) -> str:
        """The statement for the namespaces of objects that can be purged: one probe of the index for each."""
        first = f"SELECT min(namespace) FROM {self.table} WHERE {self.condition}"  # noqa: S608  constants
        return f"""
            WITH RECURSIVE found(namespace) AS (
                {first}
                UNION ALL
                SELECT ({first} AND {self.table}.namespace > found.namespace) FROM found
                WHERE found.namespace IS NOT NULL
            )
            SELECT namespace FROM found WHERE namespace IS NOT NULL"""  # noqa: S608  constants

    @cached_property
    def find(self) -> str:
        """The statement for the next objects that ended before the time of their namespace, in the order of their ends.

        $1 to $4 are namespaces, the ends and uids after which to begin, and the times. $5 are phases, and $6 is the
        number of rows that are read: those of other phases too.
        """
        # An intent that nobody has observed is still carried out.
        return f"""
            SELECT o.* FROM unnest($1::text[], $2::timestamptz[], $3::uuid[], $4::timestamptz[])
                AS due(namespace, after, after_uid, before)
            CROSS JOIN LATERAL (
                SELECT uid, version, namespace, phase, {self.end} AS ended_at,
                    intent_at IS NULL AND ($5::text[] IS NULL OR phase = ANY($5)) AS matches
                FROM {self.table}
                WHERE {self.table}.namespace = due.namespace AND {self.condition} AND {self.end} >= due.after
                    AND {self.end} < due.before AND ({self.end}, uid) > (due.after, due.after_uid)
                ORDER BY {self.end}, uid LIMIT $6
            ) AS o LIMIT $6"""  # noqa: S608  constants

    @cached_property
    def count(self) -> str:
        """The statement that counts what `find` finds in one namespace by phase, with the place of the last row."""
        return f"""
            WITH examined AS MATERIALIZED ({self.find})
            SELECT phase, count(*) FILTER (WHERE matches) AS found, last.ended_at, last.uid, last.examined
            FROM examined, (
                SELECT ended_at, uid, count(*) OVER () AS examined FROM examined
                ORDER BY ended_at DESC, uid DESC LIMIT 1
            ) AS last
            GROUP BY phase, last.ended_at, last.uid, last.examined"""  # noqa: S608  constants

    @cached_property
    def lock(self) -> str:
        """The statement that locks those of the objects $1 that still have the versions $2, and can be purged."""
        return f"""
            SELECT uid, {self.resource} AS resource, namespace, version
            FROM {self.table} JOIN unnest($1::uuid[], $2::bigint[]) AS found(uid, version) USING (uid, version)
            WHERE {self.condition} AND intent_at IS NULL FOR UPDATE OF {self.table} SKIP LOCKED"""  # noqa: S608

    @cached_property
    def delete(self) -> str:
        return f"DELETE FROM {self.table} WHERE uid = ANY($1::uuid[])"  # noqa: S608  constants


_SAMPLE_KINDS: Final = tuple(SAMPLE_KINDS.values())
_RESOURCE_OF_SAMPLE: Final = " ".join(f"WHEN '{kind.name}' THEN '{kind.resource}'" for kind in _SAMPLE_KINDS)
JOBS: Final = Purgeable(
    table=jobs.name,
    condition=JOBS_PURGEABLE,
    end="finished_at",
    resource=f"'{STORED_JOBS.resource}'",
    resources=[STORED_JOBS.resource],
    records=[*JOB_RECORDS, *JOB_LOGS, *JOB_RESERVATIONS],
)
IMPORTED_JOBS: Final = replace(JOBS, condition=IMPORTED_JOBS_PURGEABLE, end="imported_at")
"""Jobs that come from an export are kept from the import on: most of them ended long ago."""
SAMPLES: Final = Purgeable(
    table=samples.name,
    condition=SAMPLES_PURGEABLE,
    end=SAMPLE_END,
    resource=f"CASE kind {_RESOURCE_OF_SAMPLE} END",
    resources=[kind.resource for kind in _SAMPLE_KINDS],
    records=SAMPLE_RECORDS,
)
_FIRST: Final = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))  # before the end and uid of every object
_KEEP_UIDS: Final = f"""
INSERT INTO purged (uid, purged_at, has_records, resource, namespace)
SELECT uid, {NOW}, $1, resource, namespace
FROM unnest($2::uuid[], $3::text[], $4::text[]) AS o(uid, resource, namespace)
ON CONFLICT (uid) DO UPDATE SET purged_at = excluded.purged_at, has_records = excluded.has_records
"""  # noqa: S608  constants
_WITH_RECORDS: Final = """
SELECT uid FROM purged WHERE has_records AND resource = ANY($1::text[]) LIMIT $2 FOR UPDATE SKIP LOCKED
"""
_COMPLETE: Final = "UPDATE purged SET has_records = false WHERE uid = ANY($1::uuid[])"
_NAMESPACE: Final = "SELECT namespace FROM purged WHERE uid = $1 AND resource = $2"
_FORGET: Final = """
DELETE FROM purged WHERE uid = ANY(ARRAY(
    SELECT uid FROM purged WHERE purged_at < $1 AND NOT has_records ORDER BY purged_at LIMIT $2))
"""


class Copied(NamedTuple):
    """The objects of which a durable copy exists, with the versions that were copied, and those that are left."""

    copied: Sequence[RowVersion]
    left: Sequence[RowVersion]


Copy: TypeAlias = Callable[[Sequence[RowVersion]], Awaitable[Copied]]
"""Copies objects, or the first ones of many, or raises an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The rows that a step has deleted, by table. `is_last`: nothing is left to delete."""

    rows: Mapping[str, int]
    is_last: bool


@dataclass(kw_only=True)
class Purge:
    """Deletes the objects that ended before the time of their namespace, with one step after the other.

    `ended_before` has the times by namespace. `phases` restricts the objects. A step begins where the last one ended:
    an object that was locked meanwhile is left to the next purge. With `copy`, only objects are deleted that were
    copied. None is deleted that has changed since it was found or copied.
    """

    db: Database
    of: Purgeable
    ended_before: Mapping[str, datetime]
    phases: Sequence[str] | None = None
    copy: Copy | None = None
    objects: int = OBJECTS
    rows: int = ROWS
    examined: int = EXAMINED
    _after: dict[str, tuple[datetime, UUID]] = field(default_factory=dict, init=False)
    _are_left: bool = field(default=True, init=False)  # objects that were not examined
    _found: Sequence[RowVersion] = field(default=(), init=False)
    _deletable: Sequence[RowVersion] = field(default=(), init=False)

    async def count(self) -> list[tuple[str, str, int]]:
        """Return the number of objects to delete by namespace and phase."""
        return [
            (namespace, phase, number)
            for namespace in sorted(self.ended_before)
            for phase, number in sorted((await self._count(namespace)).items())
            if number
        ]

    async def _count(self, namespace: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        place, is_last = _FIRST, False
        while not is_last:
            # One statement for a bounded number: with millions of objects, one for all would reach its timeout.
            async with self.db.snapshot(by_index=True) as connection:
                arguments = self._arguments([namespace], {namespace: place})
                rows = await connection.fetch(self.of.count, *arguments, _COUNTED)
            counts.update({row["phase"]: row["found"] for row in rows})
            is_last = not rows or rows[0]["examined"] < _COUNTED
            place = place if is_last else (rows[0]["ended_at"], rows[0]["uid"])
        return counts

    async def step(self) -> Deleted:
        """Delete the next objects, or rows about deleted ones."""
        deleted: Counter[str] = Counter()
        # Before the transaction: it contains no call to another system than PostgreSQL.
        if not self._deletable:
            await self._find()
        is_last = False
        async with self.db.begin() as connection:
            if self._deletable:
                await self._delete_objects(connection, deleted)
            elif not self._are_left and not self._found:
                is_last = await self._delete_records(connection, deleted)
        self._deletable = self._deletable[self.objects :]
        reach(FaultPoint.BATCH_PURGED)
        return Deleted(rows=deleted, is_last=is_last)

    def _arguments(self, names: Sequence[str], after: Mapping[str, tuple[datetime, UUID]]) -> tuple[Any, ...]:
        places = [after.get(name, _FIRST) for name in names]
        ends, uids = [end for end, _ in places], [uid for _, uid in places]
        return (names, ends, uids, [self.ended_before[name] for name in names], self.phases)

    async def _find(self) -> None:
        """Find the next objects to delete, and copy them."""
        if not self._found and self._are_left:
            async with self.db.snapshot(by_index=True) as connection:
                arguments = self._arguments(sorted(self.ended_before), self._after)
                rows = await connection.fetch(self.of.find, *arguments, self.examined)
            self._found = [RowVersion(row["uid"], row["version"]) for row in rows if row["matches"]]
            self._after.update({row["namespace"]: (row["ended_at"], row["uid"]) for row in rows})
            self._are_left = len(rows) == self.examined
        if self.copy is None or not self._found:
            self._deletable, self._found = self._found, ()
        else:
            self._deletable, self._found = await self.copy(self._found)

    async def _delete_objects(self, connection: Connection, deleted: Counter[str]) -> None:
        next_ones = self._deletable[: self.objects]
        keys = [found.uid for found in next_ones], [found.version for found in next_ones]
        chosen = await connection.fetch(self.of.lock, *keys)
        if not chosen:
            return
        uids = [row["uid"] for row in chosen]
        resources, namespaces = ([row[name] for row in chosen] for name in ("resource", "namespace"))
        deleted[self.of.table] = count_of(await connection.execute(self.of.delete, uids))
        rows = await delete_records(connection, self.of.records, uids, self.rows)
        deleted.update(rows)
        has_records = rows.total() >= self.rows
        await connection.execute(_KEEP_UIDS, has_records, uids, resources, namespaces)
        for resource in sorted(set(resources)):
            versions = [(r["namespace"], r["uid"], r["version"] + 1) for r in chosen if r["resource"] == resource]
            await changes.announce(connection, changes.PURGED, versions, resource=resource)

    async def _delete_records(self, connection: Connection, deleted: Counter[str]) -> bool:
        """Delete rows about deleted objects. Return whether none is left."""
        found = await connection.fetch(_WITH_RECORDS, self.of.resources, self.objects)
        if not found:
            return True
        uids = [row["uid"] for row in found]
        rows = await delete_records(connection, self.of.records, uids, self.rows)
        deleted.update(rows)
        if rows.total() < self.rows:
            await connection.execute(_COMPLETE, uids)
        return False


async def namespaces(db: Database, purgeable: Purgeable) -> list[str]:
    """Return the namespaces that have objects which can be purged."""
    async with db.read() as connection:
        return [row["namespace"] for row in await connection.fetch(purgeable.namespaces)]


async def delete_records(
    connection: Connection, tables: Sequence[RecordTable], uids: Sequence[UUID], limit: int
) -> Counter[str]:
    """Delete at most `limit` rows about these objects. Fewer are deleted only if no other is left."""
    deleted: Counter[str] = Counter()
    for records in tables:
        name, room = records.table.name, limit - deleted.total()
        if room > 0:
            statement = f"""DELETE FROM {name} WHERE ctid = ANY(ARRAY(
                SELECT ctid FROM {name} WHERE {records.owner} = ANY($1::uuid[]) LIMIT $2))"""  # noqa: S608  constants
            deleted[name] = count_of(await connection.execute(statement, uids, room))
    return deleted


async def namespace_of(db: Database, uid: UUID, resource: str) -> str | None:
    """Return the namespace in which the purged object of the resource was. None if no such object was purged."""
    async with db.read() as connection:
        found: str | None = await connection.fetchval(_NAMESPACE, uid, resource)
    return found


async def forget(db: Database, before: datetime, limit: int) -> int:
    """Delete at most `limit` uids of objects that were purged before this time, and return how many."""
    async with db.read() as connection:
        return count_of(await connection.execute(_FORGET, before, limit))


def count_of(status: str) -> int:
    """Return the number of rows from the answer to a statement."""
    return int(status.rpartition(" ")[2])
