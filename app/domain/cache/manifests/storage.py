"""The PersistentVolume of a SampleSet and the claim that runtime servers and training jobs mount."""

from typing import Any, Final

from app.domain.cache.naming import label_of, object_metadata, volume_name
from app.domain.cache.specs.mount_options import mount_options
from app.domain.cache.specs.sample_set import SampleSetSpec
from app.domain.cache.values import SecretValues, SetIdentity, storage_keys_of
from app.domain.errors import invalid_manifest
from app.domain.plan import Manifest

# As upstream. No such class needs to exist: equal names are enough to bind a claim to an existing volume.
STORAGE_CLASS: Final = "paddle-operator"
# A claim must request a size. JuiceFS has no fixed size, so this one only has to be larger than any data set.
CAPACITY: Final = "10Pi"
CSI_DRIVER: Final = "csi.juicefs.com"
FS_TYPE: Final = "juicefs"
_REQUIRED_KEYS: Final = ("name", "storage", "metaurl", "bucket")


def check_secret(secret: SecretValues) -> None:
    """Check that a Secret describes a JuiceFS volume.

    Raises:
        InvalidManifest: names the Secret and the missing keys.
    """
    missing = [key for key in _REQUIRED_KEYS if not secret.data.get(key)]
    if missing:
        raise invalid_manifest("SecretNotValid", f"secret {secret.name} is not valid: it lacks {', '.join(missing)}")
    storage_keys_of(secret)


def persistent_volume(identity: SetIdentity, spec: SampleSetSpec, secret: SecretValues) -> Manifest:
    """Return the PersistentVolume. It refers to the Secret and holds none of its contents.

    `claimRef` binds the volume to the set's claim beforehand. The label alone would let the claim of a set of the same
    name in another namespace take the volume.
    """
    check_secret(secret)
    name = volume_name(identity.namespace, identity.name)
    options = mount_options(spec.mount_options, spec.levels, identity.namespace, identity.name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": object_metadata(identity, name, namespaced=False),
        "spec": {
            **_storage(),
            "capacity": {"storage": CAPACITY},
            # The data in the storage outlives the set.
            "persistentVolumeReclaimPolicy": "Retain",
            # Without a uid, since the claim does not exist yet. The volume controller adds the uid when it binds them.
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": identity.namespace,
                "name": identity.name,
            },
            "csi": {
                "driver": CSI_DRIVER,
                "fsType": FS_TYPE,
                "volumeHandle": name,
                "volumeAttributes": {"mountOptions": options},
                "nodePublishSecretRef": {"name": secret.name, "namespace": secret.namespace},
            },
        },
    }


def persistent_volume_claim(identity: SetIdentity) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": object_metadata(identity, identity.name),
        "spec": {
            **_storage(),
            "resources": {"requests": {"storage": CAPACITY}},
            "selector": {"matchLabels": {label_of(identity.name): "true"}},
            "volumeName": volume_name(identity.namespace, identity.name),
        },
    }


def _storage() -> dict[str, Any]:
    return {"accessModes": ["ReadWriteMany"], "storageClassName": STORAGE_CLASS, "volumeMode": "Filesystem"}
