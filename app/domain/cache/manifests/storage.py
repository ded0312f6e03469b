"""The PersistentVolume of a SampleSet and the claim that runtime servers and training jobs mount."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.domain.cache.naming import label_of, object_metadata, volume_name
from app.domain.cache.source_limits import LOCAL, SourceLimits, hosts_of, is_of_machine, wrong_directory
from app.domain.cache.values import SecretValues, SetIdentity, storage_keys_of
from app.domain.errors import InvalidManifest, invalid_manifest
from app.domain.kinds.samples.specs.directories import base_of
from app.domain.kinds.samples.specs.mount_options import cache_dirs_of, mount_options
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.plan import Manifest

# As upstream. No such class needs to exist: equal names are enough to bind a claim to an existing volume.
STORAGE_CLASS: Final = "paddle-operator"
# A claim must request a size. JuiceFS has no fixed size, so this one only has to be larger than any data set.
CAPACITY: Final = "10Pi"
CSI_DRIVER: Final = "csi.juicefs.com"
FS_TYPE: Final = "juicefs"
_MARK: Final = "://"
# Storages and databases of JuiceFS that are files of the machine that mounts the volume.
_ON_THE_NODE: Final = frozenset({"file", "sqlite3", "badger"})
_ANY_HOST: Final = "webdav"  # a scheme whose URI always begins with a host
_REQUIRED_KEYS: Final = ("name", "storage", "metaurl", "bucket")


def check_secret(secret: SecretValues, sources: SourceLimits) -> None:
    """Check that a Secret describes a JuiceFS volume, and that its data is not on the nodes, where others have theirs.

    Raises:
        InvalidManifest: names the Secret and the missing keys, or the key with a place that is not allowed.
    """
    missing = [key for key in _REQUIRED_KEYS if not secret.data.get(key)]
    if missing:
        raise invalid_manifest("SecretNotValid", f"secret {secret.name} is not valid: it lacks {', '.join(missing)}")
    storage_keys_of(secret)
    for key in _wrong_places(secret, sources):
        allowed = ", ".join(sources.directories) or "none"
        detail = f"its {key} is on the node or at a metadata service; the directories for files are: {allowed}"
        raise invalid_manifest("SecretNotValid", f"secret {secret.name} is not valid: {detail}")


def _wrong_places(secret: SecretValues, sources: SourceLimits) -> Iterator[str]:
    """Return the keys that name a directory or an address of the node that the limits do not allow."""
    metadata, _, database = secret.data["metaurl"].rpartition(_MARK)
    # Of the bucket, the storage is the scheme.
    bucket = secret.data["bucket"].rpartition(_MARK)[2]
    for key, scheme, place in (("bucket", secret.data["storage"], bucket), ("metaurl", metadata, database)):
        if scheme.lower() in _ON_THE_NODE:
            if wrong_directory(f"{LOCAL}{_MARK}{place}", sources):
                yield key
        # Unlike a source, a volume may be inside the cluster: jobs of the namespace use a Redis of the namespace.
        elif any(is_of_machine(host.strip("()"), sources) for host in hosts_of(f"{_ANY_HOST}{_MARK}{place}")):
            yield key


def persistent_volume(
    identity: SetIdentity, spec: SampleSetSpec, secret: SecretValues, sources: SourceLimits
) -> Manifest:
    """Return the PersistentVolume. It refers to the Secret and holds none of its contents.

    `claimRef` binds the volume to the set's claim beforehand. The label alone would let the claim of a set of the same
    name in another namespace take the volume.
    """
    check_secret(secret, sources)
    name = volume_name(identity.namespace, identity.name)
    options = mount_options(spec.mount_options, spec.levels, identity.namespace, identity.uid)
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


def is_shared(volume: Mapping[str, Any], identity: SetIdentity) -> bool:
    """Return whether a set's volume has a cache directory that is not the set's own.

    A volume without directories is none that jobgate has created, and is reported when the servers are.
    """
    try:
        directories = cache_dirs_of(volume)
    except InvalidManifest:
        return False
    return any(base_of(directory, identity.namespace, identity.uid) is None for directory in directories)


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
