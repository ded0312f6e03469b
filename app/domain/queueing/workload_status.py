"""Reads a Workload: what Kueue has decided about a job, and why the job waits.

The messages are those of Kueue 0.15 and 0.19. An unknown one is taken as a wait for quota, which any wait may become.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from app.domain.errors import shorten
from app.domain.kubernetes import labels
from app.domain.kubernetes.conditions import Conditions, by_type, is_true, message_line
from app.domain.kubernetes.queueing import AdmissionCheck, FlavorSpec, PodSetAssignment, Workload
from app.domain.plan import PriorityClassKind, PriorityClassRef
from app.domain.queueing.admission import Admitted, PodSetAdmission
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
DEACTIVATED: Final = "Deactivated"
"""The reason of an eviction by `active`, and how Kueue's own reasons of a deactivation begin."""
# Characters. A condition can have a message of 32 KiB, and the message of an eviction is stored with the job.
_MOST_OF_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unadmitted:
    """The job waits in its queue. `holds_quota` says that Kueue has reserved quota, and checks admit the job later."""

    code: PendingCode
    message: str
    holds_quota: bool = False


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
        return Evicted(reason=DEACTIVATED, message=_deactivation(conditions), holds_quota=reserved, is_deactivated=True)
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
    if is_true(conditions, "Evicted") and conditions["Evicted"].reason.startswith(DEACTIVATED):
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
