"""The anchor: a ConfigMap that owns everything else of a job, and outlives a database that forgot it.

It never holds the manifest, whose env may be secret.
"""

from app.domain import labels
from app.domain.manifests.metadata import job_labels
from app.domain.plan import JobPlan, Manifest
from app.domain.vocabulary import JobPhase


def anchor_manifest(plan: JobPlan, terminal_phase: JobPhase | str | None = None) -> Manifest:
    identity = plan.identity
    annotations = {labels.GENERATION: str(identity.generation)}
    if terminal_phase is not None:
        annotations[labels.TERMINAL_PHASE] = str(terminal_phase)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": labels.anchor_name(identity.uid),
            "namespace": identity.namespace,
            "labels": job_labels(identity),
            "annotations": annotations,
        },
        "data": {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "name": identity.name,
            "uid": identity.uid,
        },
    }
