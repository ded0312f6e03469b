"""Renders the PodGroup with which a gang scheduler starts all replicas of a job or none."""

from app.domain.manifests.metadata import owned_metadata
from app.domain.plan import GangPlan, JobPlan, Manifest


def gang_manifest(plan: JobPlan, gang: GangPlan, anchor_uid: str | None) -> Manifest:
    return {
        "apiVersion": gang.api_version,
        "kind": gang.kind,
        "metadata": owned_metadata(plan.identity, gang.name, gang.labels, anchor_uid),
        "spec": dict(gang.spec),
    }
