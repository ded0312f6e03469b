"""Renders one attempt of a replica as a Pod."""

from app.domain import labels
from app.domain.manifests.metadata import owned_metadata
from app.domain.plan import JobPlan, Manifest, ReplicaPlan


def pod_manifest(plan: JobPlan, replica: ReplicaPlan, attempt: int, anchor_uid: str | None) -> Manifest:
    """The pod of an attempt. Its finalizer keeps it until its end is recorded, whoever deletes it."""
    template = replica.template
    own = template.get("metadata") or {}
    pod_labels = {**(own.get("labels") or {}), **replica.labels, **_labels(replica, attempt)}
    metadata = owned_metadata(plan.identity, replica.pod_name, pod_labels, anchor_uid)
    metadata["finalizers"] = [labels.EVIDENCE_FINALIZER]
    if own.get("annotations"):
        metadata["annotations"] = own["annotations"]
    spec = {**template["spec"], "hostname": replica.hostname}
    if replica.subdomain is not None:
        spec["subdomain"] = replica.subdomain
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _labels(replica: ReplicaPlan, attempt: int) -> dict[str, str]:
    return {
        labels.TASK: replica.key.task,
        labels.TASK_RANK: str(replica.key.rank),
        labels.GLOBAL_RANK: str(replica.global_rank),
        labels.ATTEMPT: str(attempt),
        labels.COMPONENT: replica.key.task,
    }
