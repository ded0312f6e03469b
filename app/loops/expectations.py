"""What acting has taught about a job since this controller started. Lost at a restart, and learnt again."""

from dataclasses import dataclass, field

from app.domain.plan import Rank
from app.domain.status.observed import ClusterRefusal, PendingReason


@dataclass(slots=True)
class Facts:
    """`retry_at` holds monotonic times before which a refused create is not repeated; the key None is the job's own.

    `anchors` are uids of the job's anchor as the cluster gave them; `anchor_sought` says that it was asked for them.
    `learnt` rises with everything that lets the next pass conclude more than the last one did.
    """

    learnt: int = 0
    gone: set[str] = field(default_factory=set)
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    job_refusal: ClusterRefusal | None = None
    pending_events: dict[str, PendingReason] = field(default_factory=dict)
    objects_gone: bool = False
    anchor_marked: bool = False
    hosts_generation: int | None = None
    anchors: list[str] = field(default_factory=list)
    anchor_sought: bool = False
    retry_at: dict[Rank | None, float] = field(default_factory=dict)
    tries: dict[Rank | None, int] = field(default_factory=dict)
    capturing_since: dict[str, float] = field(default_factory=dict)

    def accept(self, key: Rank | None) -> None:
        """Forget a refusal: the cluster has said yes."""
        if self.tries.pop(key, None) is not None:
            self.learnt += 1
        self.retry_at.pop(key, None)
        if key is None:
            self.job_refusal = None
        else:
            self.refusals.pop(key, None)


class FactBook:
    """Facts by job uid, for jobs that are being worked on."""

    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}

    def of(self, uid: str) -> Facts:
        return self._facts.setdefault(uid, Facts())

    def forget(self, uid: str) -> None:
        self._facts.pop(uid, None)
