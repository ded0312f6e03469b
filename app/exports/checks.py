"""Checks a job of an export before it is stored, with the functions that read stored jobs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import JSON

from app.db.exports.tables import JOB_TABLE, RECORD_TABLES, ExportedTable, read_values
from app.db.exports.writing import Values
from app.db.jobs.attempts import attempt_from
from app.db.jobs.replicas import replica_from
from app.db.jobs.rows import JOB_HISTORY, condition_from, job_row
from app.db.jobs.scale_records import scale_record_from
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import DomainError
from app.domain.exports.lines import JobLine, RecordsLine, Row
from app.domain.kinds import registry
from app.domain.status.records import Attempt, JobStatus
from app.domain.vocabulary import JobPhase, PendingCode

_NUMBERED: Final = {"status_history": "history_count", "scale_records": "scale_count"}
"""The tables whose rows are numbered from 1 without gaps, and the columns of `jobs` with their numbers of rows."""
_STATES: Final = ("waiting", "running", "terminated")


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _StoredEvent(msgspec.Struct):
    """The fields of an Event that answers show."""

    type: str | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    last_seen: datetime | None = msgspec.field(default=None, name="lastSeen")


class _Condition(msgspec.Struct):
    status: Literal["True", "False", "Unknown"]


class JobPiece(NamedTuple):
    """The values of a line: of the row of a job if it begins there, and of its records by table."""

    uid: UUID
    job: Values | None
    records: Mapping[str, Sequence[Values]]
    is_last: bool


class JobCheck:
    """Checks one job after the other, line by line.

    `served` are the namespaces that jobs may be in. A job has at most `max_replicas`, because answers with its objects
    expand its manifest.
    """

    def __init__(self, served: NamespaceSet, max_replicas: int) -> None:
        self._served = served
        self._max_replicas = max_replicas
        self._job: Values = {}
        self._counts: Counter[str] = Counter()

    def read(self, line: JobLine | RecordsLine) -> JobPiece:
        """Return the values of the rows of a line.

        Raises:
            ValueError: it cannot be stored, or would not be readable.
        """
        job = None
        if isinstance(line, JobLine):
            job = self._job = self._read_job(line.job)
            self._counts.clear()
        records = {name: self._read_records(name, rows) for name, rows in line.records.items()}
        if line.complete:
            self._require_all()
        return JobPiece(self._job["uid"], job, records, line.complete)

    def _read_job(self, row: Row) -> Values:
        values = read_values(JOB_TABLE, row)
        with_defaults = {"conditions": None, "quiet": True, "imported_at": None, **_decode(JOB_TABLE, values)}
        found = _try_read("jobs", job_row, with_defaults)
        if found.namespace not in self._served:
            raise ValueError(f"the namespace {found.namespace} is reserved")
        if not found.status.phase.is_terminal or found.status.finished_at is None:
            raise ValueError("the job has not ended")
        _try_read("jobs", _require_end, found.status)
        _try_read("jobs.labels", msgspec.convert, found.labels, dict[str, str])
        _try_read("jobs.reported", msgspec.convert, found.reported, dict[str, Any] | None)
        _try_read("jobs.manifest", self._require_manifest, found.manifest, found.kind)
        return values

    def _require_manifest(self, manifest: Any, kind: str) -> None:
        accepted = registry.find(manifest["apiVersion"], manifest["kind"]).read(manifest)
        if accepted.kind.name != kind:
            raise ValueError(f"it is a {accepted.kind.name} and not a {kind}")
        msgspec.convert(manifest["metadata"], _Metadata)
        replicas = _count_replicas(manifest["spec"])
        if replicas > self._max_replicas:
            raise ValueError(f"it has {replicas} replicas: accepted: at most {self._max_replicas}")

    def _read_records(self, name: str, rows: Sequence[Row]) -> list[Values]:
        table = RECORD_TABLES.get(name)
        if table is None:
            raise ValueError(f"there is no table {name} with records of jobs in this version")
        return [self._read_record(table, row) for row in rows]

    def _read_record(self, table: ExportedTable, row: Row) -> Values:
        name, values = table.name, read_values(table, row)
        if name in _READERS:
            _try_read(name, _READERS[name], {"job_uid": None, **_decode(table, values)})
        self._counts[name] += 1
        if name in _NUMBERED and values["seq"] != self._counts[name]:
            raise ValueError(f"the row {self._counts[name]} of {name} has the number {values['seq']}")
        return values

    def _require_all(self) -> None:
        for name, column in _NUMBERED.items():
            if self._counts[name] != self._job[column]:
                raise ValueError(f"the job has {self._counts[name]} rows of {name}, and {column} {self._job[column]}")


def _try_read(place: str, read: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `read` returns. Whatever it raises is a fault of the row."""
    try:
        return read(*arguments)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, DomainError) as error:
        detail = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{place}: {' '.join(detail.split())}") from error


def _decode(table: ExportedTable, values: Values) -> dict[str, Any]:
    """Return the values with decoded JSON, as a read of the database returns them."""
    return {
        name: msgspec.json.decode(value) if isinstance(table.columns[name].type, JSON) and value is not None else value
        for name, value in values.items()
    }


def _require_end(status: JobStatus) -> None:
    if status.still_running:
        raise ValueError("replicas of the job still run")
    if status.first_failure is not None and status.first_failure.at is None:
        raise ValueError("the first failure has no time")
    for reason in status.pending_reasons:
        PendingCode(reason.code)


def _count_replicas(value: Any) -> int:
    """Return the sum of all fields `replicas` of a spec, whatever its kind calls its tasks."""
    total, values = 0, [value]
    for part in values:  # the loop also reads the values that it appends
        if isinstance(part, dict):
            total += sum(
                number
                for key, number in part.items()
                # A negative number would hide the replicas of other tasks.
                if key.lower() == "replicas" and isinstance(number, int) and number > 0
            )
            values += part.values()
        elif isinstance(part, list):
            values += part
    return total


def _require_containers(attempt: Attempt) -> None:
    for container in attempt.containers:
        if container.state not in _STATES:
            raise ValueError(f"the state of a container is {container.state}: accepted: {', '.join(_STATES)}")


def _read_attempt(row: Mapping[str, Any]) -> None:
    _require_containers(attempt_from(row))


def _read_replica(row: Mapping[str, Any]) -> None:
    _require_containers(replica_from(row).replica.attempt)


def _read_condition(row: Mapping[str, Any]) -> None:
    condition_from(row)
    msgspec.convert({"status": row["status"]}, _Condition)


def _read_history(row: Mapping[str, Any]) -> None:
    JobPhase(JOB_HISTORY.row(row).entry.phase)
    if (row["task"] is None) != (row["rank"] is None):
        raise ValueError("it has a task without a rank, or a rank without a task")


def _read_events(row: Mapping[str, Any]) -> None:
    msgspec.convert(row["events"], list[_StoredEvent])


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    "conditions": _read_condition,
    "status_history": _read_history,
    "scale_records": scale_record_from,
    "replicas": _read_replica,
    "attempts": _read_attempt,
    "attempt_events": _read_events,
}
"""How a row is read, for the tables with words or documents."""
