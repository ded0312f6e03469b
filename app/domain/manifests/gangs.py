"""The APIs of PodGroups: which one a gang uses, how its PodGroup is written, and how its pods name it.

A further API is one more row of the table, and a resource of `app/k8s/resources.py`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.manifests.metadata import owned_metadata
from app.domain.plan import GangApi, GangPlan, JobPlan, Manifest

KIND: Final = "PodGroup"
VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
"""The annotation of a manifest, and of a pod without a PodGroup, that names its queue of Volcano."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """How a pod names its PodGroup or its queue: by the text at this path of the manifest."""

    path: tuple[str, ...]
    observed: Callable[[Pod], str]

    def is_in(self, template: Manifest) -> bool:
        """Return whether a pod template has such a name."""
        return bool(_at(template, self.path))

    def with_name(self, pod: Manifest, name: str) -> Manifest:
        """Return the manifest of the pod with this name."""
        return _with(pod, self.path, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """One API. `versions` are the newest first; `minimum` is the path of the minimum in the spec of a PodGroup.

    Without a `reference`, the kind of the job writes it. With a `queue`, pods without a PodGroup name their queue.
    """

    versions: tuple[str, ...]
    minimum: tuple[str, ...] = ("minMember",)
    spec: Callable[[GangPlan], Manifest]
    reference: _Reference | None
    queue: _Reference | None = None


def _annotation(key: str) -> _Reference:
    return _Reference(path=("metadata", "annotations", key), observed=lambda pod: pod.metadata.annotations.get(key, ""))


def _label(key: str) -> _Reference:
    return _Reference(path=("metadata", "labels", key), observed=lambda pod: pod.metadata.labels.get(key, ""))


def _present(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value}


_TABLE: Final[Mapping[GangApi, _Api]] = {
    GangApi.KUBERNETES: _Api(
        versions=("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"),
        minimum=("schedulingPolicy", "gang", "minCount"),
        spec=lambda gang: {
            "schedulingPolicy": {"gang": {"minCount": len(gang.members)}},
            **_present(priorityClassName=gang.priority_class),
        },
        reference=_Reference(
            path=("spec", "schedulingGroup", "podGroupName"),
            observed=lambda pod: pod.spec.scheduling_group.pod_group_name,
        ),
    ),
    GangApi.VOLCANO: _Api(
        versions=("scheduling.volcano.sh/v1beta1",),
        spec=lambda gang: {
            "minMember": len(gang.members),
            **_present(queue=gang.queue, priorityClassName=gang.priority_class),
        },
        reference=_annotation("scheduling.k8s.io/group-name"),
        queue=_annotation(VOLCANO_QUEUE),
    ),
    GangApi.SCHEDULER_PLUGINS: _Api(
        versions=("scheduling.x-k8s.io/v1alpha1",),
        spec=lambda gang: {"minMember": len(gang.members)},
        reference=_label("scheduling.x-k8s.io/pod-group"),
    ),
    # The label of the pods is one of those of a GenericJob, which it has on every cluster.
    GangApi.TENSORSTACK: _Api(
        versions=("scheduler.tensorstack.dev/v1beta1",),
        spec=lambda gang: {"minMember": len(gang.members), "queue": gang.queue, "priority": gang.priority},
        reference=None,
    ),
}
_REFERENCES: Final = tuple(api.reference for api in _TABLE.values() if api.reference is not None)


def with_gang_apis(plan: JobPlan, served: Collection[str] | None) -> JobPlan:
    """Return the plan on a cluster that serves these versions of the APIs.

    Its gang uses the first of its APIs that is served, in the newest version. If it is not known what the cluster
    serves, the gang keeps the API that the manifest itself requests, if it requests one.
    """
    gang = plan.gang
    if gang is None or served is None:
        return plan
    found = ((api, version) for api in gang.apis for version in _TABLE[api].versions if version in served)
    api, version = next(found, (None, ""))
    return replace(plan, gang=replace(gang, api=api, api_version=version))


def newest_version(api: GangApi) -> str:
    """Return the newest version of an API."""
    return _TABLE[api].versions[0]


def group_name(plan: JobPlan) -> str:
    """Return the name of the PodGroup of the job; empty if it has none.

    It contains the number of members: not every API allows to change that of a PodGroup, and an edit of the job may
    change it.
    """
    gang = plan.gang
    if gang is None or gang.api is None:
        return ""
    if gang.api is GangApi.TENSORSTACK:
        return plan.identity.name
    return f"{labels.anchor_name(plan.identity.uid)}-{len(gang.members)}"


def is_own_group(plan: JobPlan, name: str) -> bool:
    """Return whether a PodGroup of this name is one of the job, with its present number of members or another one.

    Others are those of clients, such as the one in which Volcano puts every pod that names none.
    """
    return name == group_name(plan) or name.startswith(f"{labels.anchor_name(plan.identity.uid)}-")


def group_manifest(plan: JobPlan, anchor_uid: str | None) -> Manifest | None:
    """Return the PodGroup of the job, if it has one."""
    gang = plan.gang
    if gang is None or gang.api is None:
        return None
    return {
        "apiVersion": gang.api_version,
        "kind": KIND,
        "metadata": owned_metadata(plan.identity, group_name(plan), gang.labels, anchor_uid),
        "spec": _TABLE[gang.api].spec(gang),
    }


def has_own_minimum(plan: JobPlan, group: Manifest) -> bool:
    """Return whether the minimum of the PodGroup of the job is still the one that jobgate has written."""
    gang = plan.gang
    return gang is None or gang.api is None or minimum_of(plan, group) == len(gang.members)


def minimum_of(plan: JobPlan, group: Manifest) -> int | None:
    """Return the minimum of the PodGroup of the job; None if it has none."""
    gang = plan.gang
    return None if gang is None or gang.api is None else _at(group.get("spec"), _TABLE[gang.api].minimum)


def as_member(plan: JobPlan, pod: Manifest) -> Manifest:
    """Return the manifest of a pod that names the PodGroup of its job."""
    gang = plan.gang
    reference = _TABLE[gang.api].reference if gang is not None and gang.api is not None else None
    return pod if reference is None else reference.with_name(pod, group_name(plan))


def has_queues(api: GangApi | None) -> bool:
    """Return whether the API has queues, which the annotation of a manifest can name."""
    return api is not None and _TABLE[api].queue is not None


def in_queue(plan: JobPlan, pod: Manifest) -> Manifest:
    """Return the manifest of a pod that is placed by itself, in the queue of its job."""
    gang = plan.gang
    reference = _TABLE[gang.api].queue if gang is not None and gang.api is not None and gang.queue else None
    return pod if gang is None or reference is None else reference.with_name(pod, gang.queue)


def names_own_group(template: Manifest) -> bool:
    """Return whether a pod template names a PodGroup, which a user has made."""
    return any(reference.is_in(template) for reference in _REFERENCES)


def group_of(pod: Pod) -> str:
    """Return the name of the PodGroup that a pod names; empty if it names none."""
    return next((name for reference in _REFERENCES if (name := reference.observed(pod))), "")


def _at(value: Any, path: Iterable[str]) -> Any:
    for step in path:
        value = (value or {}).get(step)
    return value


def _with(value: Manifest, path: tuple[str, ...], text: str) -> Manifest:
    first, *rest = path
    return {**value, first: _with(value.get(first) or {}, tuple(rest), text) if rest else text}
