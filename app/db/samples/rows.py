"""Rows of SampleSets and SampleJobs, for the API and the controller."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.db.objects.history import HistoryTable
from app.db.objects.resources import ObjectRow, SortedIndex, Stored
from app.db.postgres import codec
from app.db.postgres.columns import columns, record_columns
from app.db.postgres.engine import Database
from app.domain.kinds.registry import SAMPLE_KINDS
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.sample_status import SampleStatus
from app.domain.plan import Manifest
from app.models.samples import sample_events as sample_events_table
from app.models.samples import sample_history, samples

NO_STATUS: Final = SampleStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow(ObjectRow):
    """The stored row of a SampleSet or a SampleJob.

    `version` increases with every readable change, except of the two times of observation. `set_name` is the sample set
    that a SampleJob belongs to; of a SampleSet, its own name.
    """

    api_version: str
    manifest: Manifest
    set_name: str
    phase: str
    record: Any
    intent_version: int = 1
    observed_generation: int = 0
    history_count: int = 1
    event_count: int = 0
    delete_requested_at: datetime | None = None
    gone_at: datetime | None = None
    reason: str = ""
    message: str = ""
    status: SampleStatus = NO_STATUS
    observed_at: datetime | None = None
    cache_observed_at: datetime | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the object has ended, or was deleted and nothing of it is left."""
        if self.delete_requested_at is not None:
            return self.gone_at is not None
        return self.phase in self.of_kind.ended

    @property
    def is_in_cluster(self) -> bool:
        return self.of_kind.has_objects and self.gone_at is None

    @property
    def of_kind(self) -> SampleKind:
        return SAMPLE_KINDS[self.kind]

    @property
    def deleted_at(self) -> datetime | None:
        return self.delete_requested_at


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEventRow:
    """`seq` counts from 1 without gaps; `type` is Normal or Warning."""

    seq: int
    at: datetime
    type: str
    reason: str
    message: str


_PLAIN: Final = record_columns(samples, SampleRow, elsewhere=["record", "status"])
STATUS: Final = record_columns(samples, SampleStatus)
ROW: Final = _PLAIN + columns(samples, "record") + STATUS
"""The columns of a whole row, in the order of `row_values`."""
COLUMNS: Final = ROW.of("s")
"""The columns of `samples AS s` that `sample_row` reads."""
HOLDER: Final = f"""
SELECT {COLUMNS} FROM samples AS s WHERE s.kind = $1 AND s.namespace = $2 AND s.name = $3 AND s.gone_at IS NULL
"""  # noqa: S608  constants
"""Finds the sample that holds a name, by kind, namespace and name. It may be leaving."""

_EVENT: Final = record_columns(sample_events_table, SampleEventRow)
_EVENTS: Final = f"""
SELECT {_EVENT} FROM sample_events WHERE uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""  # noqa: S608  constants


def sample_row(row: Mapping[str, Any]) -> SampleRow:
    status = codec.load(STATUS.read(row), SampleStatus)
    return SampleRow(record=record_from(row["kind"], row["record"]), status=status, **_PLAIN.read(row))


def row_values(row: SampleRow) -> tuple[Any, ...]:
    return (*_PLAIN.values(row), codec.text_of(record_document(row.record)), *STATUS.values(row.status))


def record_document(record: Any) -> dict[str, Any]:
    """Return the record as JSON can represent it. Sets are sorted, so that equal records are equal documents."""
    document: dict[str, Any] = codec.dump(record)
    for name, value in document.items():
        if isinstance(getattr(record, name), frozenset):
            document[name] = sorted(value)
    return document


def record_from(kind: str, document: Mapping[str, Any]) -> Any:
    """Return the record of a document. A field that an older version did not store has its default."""
    return codec.load(document, SAMPLE_KINDS[kind].record)


SAMPLE_HISTORY: Final = HistoryTable(sample_history)


def storage_of(kind: SampleKind) -> Stored[SampleRow]:
    """Return how objects of the kind are stored."""
    only = f"s.kind = '{kind.name}'"
    return Stored(
        resource=kind.resource,
        table=samples,
        alias="s",
        columns=COLUMNS,
        row=sample_row,
        holder=f"SELECT uid FROM samples AS s WHERE {only} AND namespace = $1 AND name = $2 AND gone_at IS NULL",  # noqa: S608
        deleted="delete_requested_at",
        only=only,
        history=SAMPLE_HISTORY,
        # Each begins with the kind.
        sorted_indexes=[
            SortedIndex(),
            SortedIndex(columns=("namespace",)),
            SortedIndex(columns=("set_name", "namespace")),
        ],
        indexed={"uid", "name", "set_name", "finished_at", "prefix"},
        # The manifests of these kinds are short.
        summary_columns=COLUMNS,
        summary=sample_row,
    )


async def sample_events(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[SampleEventRow]:
    """Return at most `limit` events with numbers above `after_seq`, the oldest first."""
    async with db.read() as connection:
        return [SampleEventRow(**row) for row in await connection.fetch(_EVENTS, uid, after_seq, limit)]
