"""Renders the Services by which replicas find one another."""

from app.domain import labels
from app.domain.manifests.metadata import owned_metadata
from app.domain.plan import JobPlan, Manifest, ServicePlan


def service_manifest(plan: JobPlan, service: ServicePlan, anchor_uid: str | None) -> Manifest:
    """A Service. It publishes addresses that are not ready: replicas connect to one another before they are ready."""
    spec: Manifest = {
        "publishNotReadyAddresses": True,
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
