"""The inputs of one reconcile of a job."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import JobPlan
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import ObservedJob
from app.domain.status.records import Intent, Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`plan` is made for `recorded.status.resumes`: a dialect may render the pods of a resumed job differently."""

    plan: JobPlan
    intent: Intent
    recorded: Recorded
    observed: ObservedJob
    now: datetime
    timing: Timing
