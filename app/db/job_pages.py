"""Lists of jobs, the newest first, page by page along an index: no page costs more than the one before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.db.engine import Database
from app.db.job_rows import COLUMNS, JobRow, job_row
from app.domain.selectors import Operator, Requirement
from app.domain.vocabulary import JobPhase


class Cursor(NamedTuple):
    """The last job of a page."""

    created_at: datetime
    uid: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """None or empty: no restriction. `after` bounds are inclusive, `before` bounds are not.

    `search` is a part of the name. Deleted jobs are left out unless asked for, or asked for by uid.
    """

    namespaces: Sequence[str] | None = None
    phases: Sequence[JobPhase] = ()
    kinds: Sequence[str] = ()
    name: str | None = None
    prefix: str | None = None
    search: str | None = None
    labels: Sequence[Requirement] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    uids: Sequence[UUID] = ()
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """`next` is where the following page starts; None at the end."""

    rows: Sequence[JobRow]
    next: Cursor | None


async def page(db: Database, where: JobFilter, *, after: Cursor | None = None, limit: int) -> JobPage:
    """At most `limit` jobs that come after the cursor."""
    query = _Query()
    _restrict(query, where)
    if after is not None:
        query.add("(j.created_at, j.uid) < ({}, {})", after.created_at, after.uid)
    async with db.read() as connection:
        rows = await connection.fetch(query.text(limit + 1), *query.arguments)
    found = [job_row(row) for row in rows[:limit]]
    last = Cursor(found[-1].created_at, found[-1].uid) if len(rows) > limit and found else None
    return JobPage(rows=found, next=last)


class _Query:
    """Conditions and their arguments, numbered as they come."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.arguments: list[Any] = []

    def add(self, condition: str, *arguments: Any) -> None:
        """Add a condition of ours, `{}` standing for each argument."""
        first = len(self.arguments) + 1
        self._conditions.append(condition.format(*(f"${first + n}" for n in range(len(arguments)))))
        self.arguments.extend(arguments)

    def text(self, limit: int) -> str:
        conditions = " AND ".join(self._conditions) or "true"
        # Conditions are constants of this module; whatever a client says is an argument.
        return (
            f"SELECT {COLUMNS} FROM jobs AS j WHERE {conditions} "  # noqa: S608
            f"ORDER BY j.created_at DESC, j.uid DESC LIMIT {int(limit)}"
        )


def _restrict(query: _Query, where: JobFilter) -> None:
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
    for requirement in where.labels:
        _restrict_label(query, requirement)


def _restrict_identity(query: _Query, where: JobFilter) -> None:
    if where.namespaces is not None and len(where.namespaces) == 1:
        query.add("j.namespace = {}", where.namespaces[0])  # walks the namespace's own index
    elif where.namespaces is not None:
        query.add("j.namespace = ANY({}::text[])", list(where.namespaces))
    if where.uids:
        query.add("j.uid = ANY({}::uuid[])", list(where.uids))
    elif not where.deleted:
        query.add("j.deleted_at IS NULL")
    if where.name is not None:
        query.add("j.name = {}", where.name)
    if where.prefix is not None:
        query.add("starts_with(j.name, {})", where.prefix)
    if where.search is not None:
        query.add("strpos(j.name, {}) > 0", where.search)


def _restrict_label(query: _Query, requirement: Requirement) -> None:
    match requirement.operator:
        case Operator.EXISTS:
            query.add("j.labels ? {}", requirement.key)
        case Operator.DOES_NOT_EXIST:
            query.add("NOT j.labels ? {}", requirement.key)
        case Operator.IN:
            query.add("j.labels ->> {} = ANY({}::text[])", requirement.key, list(requirement.values))
        case Operator.NOT_IN:
            query.add("(j.labels ->> {} = ANY({}::text[])) IS NOT TRUE", requirement.key, list(requirement.values))
