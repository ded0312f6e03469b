"""The tables with records about objects. What concerns all that is stored of an object, follows from these lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Table

from app.models import jobs, kept_logs, replicas, reservations, samples, usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """A table with records of objects. `owner` is its column with their uid."""

    table: Table
    owner: str


JOB_RECORDS: Final[Sequence[RecordTable]] = [
    RecordTable(table=table, owner="job_uid")
    for table in (
        jobs.conditions,
        jobs.status_history,
        jobs.scale_records,
        replicas.replicas,
        replicas.attempts,
        replicas.attempt_logs,
        replicas.attempt_events,
    )
]
"""What is recorded of jobs beside their row."""

JOB_RESERVATIONS: Final[Sequence[RecordTable]] = [
    RecordTable(table=table, owner="job_uid")
    for table in (reservations.names, reservations.room_waits, usage.usage_rates)
]
"""What jobs hold. An ended job without objects holds nothing."""

JOB_LOGS: Final[Sequence[RecordTable]] = [
    RecordTable(table=table, owner="job_uid")
    for table in (kept_logs.kept_logs, kept_logs.log_chunks, kept_logs.kept_log_totals)
]
"""The index of the whole logs of jobs."""

SAMPLE_RECORDS: Final[Sequence[RecordTable]] = [
    RecordTable(table=table, owner="uid") for table in (samples.sample_history, samples.sample_events)
]
"""What is recorded of samples beside their row."""
