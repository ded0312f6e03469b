"""What a check is: a name, why it holds, and a statement that finds where it does not."""

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """What a check examines. `page` selects `key`: the first $2 keys after the key $1, in their order.

    `batch` is how many keys share a transaction at most.
    """

    name: str
    first: Any
    page: str
    batch: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """An invariant. `sql` selects `key`, `subject` and `found` of each fault among the keys $1."""

    name: str
    why: str
    subjects: Subjects
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that should not be. `subject` is what it is about, `found` what was found instead."""

    subject: str
    found: str


@dataclass(slots=True, kw_only=True)
class CheckResult:
    """What a check has found among `examined` subjects of a kind.

    A check that has found very many faults ends before it has examined all: then it is not complete.
    """

    name: str
    why: str
    subjects: str
    examined: int = 0
    is_complete: bool = True
    faults: list[Fault] = field(default_factory=list)


JOBS: Final = Subjects(
    name="jobs", first=UUID(int=0), page="SELECT uid AS key FROM jobs WHERE uid > $1 ORDER BY uid LIMIT $2"
)
SAMPLES: Final = Subjects(
    name="samples", first=UUID(int=0), page="SELECT uid AS key FROM samples WHERE uid > $1 ORDER BY uid LIMIT $2"
)
WHOLE: Final = Subjects(name="installation", first=0, page="SELECT 1 AS key WHERE $1 < 1 AND $2 > 0")
"""The database as a whole, for checks of few rows."""


def job_check(name: str, why: str, found: str, source: str) -> Invariant:
    """Return a check of jobs. `source` is the statement from FROM on, with jobs as `j`; `found` is an expression."""
    sql = f"SELECT j.uid AS key, j.namespace || '/' || j.name || ' ' || j.uid AS subject, {found} AS found {source}"
    return Invariant(name=name, why=why, subjects=JOBS, sql=sql)


def numbering(name: str, why: str, subjects: Subjects, *, table: str, rows: str, key: str, count: str) -> Invariant:
    """Return a check that the rows about each object are numbered from 1 without gaps, and `count` is their number."""
    return Invariant(
        name=name,
        why=why,
        subjects=subjects,
        sql=f"""
        SELECT o.uid AS key, o.namespace || '/' || o.name || ' ' || o.uid AS subject,
            format('{count} is %s, and there are %s rows, numbered from %s to %s',
                   o.{count}, count(r.seq), min(r.seq), max(r.seq)) AS found
        FROM {table} AS o LEFT JOIN {rows} AS r ON r.{key} = o.uid WHERE o.uid = ANY($1) GROUP BY o.uid
        HAVING count(r.seq) <> o.{count} OR min(r.seq) <> 1 OR max(r.seq) <> o.{count}
        """,  # noqa: S608  names of tables and columns
    )
