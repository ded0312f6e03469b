"""New objects of any resource, and the answers to their submission."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias
from uuid import UUID

from app.db.objects.idempotency import IdempotencyKey, KeyConflict, KeyInFlight, Replayed
from app.db.objects.resources import Row
from app.domain.plan import Manifest
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.reservations.pod_limits import OverLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class New(Generic[Row]):
    """An object to store: its row as it will be read, and what is stored beside the row.

    `names` are those that it reserves, its own among them; no two of these ranges share a name.
    """

    row: Row
    names: Sequence[NameRange]
    posted_manifest: Manifest | None = None
    idempotency: IdempotencyKey | None = None

    @property
    def uid(self) -> UUID:
        return self.row.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The object is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """An object that is not gone uses the name.

    `holder_kind` is the word for it in messages. `leaving`: it is being deleted.
    """

    kind: NameKind
    name: str
    holder_name: str
    holder_uid: UUID
    holder_kind: str
    leaving: bool = False


Answer: TypeAlias = Submitted | NameTaken | OverLimit | Replayed | KeyConflict | KeyInFlight
