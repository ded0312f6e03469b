"""Determines which objects belong to a job. Labels prove nothing: every client that can create objects can set them.

An object belongs to a job if it is in the namespace of the job and its controller is the anchor of the job, by name and
uid. A pod must also have the name of its rank. A pod whose uid is recorded for the current attempt of a replica is the
pod of that attempt, whatever its labels say.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, OwnerReference, Pod
from app.domain.plan import JobIdentity, JobPlan, Rank
from app.domain.status.observed import ObservedPod
from app.domain.status.pods.main_container import PlannedMain, planned_main, with_main_container
from app.domain.status.pods.observation import observe_pod
from app.domain.status.records import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The pods that belong to a job.

    `undecided` says that more may belong to it, once the uid of the anchor is known.
    """

    pods: tuple[ObservedPod, ...] = field(default=())
    undecided: bool = False


def controller_of(metadata: Metadata) -> OwnerReference | None:
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def names_anchor(metadata: Metadata, job_uid: str) -> bool:
    """Return whether the object names the anchor of the job as its controller. Only the uid of the anchor proves it."""
    return _anchor_uid(metadata, job_uid) is not None


def is_owned(metadata: Metadata, job_uid: str, anchors: Collection[str]) -> bool:
    """Return whether one of these anchors (uids) of the job controls the object."""
    return _anchor_uid(metadata, job_uid) in anchors


def _anchor_uid(metadata: Metadata, job_uid: str) -> str | None:
    """Return the uid of the anchor of the job that controls the object, as the object names it."""
    owner = controller_of(metadata)
    if owner is None or (owner.kind, owner.name) != ("ConfigMap", labels.anchor_name(job_uid)):
        return None
    return owner.uid


def select_pods(
    pods: Iterable[Pod],
    plan: JobPlan,
    recorded: Recorded,
    anchors: Collection[str] | None,
    *,
    lost_nodes: Collection[str],
) -> Selection:
    """Select the pods that belong to the job from those with its label. `anchors` is None while they are unknown."""
    on_record = {
        replica.attempt.pod_uid: (replica.key, replica.attempt.number)
        for replica in recorded.replicas.values()
        if replica.attempt.pod_uid is not None
    }
    selected: list[ObservedPod] = []
    mains: dict[str, PlannedMain | None] = {}
    undecided = False
    for pod in pods:
        if pod.metadata.namespace != plan.identity.namespace:
            continue
        # The record was written when ownership had been proved, so a client that changes labels cannot hide a pod.
        recorded_as = on_record.get(pod.metadata.uid)
        task = recorded_as[0].task if recorded_as is not None else pod.metadata.labels.get(labels.TASK, "")
        if task not in mains:
            mains[task] = planned_main(plan, task)
        observed = observe_pod(with_main_container(pod, mains[task]), lost_nodes=lost_nodes)
        if recorded_as is not None:
            key, attempt = recorded_as
            as_labelled = (observed.key, observed.attempt) == (key, attempt)
            followed = _is_followed(pod.metadata, plan.identity)
            if not (as_labelled and followed):
                observed = replace(observed, key=key, attempt=attempt, followed=followed)
            selected.append(observed)
        elif names_anchor(pod.metadata, plan.identity.uid) and observed.name == _name_of(plan, recorded, observed.key):
            # Any client can name the anchor as the owner of a pod. Only the uid of the anchor proves it.
            if anchors is None:
                undecided = True
            elif is_owned(pod.metadata, plan.identity.uid, anchors):
                selected.append(observed)
    return Selection(pods=tuple(selected), undecided=undecided)


def _is_followed(metadata: Metadata, identity: JobIdentity) -> bool:
    """Return whether the pod has the labels by which the mirror's watch selects the pods of the job."""
    found = metadata.labels
    return found.get(labels.INSTALLATION) == identity.installation and found.get(labels.JOB_UID) == identity.uid


def _name_of(plan: JobPlan, recorded: Recorded, key: Rank) -> str | None:
    """Return the name of the pod of a rank, including ranks beyond the present size of the task."""
    known = recorded.pod_names.get(key)
    if known is not None or key.rank < 0:
        return known
    task = next((task for task in plan.tasks if task.name == key.task), None)
    return None if task is None else task.pod_name(key.rank)
