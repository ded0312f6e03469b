"""Renders the pods of a job, and the Services by which they find one another."""

from app.domain.kubernetes import labels
from app.domain.kubernetes.topology import ANNOTATIONS as TOPOLOGY
from app.domain.manifests.gangs import as_member, in_queue
from app.domain.manifests.metadata import owned_metadata
from app.domain.plan import JobPlan, Manifest, ReplicaPlan, ServicePlan


def pod_manifest(
    plan: JobPlan, replica: ReplicaPlan, attempt: int, anchor_uid: str | None, *, in_gang: bool = False
) -> Manifest:
    """Return the pod of an attempt. Its finalizer keeps a deleted pod until its evidence is stored.

    With `in_gang`, it is placed together with the gang of its job.
    """
    template = replica.template
    own = template.get("metadata") or {}
    pod_labels = {**(own.get("labels") or {}), **replica.labels, **_labels(replica, attempt)}
    metadata = owned_metadata(plan.identity, replica.pod_name, pod_labels, anchor_uid)
    metadata["finalizers"] = [labels.EVIDENCE_FINALIZER]
    # A pod without a topology assignment must not claim one: Kueue would not count what it uses of its node.
    annotations = {key: value for key, value in (own.get("annotations") or {}).items() if key not in TOPOLOGY}
    # The name is on the pod, so that an edit of the job changes no pod that runs.
    main = main_container_of(template, plan.main_container)
    if main is not None:
        annotations = {**annotations, labels.MAIN_CONTAINER: main}
    if annotations:
        metadata["annotations"] = annotations
    spec = {**template["spec"], "hostname": replica.hostname}
    if replica.subdomain is not None:
        spec["subdomain"] = replica.subdomain
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return as_member(plan, pod) if in_gang else in_queue(plan, pod)


def main_container_of(template: Manifest, of_job: str | None) -> str | None:
    """Return the main container of a pod template: the one that it names, or else that of the job if it has it."""
    named = ((template.get("metadata") or {}).get("annotations") or {}).get(labels.MAIN_CONTAINER)
    containers = {container["name"] for container in template["spec"]["containers"]}
    return named or (of_job if of_job in containers else None)


def _labels(replica: ReplicaPlan, attempt: int) -> dict[str, str]:
    return {
        labels.TASK: replica.key.task,
        labels.TASK_RANK: str(replica.key.rank),
        labels.GLOBAL_RANK: str(replica.global_rank),
        labels.ATTEMPT: str(attempt),
        labels.COMPONENT: replica.key.task,
    }


def service_manifest(plan: JobPlan, service: ServicePlan, anchor_uid: str | None) -> Manifest:
    """Return a Service.

    It publishes addresses that are not ready: replicas connect to one another before they are ready.
    """
    spec: Manifest = {
        "publishNotReadyAddresses": True,
        # The uid excludes the pods of a former job with the same name that are still terminating.
        "selector": {**service.selector, labels.JOB_UID: plan.identity.uid},
    }
    if service.headless:
        spec["clusterIP"] = "None"
    if service.ports:
        spec["ports"] = list(service.ports)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_metadata(plan.identity, service.name, service.labels, anchor_uid),
        "spec": spec,
    }
