"""The part of the status that all kinds without pods have in common: conditions, and the times of start and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.kinds.base import PodlessKind
from app.domain.reconcile.conditions import merged
from app.domain.status.records import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class PodlessStatus:
    """The conditions of an object, and when it last started and finished. A kind that never ends has no such times."""

    conditions: Sequence[Condition] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None


def updated_status(
    kind: PodlessKind, before: PodlessStatus, record: Any, generation: int, now: datetime
) -> PodlessStatus:
    """Return the status of an object whose reconcile has returned `record`. `before` is its status until then."""
    conditions = merged(before.conditions, kind.conditions(record), now, generation)
    if not kind.ended or not record.phase:
        return PodlessStatus(conditions=conditions)
    finished_at = (before.finished_at or now) if record.phase in kind.ended else None
    return PodlessStatus(conditions=conditions, started_at=before.started_at or now, finished_at=finished_at)
