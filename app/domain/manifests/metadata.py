"""The metadata of all objects of a job: labels of its identity, and the owner reference."""

from collections.abc import Mapping

from app.domain.kubernetes import labels
from app.domain.plan import JobIdentity, Manifest


def job_labels(identity: JobIdentity) -> dict[str, str]:
    """Return the labels by which jobgate finds the objects of a job and of an installation."""
    return {
        labels.INSTALLATION: identity.installation,
        labels.JOB_UID: identity.uid,
        labels.KIND: identity.kind,
        labels.MANAGED_BY: labels.MANAGER,
        labels.PART_OF: labels.MANAGER,
        labels.INSTANCE: identity.name,
    }


def owned_metadata(identity: JobIdentity, name: str, own_labels: Mapping[str, str], anchor_uid: str | None) -> Manifest:
    """Return the metadata of an object that the anchor owns; without the uid of the anchor (a dry run) it has no owner.

    The owner is a controller (`controller: true`): otherwise a ReplicaSet may adopt the pods, and a drain refuses to
    evict them.
    """
    metadata: Manifest = {
        "name": name,
        "namespace": identity.namespace,
        # jobgate's labels come last, so that none of the user can replace those by which jobgate finds its objects.
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
                # With the admission plugin OwnerReferencesPermissionEnforcement, True needs the right to update
                # finalizers of the owner.
                "blockOwnerDeletion": False,
            }
        ]
    return metadata
