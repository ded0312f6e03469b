"""The result of one reconcile of a job: what to store, and the actions to execute after that."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import Rank
from app.domain.reconcile.actions import Action
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Replica, ScaleRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The actions run only after the rest is stored.

    `changed` are the replicas whose rows differ from the record, `ended` the attempts whose end, or the evidence of
    it, is new, `scaled` the scale records whose outcome is now known. `dirty` is False if nothing needs to be written.
    `again` asks for another reconcile at once.
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
