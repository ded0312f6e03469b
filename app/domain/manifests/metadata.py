"""What every object of a job carries: who it belongs to, and what deletes it."""

from collections.abc import Mapping

from app.domain import labels
from app.domain.plan import JobIdentity, Manifest


def job_labels(identity: JobIdentity) -> dict[str, str]:
    """Labels by which the objects of a job, and of this installation, are found again."""
    return {
        labels.INSTALLATION: identity.installation,
        labels.JOB_UID: identity.uid,
        labels.KIND: identity.kind,
        labels.MANAGED_BY: labels.MANAGER,
        labels.PART_OF: labels.MANAGER,
        labels.INSTANCE: identity.name,
    }


def owned_metadata(identity: JobIdentity, name: str, own_labels: Mapping[str, str], anchor_uid: str | None) -> Manifest:
    """Metadata of an object under the anchor; without the anchor's uid (a dry run) under nothing.

    `controller: true`, because otherwise a ReplicaSet may adopt our pods and a drain refuses to evict them.
    """
    metadata: Manifest = {
        "name": name,
        "namespace": identity.namespace,
        "labels": {**own_labels, **job_labels(identity)},
    }
    if anchor_uid is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": labels.anchor_name(identity.uid),
                "uid": anchor_uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return metadata
