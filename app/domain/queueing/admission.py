"""Reads a Workload: what Kueue has decided about a job, and why the job waits.

The messages are those of Kueue 0.15 and 0.19. An unknown one is taken as a wait for quota, which any wait may become.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from app.domain.errors import shorten
from app.domain.kubernetes import labels
from app.domain.kubernetes.conditions import Conditions, by_type, is_true, message_line
from app.domain.kubernetes.queueing import AdmissionCheck, FlavorSpec, PodSetAssignment, Workload
from app.domain.kubernetes.topology import TopologyAssignment, keep_places
from app.domain.plan import Manifest, PriorityClassKind, PriorityClassRef, Rank
from app.domain.vocabulary import PendingCode

# The first match counts: a message can name several flavors, and one that can become free matters most.
_CODES: Final = (
    ("resources validation failed", PendingCode.REFUSED),
    ("satisfy LimitRange constraints", PendingCode.REFUSED),
    ("insufficient unused quota", PendingCode.WAITING_FOR_QUOTA),
    ("is inactive", PendingCode.QUEUE_STOPPED),
    ("is stopped", PendingCode.QUEUE_STOPPED),
    ("doesn't exist", PendingCode.QUEUE_MISSING),
    ("selector", PendingCode.NO_MATCHING_FLAVOR),
    ("taint", PendingCode.NO_MATCHING_FLAVOR),
    ("affinity", PendingCode.NO_MATCHING_FLAVOR),
    ("unavailable in ClusterQueue", PendingCode.NO_MATCHING_FLAVOR),
    ("requested level", PendingCode.NO_MATCHING_FLAVOR),
    ("TopologyAwareScheduling", PendingCode.NO_MATCHING_FLAVOR),
    ("not found", PendingCode.NO_MATCHING_FLAVOR),
    ("resourceClaims", PendingCode.NO_MATCHING_FLAVOR),
    ("resource claims", PendingCode.NO_MATCHING_FLAVOR),
    ("flavor", PendingCode.WAITING_FOR_QUOTA),
    ("admission checks", PendingCode.ADMISSION_CHECKS),
    ("PodsReady condition", PendingCode.WAITING_FOR_KUEUE),
)
# Where the message of a wait goes on with the next pod set that does not fit, and how it names a flavor in which quota
# for one resource can become free, or never suffices.
_POD_SET: Final = "couldn't assign flavors to pod set "
_LACKING: Final = re.compile(r"insufficient unused quota for \S+ in flavor ([^\s,]+)")
_EXCEEDED: Final = re.compile(r"insufficient quota for \S+ in flavor ([^\s,]+)")
# How the message of an eviction names the preemptor: by the label `kueue.x-k8s.io/job-uid` of its Workload.
_PREEMPTOR: Final = re.compile(r"JobUID: ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
# Characters. A condition can have a message of 32 KiB, and the message of an eviction is stored with the job.
_MOST_OF_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAdmission:
    """What the pods of a pod set get by their admission, from its flavors, its topology and admission checks."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Manifest, ...] = ()
    topology: TopologyAssignment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdmission:
    """The admission of a task: that of its pod set, and the ranks that it covers, from `from_rank` to `size` - 1.

    `first` is the place of its first pod in the pod set. Replicas with the ranks `ended` have no place in it.
    """

    pod_set: str
    size: int
    pods: PodSetAdmission
    first: int = 0
    ended: tuple[int, ...] = ()
    from_rank: int = 0

    def covers(self, rank: int) -> bool:
        return self.from_rank <= rank < self.size

    def domain_of(self, rank: int) -> Mapping[str, str]:
        """Return the node labels of the topology domain that Kueue has assigned to a rank; none without a topology."""
        place = self.first + rank - self.from_rank - bisect_left(self.ended, rank)
        return self.pods.topology.domain_of(place) if self.pods.topology is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWorkload:
    """What is stored of one Workload of a job: the replicas that it is for, by task, and whether it is admitted.

    `number` is 0 for the first Workload of a job, and greater for one that a scale-up has added. `reclaimed` counts the
    pods of each pod set whose quota is given back. `evicted` is Kueue's reason for an eviction since the last admission
    of a further Workload; that of the first one is `Queueing.evicted`.
    """

    number: int
    tasks: Mapping[str, TaskAdmission]
    admitted: bool = False
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    evicted: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the job has none of its replicas any more."""
        return not any(task.from_rank < task.size for task in self.tasks.values())

    @property
    def sizes(self) -> Mapping[str, int]:
        """The counts of its pod sets."""
        counts: Counter[str] = Counter()
        for task in self.tasks.values():
            counts[task.pod_set] += max(0, task.size - task.from_rank)
        return {name: count for name, count in counts.items() if count}

    def is_for(self, key: Rank) -> bool:
        task = self.tasks.get(key.task)
        return task is not None and task.covers(key.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """What is stored of the queue of a job. `admission` is by task; None while the job has none.

    `evicted` is Kueue's reason for the present or last eviction, and `evicted_because` its message. `deactivated` says
    that the Workload is deactivated: the job is paused until the Workload is active again, which an edit of a later
    generation than `deactivated_in` causes. `reclaimed` counts the pods of each pod set whose quota is given back.
    `further` are the Workloads that scale-ups have added to this admission.

    `queued_at` is when the job last began to wait, and `admitted_at` when it was admitted after that; None while it
    waits. `evicted_at` is when the eviction began. Records of earlier versions lack these times.
    """

    name: str
    admission: Mapping[str, TaskAdmission] | None = None
    evicted: str = ""
    evicted_because: str = ""
    deactivated: bool = False
    deactivated_in: int = 0
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    queued_at: datetime | None = None
    admitted_at: datetime | None = None
    evicted_at: datetime | None = None
    further: tuple[RecordedWorkload, ...] = ()

    @property
    def first(self) -> RecordedWorkload:
        """The first Workload of the job."""
        is_admitted = self.admission is not None
        return RecordedWorkload(number=0, tasks=self.admission or {}, admitted=is_admitted, reclaimed=self.reclaimed)

    def admission_of(self, key: Rank) -> TaskAdmission | None:
        """Return the admission that covers the replica; None if none does."""
        found = (self.admission or {}).get(key.task)
        if found is not None and found.covers(key.rank):
            return found
        return next((item.tasks[key.task] for item in self.further if item.admitted and item.is_for(key)), None)

    def queue_again(self, now: datetime) -> "Queueing":
        """Return the record of a job that waits for another admission: for one Workload of its whole size."""
        return replace(self, admission=None, reclaimed={}, further=(), queued_at=now, admitted_at=None)

    @property
    def preemptor(self) -> UUID | None:
        """The uid of the job that Kueue's message names as the preemptor. It may belong to another client of Kueue."""
        found = _PREEMPTOR.search(self.evicted_because)
        return None if found is None else UUID(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Unadmitted:
    """The job waits in its queue. `holds_quota` says that Kueue has reserved quota, and checks admit the job later."""

    code: PendingCode
    message: str
    holds_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Kueue has admitted the job: its pods may run. `counts` are the pods of each pod set at the time of admission."""

    pod_sets: Mapping[str, PodSetAdmission]
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """Kueue requires the quota of the job, or its Workload is being deleted.

    The job holds quota until jobgate gives it back.
    """

    reason: str
    message: str
    holds_quota: bool
    is_deactivated: bool = False


Verdict: TypeAlias = Unadmitted | Admitted | Evicted


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorkload:
    """The Workload of a job in the cluster. `sizes` are the counts of its pod sets; `held` is jobgate's finalizer.

    `queue` is the one that jobgate made it for, also if a webhook of the cluster or another client has changed it.
    One that is not `labelled` has lost the labels by which jobgate follows it, and its state may be an earlier one.
    """

    uid: str
    verdict: Verdict
    queue: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    priority_class: PriorityClassRef | None = None
    held: bool = True
    labelled: bool = True
    deleting: bool = False
    ready: bool = False
    finished: bool = False
    reclaimable: Mapping[str, int] = field(default_factory=dict)


def observe_workload(
    workload: Workload, flavors: Mapping[str, FlavorSpec], *, labelled: bool = True
) -> ObservedWorkload:
    """Return the observation of a Workload. `flavors` are the ResourceFlavors of the cluster by name."""
    metadata = workload.metadata
    conditions = by_type(workload.status.conditions)
    return ObservedWorkload(
        uid=metadata.uid,
        verdict=_verdict(workload, conditions, flavors),
        queue=metadata.annotations.get(labels.QUEUE) or workload.spec.queue_name,
        sizes={item.name: item.count for item in workload.spec.pod_sets},
        priority_class=_priority_class(workload),
        held=labels.ADMISSION_FINALIZER in metadata.finalizers,
        labelled=labelled,
        deleting=metadata.deletion_timestamp is not None,
        ready=is_true(conditions, "PodsReady"),
        finished=is_true(conditions, "Finished"),
        reclaimable={item.name: item.count for item in workload.status.reclaimable_pods},
    )


def _priority_class(workload: Workload) -> PriorityClassRef | None:
    found = workload.spec.priority_class_ref
    kinds = [kind for kind in PriorityClassKind if found is not None and kind == found.kind]
    return PriorityClassRef(kind=kinds[0], name=found.name) if found is not None and kinds else None


def _verdict(workload: Workload, conditions: Conditions, flavors: Mapping[str, FlavorSpec]) -> Verdict:
    reserved, admitted = is_true(conditions, "QuotaReserved"), is_true(conditions, "Admitted")
    if not workload.spec.active:
        return Evicted(
            reason="Deactivated", message=_deactivation(conditions), holds_quota=reserved, is_deactivated=True
        )
    if workload.metadata.deletion_timestamp is not None:
        return Evicted(reason="WorkloadDeleted", message="the Workload of the job is deleted", holds_quota=reserved)
    if is_true(conditions, "Finished"):
        text = f"another client has finished it: {message_line(conditions['Finished'], _MOST_OF_MESSAGE)}"
        return Evicted(reason="WorkloadFinished", message=text, holds_quota=False)
    if reserved and is_true(conditions, "Evicted"):
        # Kueue sets the condition to False when it admits the Workload again.
        why = conditions["Evicted"]
        return Evicted(reason=why.reason, message=message_line(why, _MOST_OF_MESSAGE), holds_quota=True)
    if admitted:
        return _admitted_verdict(workload, flavors)
    return _waiting(conditions, workload.status.admission_checks, reserved=reserved)


def _deactivation(conditions: Conditions) -> str:
    """Return Kueue's message for a deactivation, which it writes later than `active`: before, Evicted is an earlier
    eviction.
    """
    if is_true(conditions, "Evicted") and conditions["Evicted"].reason.startswith("Deactivated"):
        return message_line(conditions["Evicted"], _MOST_OF_MESSAGE)
    return "the Workload of the job is deactivated"


def _checks_in_progress(checks: Sequence[AdmissionCheck]) -> str:
    unready = [item for item in checks if item.state != "Ready"]
    named = "; ".join(": ".join(filter(None, (f"{item.name} is {item.state}", item.message))) for item in unready)
    text = ": ".join(filter(None, ("quota is reserved, and admission checks are in progress", named)))
    return shorten(" ".join(text.split()), _MOST_OF_MESSAGE)


def _waiting(conditions: Conditions, checks: Sequence[AdmissionCheck], *, reserved: bool) -> Unadmitted:
    if reserved:
        return Unadmitted(code=PendingCode.ADMISSION_CHECKS, message=_checks_in_progress(checks), holds_quota=True)
    quota = conditions.get("QuotaReserved")
    if quota is None:
        # Kueue 0.19 reports nothing of a Workload that is equal to one that waits for quota.
        message = "Kueue reports nothing yet: it has not considered the job, or an equal one waits before it"
        return Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=message)
    requeued = conditions.get("Requeued")
    # Inadmissible is no back-off either: the job waits until somebody changes what the message of QuotaReserved names.
    if requeued is not None and requeued.status == "False" and requeued.reason != "Inadmissible":
        # ClusterQueueStopped and LocalQueueStopped are no back-off: the job waits until the queue runs again.
        stopped = requeued.reason.endswith("QueueStopped")
        code = PendingCode.QUEUE_STOPPED if stopped else PendingCode.REQUEUE_BACK_OFF
        return Unadmitted(code=code, message=f"{requeued.reason}: {message_line(requeued, _MOST_OF_MESSAGE)}")
    return Unadmitted(code=_code(quota.message), message=message_line(quota, _MOST_OF_MESSAGE))


def _code(message: str) -> PendingCode:
    """Return the code of a wait. All pod sets must fit, so one that never does counts more than one that waits."""
    codes = [_code_of_pod_set(reasons) for reasons in message.split(_POD_SET)]
    return next((code for code in codes if code is not PendingCode.WAITING_FOR_QUOTA), PendingCode.WAITING_FOR_QUOTA)


def _code_of_pod_set(reasons: str) -> PendingCode:
    """Return the code of a pod set. One flavor must have all its resources, and any of several flavors will do."""
    if exceeded := set(_EXCEEDED.findall(reasons)):
        may_fit = not exceeded.issuperset(_LACKING.findall(reasons))
        return PendingCode.WAITING_FOR_QUOTA if may_fit else PendingCode.EXCEEDS_MAX_QUOTA
    found = (code for words, code in _CODES if words in reasons)
    return next(found, PendingCode.WAITING_FOR_QUOTA)


def _admitted_verdict(workload: Workload, flavors: Mapping[str, FlavorSpec]) -> Verdict:
    admission = workload.status.admission
    assigned = {item.name: item for item in (admission.pod_set_assignments if admission is not None else ())}
    reclaimable = {item.name: item.count for item in workload.status.reclaimable_pods}
    pod_sets: dict[str, PodSetAdmission] = {}
    counts: dict[str, int] = {}
    for pod_set in workload.spec.pod_sets:
        assignment = assigned.get(pod_set.name, PodSetAssignment())
        names = dict.fromkeys(assignment.flavors.values())
        missing = [name for name in names if name not in flavors]
        if missing:
            message = f"the cluster has no ResourceFlavor {', '.join(missing)}"
            return Unadmitted(code=PendingCode.NO_MATCHING_FLAVOR, message=message, holds_quota=True)
        topology = assignment.topology_assignment
        if topology is not None and not topology.is_for(pod_set.count):
            message = f"the topology assignment of the pod set {pod_set.name} contradicts itself, so no pod is placed"
            return Unadmitted(code=PendingCode.NO_MATCHING_FLAVOR, message=message, holds_quota=True)
        needed = pod_set.count - reclaimable.get(pod_set.name, 0)
        if assignment.count is not None and assignment.count < needed:
            message = (
                f"Kueue has reserved quota for {assignment.count} of {needed} pods of the pod set {pod_set.name}, and "
                "no job starts in part: another client has set minCount in the Workload. Delete the Workload"
            )
            return Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message=message, holds_quota=True)
        admitted = _pod_set_admission(workload, pod_set.name, [flavors[name] for name in names])
        pod_sets[pod_set.name] = replace(admitted, topology=topology)
        counts[pod_set.name] = needed if assignment.count is None else assignment.count
    return Admitted(pod_sets=pod_sets, counts=counts)


def _pod_set_admission(workload: Workload, name: str, flavors: list[FlavorSpec]) -> PodSetAdmission:
    updates = [
        update for check in workload.status.admission_checks for update in check.pod_set_updates if update.name == name
    ]
    return PodSetAdmission(
        labels={key: value for update in updates for key, value in update.labels.items()},
        annotations={key: value for update in updates for key, value in update.annotations.items()},
        node_labels={
            **{key: value for flavor in flavors for key, value in flavor.node_labels.items()},
            **{key: value for update in updates for key, value in update.node_selector.items()},
        },
        tolerations=(
            *(item for flavor in flavors for item in flavor.tolerations),
            *(item for update in updates for item in update.tolerations),
        ),
    )


def task_admissions(
    verdict: Admitted, tasks: Mapping[str, TaskAdmission], ended: Sequence[Rank]
) -> Mapping[str, TaskAdmission]:
    """Return the admission of each task of a Workload. `tasks` are in the order of the job, with the ranks they cover.

    A pod set can have fewer places than replicas: as many replicas have none of those that `ended` before.
    """
    found: dict[str, TaskAdmission] = {}
    places: Counter[str] = Counter()
    missing = Counter(RecordedWorkload(number=0, tasks=tasks).sizes)
    missing.subtract(verdict.counts)
    for name, task in tasks.items():
        without = sorted(key.rank for key in ended if key.task == name and task.covers(key.rank))
        ranks = tuple(without[: max(0, missing[task.pod_set])])
        missing[task.pod_set] -= len(ranks)
        pods = verdict.pod_sets.get(task.pod_set, PodSetAdmission())
        found[name] = replace(task, pods=pods, first=places[task.pod_set], ended=ranks)
        places[task.pod_set] += task.size - task.from_rank - len(ranks)
    return found


def with_topology(admission: Mapping[str, TaskAdmission], verdict: Admitted) -> Mapping[str, TaskAdmission]:
    """Return a stored admission with the present topology: Kueue assigns another node in place of one that is lost."""
    found: dict[str, TaskAdmission] = {}
    for task, known in admission.items():
        present = verdict.pod_sets.get(known.pod_set, known.pods).topology
        topology = keep_places(known.pods.topology, present)
        is_same = topology == known.pods.topology
        found[task] = known if is_same else replace(known, pods=replace(known.pods, topology=topology))
    return found
