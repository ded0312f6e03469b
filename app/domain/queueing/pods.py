"""The pods of a job that Kueue has admitted."""

from app.domain.plan import Manifest
from app.domain.queueing.admission import TaskAdmission
from app.domain.queueing.workload import SUSPENDING_PARENT


def with_admission(pod: Manifest, admission: TaskAdmission) -> Manifest:
    """Return the pod with the node labels and tolerations of its flavors, and with what admission checks add.

    Its annotation keeps Kueue from making a Workload for it, because that of the job accounts for it.
    """
    metadata, spec, added = pod["metadata"], pod["spec"], admission.pods
    return {
        **pod,
        "metadata": {
            **metadata,
            # What jobgate and the user set comes last: an admission check replaces none of it.
            "labels": {**added.labels, **metadata.get("labels", {})},
            "annotations": {
                **added.annotations,
                **metadata.get("annotations", {}),
                SUSPENDING_PARENT: _parent(pod),
            },
        },
        "spec": {
            **spec,
            **_unless_empty("nodeSelector", {**spec.get("nodeSelector", {}), **added.node_labels}),
            **_unless_empty("tolerations", [*spec.get("tolerations", []), *map(dict, added.tolerations)]),
        },
    }


def _parent(pod: Manifest) -> str:
    """Return the name of the Workload: its anchor, which owns the pod, has the same one."""
    return str(pod["metadata"]["ownerReferences"][0]["name"])


def _unless_empty(field: str, value: object) -> Manifest:
    return {field: value} if value else {}
