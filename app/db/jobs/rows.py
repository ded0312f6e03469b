"""Rows of jobs as the API reads them: a job and its conditions in one statement."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.db.objects.history import HistoryTable
from app.db.objects.resources import ObjectRow, SortedIndex, Stored
from app.db.postgres import codec
from app.db.postgres.columns import Columns, record_columns, shared_columns
from app.db.postgres.engine import Connection
from app.db.postgres.queries import any_length
from app.domain.kinds.base import JOBS
from app.domain.plan import Manifest
from app.domain.status.records import Condition, JobStatus
from app.domain.vocabulary import ConditionType
from app.models.jobs import JOB_LISTS, conditions, job_list_condition, jobs, status_history


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary(ObjectRow):
    """The input of a rendered status. It omits the manifest, which may be a megabyte.

    `imported_at` is None unless the job comes from an export.
    """

    deleted_at: datetime | None = None
    imported_at: datetime | None = None
    status: JobStatus

    @property
    def is_settled(self) -> bool:
        """Whether the job has ended, and its objects do not change any more; those of a deleted job are gone."""
        # A job that is deleted after its end stays quiet until the next reconcile.
        return self.status.quiet and (self.deleted_at is None or self.status.gone_at is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow(JobSummary):
    """`version` increases with every readable change of a job, including its replicas and evidence.

    `scale_count` is the number of its scale records. `reported` is the last report of its own pods.
    """

    api_version: str
    manifest: Manifest
    retry_of: UUID | None = None
    cancel_requested_at: datetime | None = None
    remove_requested_at: datetime | None = None
    scale_count: int = 0
    reported: Mapping[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        return self.status.phase.is_terminal

    @property
    def is_in_cluster(self) -> bool:
        return self.status.gone_at is None


STATUS: Final = shared_columns(jobs, JobStatus)
"""The part of a job's status that has columns. The column `status` holds the rest, except the conditions."""
_DEFAULTS: Final[Mapping[str, Any]] = {
    each.name: getattr(JobStatus(), each.name)
    for each in fields(JobStatus)
    if each.name not in (*STATUS.names, "conditions")
}
"""The fields of a status that the column `status` holds."""
CONDITION: Final = record_columns(conditions, Condition)
_JOB: Final = record_columns(jobs, JobRow, elsewhere=["status"])
_SUMMARY: Final = record_columns(jobs, JobSummary, elsewhere=["status"])
_CONDITIONS: Final = f"""
SELECT job_uid, {CONDITION} FROM conditions WHERE job_uid = ANY({any_length("$1::uuid[]")}) ORDER BY job_uid, position
"""  # noqa: S608  constants


# One statement is one snapshot, so the conditions belong to the version of the job that is read.
def _with_status(plain: Columns) -> str:
    return f"""{(plain + STATUS).of("j")}, j.status,
    (SELECT jsonb_agg(to_jsonb(c) - 'job_uid' - 'position' ORDER BY c.position)
     FROM conditions AS c WHERE c.job_uid = j.uid) AS conditions"""  # noqa: S608  constants


COLUMNS: Final = _with_status(_JOB)
"""The columns of `jobs AS j` that `job_row` reads."""
SUMMARY_COLUMNS: Final = _with_status(_SUMMARY)
"""The columns of `jobs AS j` that `job_summary` reads."""


def job_row(row: Mapping[str, Any]) -> JobRow:
    return JobRow(status=_status(row), **_JOB.read(row))


def job_summary(row: Mapping[str, Any]) -> JobSummary:
    return JobSummary(status=_status(row), **_SUMMARY.read(row))


def _status(row: Mapping[str, Any]) -> JobStatus:
    return status_from(row, codec.load(row["conditions"] or (), tuple[Condition, ...]))


def status_from(row: Mapping[str, Any], conditions: Sequence[Condition]) -> JobStatus:
    """Combine the columns of STATUS and the column `status` of a job with its conditions."""
    return codec.load({**row["status"], **STATUS.read(row), "conditions": tuple(conditions)}, JobStatus)


def status_document(status: JobStatus) -> dict[str, Any]:
    """Return the value of the column `status`: the fields that have no column, except those with their default.

    Most fields of most jobs have it. So a default never changes: stored jobs would get the new one.
    """
    others = {name: value for name, default in _DEFAULTS.items() if (value := getattr(status, name)) != default}
    document: dict[str, Any] = codec.dump(others)
    return document


async def load_conditions(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[Condition]]:
    found: dict[UUID, list[Condition]] = defaultdict(list)
    for row in await connection.fetch(_CONDITIONS, uids):
        found[row["job_uid"]].append(condition_from(row))
    return found


def condition_from(row: Mapping[str, Any]) -> Condition:
    return Condition(**{**CONDITION.read(row), "type": ConditionType(row["type"])})


# Each kind is one probe of the index. DISTINCT would read all of its entries.
_NEXT_KIND: Final = f"SELECT min(kind) FROM jobs WHERE {job_list_condition('jobs_listed_by_kind')}"  # noqa: S608
_KINDS: Final = f"""
WITH RECURSIVE found(kind) AS (
    {_NEXT_KIND}
    UNION ALL
    SELECT ({_NEXT_KIND} AND jobs.kind > found.kind) FROM found WHERE found.kind IS NOT NULL
)
SELECT kind FROM found WHERE kind IS NOT NULL
"""  # noqa: S608  constants

JOB_HISTORY: Final = HistoryTable(status_history)
STORED_JOBS: Final = Stored[JobRow](
    resource=JOBS,
    table=jobs,
    alias="j",
    columns=COLUMNS,
    row=job_row,
    holder="SELECT job_uid FROM names WHERE namespace = $1 AND kind = 'job' AND name = $2 AND NOT released",
    kinds=_KINDS,
    history=JOB_HISTORY,
    sorted_indexes=[
        SortedIndex(columns=columns, condition=job_list_condition(name, at="{at}."), only_present=only_present)
        for name, (columns, only_present) in JOB_LISTS.items()
    ],
    indexed={"uid", "name", "labels", "finished_at", "prefix", "still_running"},
    summary_columns=SUMMARY_COLUMNS,
    summary=job_summary,
)
