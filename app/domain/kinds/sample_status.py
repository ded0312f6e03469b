"""The part of the status that all sample kinds have in common: conditions, and the times of start and end."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.domain.kinds.sample_kind import SampleKind
from app.domain.status.conditions import merge_conditions
from app.domain.status.records import Condition
from app.domain.vocabulary import ConditionType

DELETED: Final = "Deleted"
"""The reason for the end of an object that was deleted before it ended by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStatus:
    """The conditions of an object, and when it last started and finished. A kind that never ends has no such times."""

    conditions: tuple[Condition, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None


def updated_status(kind: SampleKind, before: SampleStatus, record: Any, generation: int, now: datetime) -> SampleStatus:
    """Return the status of an object whose reconcile has returned `record`. `before` is its status until then.

    Reasons and messages of conditions are those of the record: they say what is in the way now.
    """
    wanted = kind.conditions(record, {condition.type for condition in before.conditions})
    conditions = merge_conditions(before.conditions, wanted, now, generation, followed=wanted)
    if not kind.ended or not record.phase:
        return SampleStatus(conditions=conditions)
    finished_at = (before.finished_at or now) if record.phase in kind.ended else None
    return SampleStatus(conditions=conditions, started_at=before.started_at or now, finished_at=finished_at)


def deleted_status(before: SampleStatus, generation: int, now: datetime) -> SampleStatus:
    """Return the status of an object that was deleted and has no objects in the cluster.

    No reconcile follows, so an object that has started ends with its deletion.
    """
    wanted = {
        condition.type: (condition.status == str(True), condition.reason, condition.message)
        for condition in before.conditions
    }
    if ConditionType.RUNNING in wanted and wanted[ConditionType.RUNNING][0]:
        wanted[ConditionType.RUNNING] = (False, DELETED, "")
    conditions = merge_conditions(before.conditions, wanted, now, generation, followed=())
    finished_at = before.finished_at or (now if before.started_at else None)
    return replace(before, conditions=conditions, finished_at=finished_at)
