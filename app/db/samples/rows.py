"""A sample as a row, for the API and for the controller alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.db import codec
from app.db.engine import Database
from app.db.resources import Stored
from app.domain.kinds.base import PodlessKind
from app.domain.kinds.podless_status import PodlessStatus
from app.domain.kinds.registry import PODLESS_KINDS
from app.domain.plan import Manifest
from app.domain.status.records import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """One object without pods. `version` changes with everything that can be read of it but the two moments of
    observation. `set_name` is the set that it is about.
    """

    uid: UUID
    kind: str
    namespace: str
    name: str
    api_version: str
    labels: Mapping[str, str]
    manifest: Manifest
    set_name: str
    generation: int
    version: int
    intent_version: int
    observed_generation: int
    history_count: int
    event_count: int
    created_at: datetime
    created_by: str
    delete_requested_at: datetime | None
    delete_requested_by: str | None
    gone_at: datetime | None
    phase: str
    reason: str
    message: str
    record: Any
    outcome: PodlessStatus
    observed_at: datetime | None
    cache_observed_at: datetime | None

    @property
    def of_kind(self) -> PodlessKind:
        return PODLESS_KINDS[self.kind]

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


_PLAIN: Final = (
    *("uid", "kind", "namespace", "name", "api_version", "labels", "manifest", "set_name", "generation", "version"),
    *("intent_version", "observed_generation", "history_count", "event_count", "created_at", "created_by"),
    *("delete_requested_at", "delete_requested_by", "gone_at", "phase", "reason", "message", "observed_at"),
    "cache_observed_at",
)
_DECODED: Final = ("record", "conditions", "started_at", "finished_at")
COLUMNS: Final = ", ".join(f"s.{name}" for name in (*_PLAIN, *_DECODED))
"""What to select, or to return, of `samples AS s` for `sample_row`."""

_EVENTS: Final = """
SELECT seq, at, type, reason, message FROM sample_events WHERE uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


def sample_row(row: Mapping[str, Any]) -> SampleRow:
    outcome = PodlessStatus(
        conditions=codec.load(row["conditions"], tuple[Condition, ...]),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )
    plain = {name: row[name] for name in _PLAIN}
    return SampleRow(record=record_from(row["kind"], row["record"]), outcome=outcome, **plain)


def record_document(record: Any) -> dict[str, Any]:
    """What JSON can say of a record, always in the same words: sets are sorted."""
    document: dict[str, Any] = codec.dump(record)
    for name, value in document.items():
        if isinstance(getattr(record, name), frozenset):
            document[name] = sorted(value)
    return document


def record_from(kind: str, document: Mapping[str, Any]) -> Any:
    """A field that an older version did not write has its default."""
    return codec.load(document, PODLESS_KINDS[kind].record)


def first_record(kind: str) -> Any:
    return PODLESS_KINDS[kind].record()


def stored_as(kind: PodlessKind) -> Stored[SampleRow]:
    """Where the objects of the kind are stored."""
    only = f"s.kind = '{kind.kind}'"
    return Stored(
        resource=kind.resource,
        table="samples",
        alias="s",
        columns=COLUMNS,
        row=sample_row,
        holder=f"SELECT uid FROM samples AS s WHERE {only} AND namespace = $1 AND name = $2 AND gone_at IS NULL",  # noqa: S608
        deleted="delete_requested_at",
        only=only,
        history="sample_history",
        history_key="uid",
    )


async def sample_events(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[SampleEventRow]:
    """The oldest first."""
    async with db.read() as connection:
        return [SampleEventRow(**row) for row in await connection.fetch(_EVENTS, uid, after_seq, limit)]
