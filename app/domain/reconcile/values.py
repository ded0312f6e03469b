"""The inputs of one reconcile of a job, and its result: what to store, and the actions to execute after that."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.actions import Action
from app.domain.reconcile.timing import Timing
from app.domain.reservations.pod_limits import RoomWait
from app.domain.status.observed import ObservedJob
from app.domain.status.records import Attempt, HistoryEntry, Intent, JobStatus, Recorded, Replica, ScaleRecord
from app.domain.usage.sums import NO_CHANGE, UsageChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to store, and the actions that may run only after it is stored.

    `changed` are the replicas that differ from the record, `ended` the attempts with a new end or new evidence, and
    `scaled` the scale records with a new outcome. `dirty` is False if nothing needs to be stored. `again` requests
    another reconcile at once, and `wake_at` one at that time. `usage` is what to add to the sums of what was used.
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
    usage: UsageChange = NO_CHANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of one reconcile. `plan` must match `recorded.status.resumes`, since resumed pods may differ.

    `may_start` is False while another job that has been withdrawn starts again: see `app/loops/jobs/start_turns.py`.
    `room_wait` is what the job waits for within the limits of live pods; None if it has room.
    """

    plan: JobPlan
    intent: Intent
    recorded: Recorded
    observed: ObservedJob
    now: datetime
    timing: Timing
    may_start: bool = True
    room_wait: RoomWait | None = None
