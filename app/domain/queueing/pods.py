"""The pods of a job that Kueue has admitted."""

from app.domain.kubernetes.topology import UNCONSTRAINED
from app.domain.plan import Manifest
from app.domain.queueing.admission import TaskAdmission
from app.domain.queueing.workload import SUSPENDING_PARENT


def with_admission(pod: Manifest, admission: TaskAdmission, rank: int) -> Manifest:
    """Return the pod of a replica with the nodes and tolerations of its flavors, and with what admission checks add.

    An annotation keeps Kueue from counting it beside the assignment of its topology: the Workload of the job accounts
    for it.
    """
    metadata, spec, added = pod["metadata"], pod["spec"], admission.pods
    nodes = {**added.node_labels, **admission.domain_of(rank)}
    counted = {UNCONSTRAINED: "true"} if added.topology is not None else {}
    return {
        **pod,
        "metadata": {
            **metadata,
            # What jobgate and the user set comes last: an admission check replaces none of it.
            "labels": {**added.labels, **metadata.get("labels", {})},
            **_unless_empty("annotations", {**added.annotations, **metadata.get("annotations", {}), **counted}),
        },
        "spec": {
            **spec,
            **_unless_empty("nodeSelector", {**spec.get("nodeSelector", {}), **nodes}),
            **_unless_empty("tolerations", [*spec.get("tolerations", []), *map(dict, added.tolerations)]),
        },
    }


def with_parent(pod: Manifest) -> Manifest:
    """Return the pod with the annotation that keeps Kueue from making a Workload for it. It gets Kueue's gates."""
    metadata = pod["metadata"]
    annotations = {**metadata.get("annotations", {}), SUSPENDING_PARENT: _parent(pod)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def _parent(pod: Manifest) -> str:
    """Return the name of the Workload: its anchor, which owns the pod, has the same one."""
    return str(pod["metadata"]["ownerReferences"][0]["name"])


def _unless_empty(field: str, value: object) -> Manifest:
    return {field: value} if value else {}
