"""A sample as a row, for the API and for the controller alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from app.db import codec
from app.domain.cache.kinds import CACHE_KINDS, SAMPLE_JOB, SAMPLE_SET, CacheKind
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.plan import Manifest

SampleRecord: TypeAlias = SetRecord | JobRecord

_RECORDS: Final[Mapping[str, type[SetRecord] | type[JobRecord]]] = MappingProxyType(
    {SAMPLE_SET.kind: SetRecord, SAMPLE_JOB.kind: JobRecord}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """One SampleSet or SampleJob. `version` changes with everything that can be read of it but the two moments of
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
    record: SampleRecord
    observed_at: datetime | None
    cache_observed_at: datetime | None

    @property
    def cache_kind(self) -> CacheKind:
        return CACHE_KINDS[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleHistoryRow:
    """`seq` counts from 1 without gaps."""

    seq: int
    at: datetime
    phase: str
    reason: str
    message: str
    actor: str


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
COLUMNS: Final = ", ".join(f"s.{name}" for name in (*_PLAIN, "record"))
"""What to select, or to return, of `samples AS s` for `sample_row`."""


def sample_row(row: Mapping[str, Any]) -> SampleRow:
    return SampleRow(record=record_from(row["kind"], row["record"]), **{name: row[name] for name in _PLAIN})


def record_document(record: SampleRecord) -> dict[str, Any]:
    """What JSON can say of a record, always in the same words."""
    document: dict[str, Any] = codec.dump(record)
    if isinstance(record, SetRecord):
        document["made"] = sorted(document["made"])
    return document


def record_from(kind: str, document: Mapping[str, Any]) -> SampleRecord:
    """A field that an older version did not write has its default."""
    return codec.load(document, _RECORDS[kind])


def first_record(kind: str) -> SampleRecord:
    return _RECORDS[kind]()
