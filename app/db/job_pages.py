"""Lists of jobs, the newest first, page by page along an index: no page costs more than the one before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.engine import Database
from app.db.job_rows import COLUMNS, JobRow, job_row
from app.db.queries import Cursor, Query, restrict_after, restrict_labels, restrict_namespaces
from app.domain.listing import Criteria
from app.domain.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.selectors import Requirement
from app.domain.vocabulary import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """None or empty: no restriction. `after` bounds are inclusive, `before` bounds are not.

    `search` is a part of the name. Deleted jobs are left out unless asked for, or asked for by uid.
    """

    namespaces: NamespaceSet = EVERY_NAMESPACE
    phases: Sequence[JobPhase] = ()
    kinds: Sequence[str] = ()
    search: str | None = None
    labels: Sequence[Requirement] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    uids: Sequence[UUID] = ()
    deleted: bool = False

    def criteria(self) -> Criteria:
        """The same restrictions, to be held against one job."""
        return Criteria(
            namespaces=self.namespaces,
            kinds=self.kinds,
            uids=self.uids,
            search=self.search,
            created_after=self.created_after,
            created_before=self.created_before,
            phases=self.phases,
            labels=self.labels,
            finished_after=self.finished_after,
            finished_before=self.finished_before,
            with_hidden=self.deleted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """`next` is where the following page starts; None at the end."""

    rows: Sequence[JobRow]
    next: Cursor | None


async def page(db: Database, where: JobFilter, *, after: Cursor | None = None, limit: int) -> JobPage:
    """At most `limit` jobs that come after the cursor."""
    query = Query(f"SELECT {COLUMNS} FROM jobs", "j")  # noqa: S608  columns of our own
    _restrict(query, where)
    restrict_after(query, after)
    async with db.read() as connection:
        rows = await connection.fetch(query.text(limit + 1), *query.arguments)
    found = [job_row(row) for row in rows[:limit]]
    last = Cursor(found[-1].created_at, found[-1].uid) if len(rows) > limit and found else None
    return JobPage(rows=found, next=last)


def _restrict(query: Query, where: JobFilter) -> None:
    _restrict_identity(query, where)
    for condition, value in (
        ("j.phase = ANY({}::text[])", list(where.phases) or None),
        ("j.kind = ANY({}::text[])", list(where.kinds) or None),
        ("j.created_at >= {}", where.created_after),
        ("j.created_at < {}", where.created_before),
        ("j.finished_at >= {}", where.finished_after),
        ("j.finished_at < {}", where.finished_before),
    ):
        if value is not None:
            query.add(condition, value)
    restrict_labels(query, where.labels)


def _restrict_identity(query: Query, where: JobFilter) -> None:
    restrict_namespaces(query, where.namespaces)
    if where.uids:
        query.add("j.uid = ANY({}::uuid[])", list(where.uids))
    elif not where.deleted:
        query.add("j.deleted_at IS NULL")
    if where.search is not None:
        query.add("strpos(j.name, {}) > 0", where.search)
