"""What one pass over a job looks at."""

from dataclasses import dataclass
from datetime import datetime

from app.domain.plan import JobPlan
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import ObservedJob
from app.domain.status.records import Intent, Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`plan` is that of `recorded.status.resumes`: a dialect renders resumed pods differently."""

    plan: JobPlan
    intent: Intent
    recorded: Recorded
    observed: ObservedJob
    now: datetime
    timing: Timing
