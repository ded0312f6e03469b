"""A job as the API reads it: one row, its conditions with it, in one statement."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.db import codec
from app.db.engine import Connection
from app.db.feed.changes import JOBS
from app.db.resources import Stored
from app.domain.plan import Manifest
from app.domain.status.records import Condition, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """What a job's status is rendered from: no manifest, which may be a megabyte."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None
    status: JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow(JobSummary):
    """`version` changes with everything that can be read of a job, replicas and evidence included.

    `scale_count` is how many scale records it has, `reported` what its own pods have told last.
    """

    api_version: str
    labels: Mapping[str, str]
    manifest: Manifest
    version: int
    created_at: datetime
    created_by: str
    retry_of: UUID | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    remove_requested_at: datetime | None
    scale_count: int = 0
    reported: Mapping[str, Any] | None = None

    @property
    def finished(self) -> bool:
        return self.status.phase.is_terminal


_CONDITIONS = f"""
SELECT job_uid, {", ".join(codec.CONDITION_COLUMNS)}
FROM conditions WHERE job_uid = ANY($1::uuid[]) ORDER BY job_uid, position
"""  # noqa: S608  the columns are ours
_PLAIN = (
    *("uid", "namespace", "name", "kind", "api_version", "labels", "manifest", "generation", "version", "created_at"),
    *("created_by", "retry_of", "cancel_requested_at", "cancel_requested_by", "cancel_reason", "remove_requested_at"),
    *("deleted_at", "scale_count", "reported"),
)

_SUMMARY = ("uid", "namespace", "name", "kind", "generation", "deleted_at")


def _columns(plain: Sequence[str]) -> str:
    return f"""{", ".join(f"j.{name}" for name in (*plain, *codec.STATUS_COLUMNS))}, j.status,
    (SELECT jsonb_agg(to_jsonb(c) - 'job_uid' - 'position' ORDER BY c.position)
     FROM conditions AS c WHERE c.job_uid = j.uid) AS conditions"""  # noqa: S608  columns of our own


COLUMNS = _columns(_PLAIN)
"""What to select, or to return, of `jobs AS j` for `job_row`."""
SUMMARY_COLUMNS = _columns(_SUMMARY)
"""The same for `job_summary`."""


def job_row(row: Mapping[str, Any]) -> JobRow:
    return JobRow(status=_status(row), **{name: row[name] for name in _PLAIN})


def job_summary(row: Mapping[str, Any]) -> JobSummary:
    return JobSummary(status=_status(row), **{name: row[name] for name in _SUMMARY})


def _status(row: Mapping[str, Any]) -> JobStatus:
    return codec.status_from(row, codec.load(row["conditions"] or (), tuple[Condition, ...]))


async def load_conditions(connection: Connection, uids: Sequence[UUID]) -> Mapping[UUID, Sequence[Condition]]:
    found: dict[UUID, list[Condition]] = defaultdict(list)
    for row in await connection.fetch(_CONDITIONS, uids):
        found[row["job_uid"]].append(codec.condition_from(row))
    return found


STORED_JOBS: Final = Stored[JobRow](
    resource=JOBS,
    table="jobs",
    alias="j",
    columns=COLUMNS,
    row=job_row,
    holder="SELECT job_uid FROM names WHERE namespace = $1 AND kind = 'job' AND name = $2 AND NOT released",
    history="status_history",
    history_key="job_uid",
    has_ranks=True,
)
