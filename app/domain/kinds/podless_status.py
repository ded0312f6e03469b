"""What a pass over an object without pods adds to its status: conditions, and when it began and ended. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.kinds.base import PodlessKind
from app.domain.reconcile.conditions import merged
from app.domain.status.records import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`started_at` and `finished_at` are those of the present try; None for a kind that never ends."""

    conditions: Sequence[Condition] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None


def concluded(kind: PodlessKind, before: Outcome, record: Any, generation: int, now: datetime) -> Outcome:
    """The outcome after a pass that has concluded `record`."""
    conditions = merged(before.conditions, kind.conditions(record), now, generation)
    if not kind.ended or not record.phase:
        return Outcome(conditions=conditions)
    finished_at = (before.finished_at or now) if record.phase in kind.ended else None
    return Outcome(conditions=conditions, started_at=before.started_at or now, finished_at=finished_at)
