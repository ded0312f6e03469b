"""What the actions of one decision are given."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.plan import JobPlan
from app.domain.queueing.admission import Queueing
from app.domain.reconcile.actions import Action
from app.loops.jobs.expectations import Expectations


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The actions of one decision, and what they need.

    `established` is True if the job had pods before. `anchors` are the recorded uids of the job's anchor.
    `revision_before` is the revision of the expectations that the decision was made on. `queueing` is the stored queue
    of the job, with the admission that its pods follow.
    """

    plan: JobPlan
    actions: Sequence[Action]
    expectations: Expectations
    revision_before: int
    established: bool
    anchors: tuple[str, ...] = ()
    queueing: Queueing | None = None
