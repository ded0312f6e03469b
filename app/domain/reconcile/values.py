"""The inputs of one reconcile of a job, and its result: what to store, and the actions to execute after that."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.actions import Action
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import ObservedJob
from app.domain.status.records import Attempt, HistoryEntry, Intent, JobStatus, Recorded, Replica, ScaleRecord


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`plan` is made for `recorded.status.resumes`: a dialect may render the pods of a resumed job differently."""

    plan: JobPlan
    intent: Intent
    recorded: Recorded
    observed: ObservedJob
    now: datetime
    timing: Timing
