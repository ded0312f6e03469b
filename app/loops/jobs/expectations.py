"""What the controller has learned from the cluster about each job since it started. A restart loses it."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from app.domain.plan import JobWarning, Rank
from app.domain.status.log_lines import one_line
from app.domain.status.observed import AlteredObject, ClusterRefusal, PendingReason
from app.domain.status.records import MOST_WARNINGS
from app.domain.vocabulary import WarningSource


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsuredObjects:
    """The objects of a generation of a job exist: the uid of their anchor. Counts until a monotonic time."""

    generation: int
    anchor: str
    until: float

    def serve(self, generation: int, now: float) -> bool:
        """Return whether pods of this generation need no other objects now."""
        return generation == self.generation and now < self.until


@dataclass(slots=True)
class Expectations:
    """What the controller knows about one job besides its record and the mirror.

    `retry_at` holds the monotonic times before which a refused create is not repeated, by replica; the key None stands
    for the objects of the job. `anchors` are the uids of the job's anchor in the cluster, and `anchor_sought` is True
    once the cluster was queried for them. `ensured` are the objects that were created with the Workload of the job.
    `altered` has the last object that the cluster changed when it created it, by replica as in `retry_at`. `unfollowed`
    are uids of recorded pods without the job's labels, which the cluster does not let jobgate put back. `warnings` are
    those of the cluster about objects that it created. `redacted_at` is when the job was last redacted, as the last
    capture of evidence has found it. `group_deleting` says that the PodGroup is gone, being deleted, or edited by
    another client, and `group_due` is the monotonic time of its next read. `revision` increases with every change that
    can lead to another decision.
    """

    revision: int = 0
    # The uids of pods that a quorum read did not find. Their absence from the mirror would not suffice.
    gone: set[str] = field(default_factory=set)
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    job_refusal: ClusterRefusal | None = None
    pending_events: dict[str, PendingReason] = field(default_factory=dict)
    objects_gone: bool = False
    anchor_marked: bool = False
    hosts_generation: int | None = None
    anchors: list[str] = field(default_factory=list)
    anchor_sought: bool = False
    group_deleting: bool = False
    group_due: float | None = None
    ensured: EnsuredObjects | None = None
    retry_at: dict[Rank | None, float] = field(default_factory=dict)
    tries: dict[Rank | None, int] = field(default_factory=dict)
    capturing_since: dict[str, float] = field(default_factory=dict)
    redacted_at: datetime | None = None
    altered: dict[Rank | None, AlteredObject] = field(default_factory=dict)
    unfollowed: set[str] = field(default_factory=set)
    warnings: list[JobWarning] = field(default_factory=list)

    def accept(self, key: Rank | None) -> None:
        """Forget the refusal of a create that has now succeeded."""
        if self.tries.pop(key, None) is not None:
            self.revision += 1
        self.retry_at.pop(key, None)
        self.altered.pop(key, None)
        if key is None:
            self.job_refusal = None
        else:
            self.refusals.pop(key, None)

    def note_group(self, *, deleting: bool) -> None:
        """Note whether the PodGroup of the job is being deleted, as a create or a read has found it."""
        self.revision += self.group_deleting != deleting
        self.group_deleting = deleting

    def warn(self, key: Rank | None, text: str) -> None:
        """Remember a warning of the cluster about a new object. A webhook can give each object another one."""
        task = key.task if key is not None else None
        warning = JobWarning(source=WarningSource.CLUSTER, task=task, message=one_line(text))
        if warning not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(warning)
            self.revision += 1

    def removed(self, uid: str) -> None:
        """Remember that an altered object is deleted and released, so that its create may be repeated."""
        self.altered = {key: replace(one, removed=True) if one.uid == uid else one for key, one in self.altered.items()}
        self.revision += 1


class ExpectationsByJob:
    """Expectations by job uid. Only jobs that still change have an entry."""

    def __init__(self) -> None:
        self._expectations: dict[str, Expectations] = {}

    def of(self, uid: str) -> Expectations:
        return self._expectations.setdefault(uid, Expectations())

    def forget(self, uid: str) -> None:
        self._expectations.pop(uid, None)
