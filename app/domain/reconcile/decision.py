"""What one pass over a job concludes: what to persist, and then what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import Rank
from app.domain.reconcile.actions import Action
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Replica, ScaleRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`changed` are the replicas whose rows differ from what was recorded, `ended` the attempts whose end (or the
    evidence of it) is new, `scaled` the scale records whose outcome is known now. `dirty` is False when nothing needs
    to be written, `again` asks for another pass at once. Actions run only after the write.
    """

    status: JobStatus
    replicas: Mapping[Rank, Replica]
    changed: tuple[Replica, ...]
    ended: tuple[tuple[Rank, Attempt], ...]
    history: tuple[HistoryEntry, ...]
    scaled: tuple[ScaleRecord, ...] = ()
    actions: tuple[Action, ...]
    wake_at: datetime | None
    again: bool
    dirty: bool
