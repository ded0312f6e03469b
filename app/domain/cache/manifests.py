"""A set's storage, Service and token as plain dicts."""

from typing import Any, Final

from app.domain.cache.mount_options import mount_options
from app.domain.cache.naming import (
    CREATED_BY,
    label_of,
    pod_selector,
    service_name,
    set_labels,
    token_secret_name,
    volume_name,
)
from app.domain.cache.refusals import refusal
from app.domain.cache.sample_set import SampleSetSpec
from app.domain.cache.values import SecretValues, SetIdentity, credentials_of
from app.domain.plan import Manifest

STORAGE_CLASS: Final = "paddle-operator"
CAPACITY: Final = "10Pi"
PORT: Final = 7716
PORT_NAME: Final = "service"
TOKEN_KEY: Final = "token"  # noqa: S105  a key's name
CSI_DRIVER: Final = "csi.juicefs.com"
FS_TYPE: Final = "juicefs"
_REQUIRED_KEYS: Final = ("name", "storage", "metaurl", "bucket")


def metadata(identity: SetIdentity, driver: str, name: str, *, namespaced: bool = True) -> Manifest:
    """Nothing owns these objects: they are deleted in their order, and found by their labels."""
    made: Manifest = {"name": name, "labels": set_labels(identity, driver), "annotations": dict(CREATED_BY)}
    if namespaced:
        made["namespace"] = identity.namespace
    return made


def check_secret(secret: SecretValues) -> None:
    """Raises InvalidManifest, naming the Secret and what it lacks."""
    lacks = [key for key in _REQUIRED_KEYS if not secret.data.get(key)]
    if lacks:
        raise refusal("SecretNotValid", f"secret {secret.name} is not valid: it lacks {', '.join(lacks)}")
    credentials_of(secret)


def persistent_volume(identity: SetIdentity, driver: str, spec: SampleSetSpec, secret: SecretValues) -> Manifest:
    """Bound beforehand to the set's claim: a label alone would let any claim of an equally named set take it."""
    check_secret(secret)
    name = volume_name(identity.namespace, identity.name)
    options = mount_options(spec.mount_options, spec.levels, identity.namespace, identity.name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata(identity, driver, name, namespaced=False),
        "spec": {
            **_storage(),
            "capacity": {"storage": CAPACITY},
            "persistentVolumeReclaimPolicy": "Retain",
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


def claim(identity: SetIdentity, driver: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(identity, driver, identity.name),
        "spec": {
            **_storage(),
            "resources": {"requests": {"storage": CAPACITY}},
            "selector": {"matchLabels": {label_of(driver, identity.name): "true"}},
            "volumeName": volume_name(identity.namespace, identity.name),
        },
    }


def service(identity: SetIdentity, driver: str) -> Manifest:
    """Servers are looked for before they are ready, so addresses that are not ready are published."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(identity, driver, service_name(identity.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(pod_selector(identity, driver)),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def token_secret(identity: SetIdentity, driver: str, token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(identity, driver, token_secret_name(identity.name)),
        "type": "Opaque",
        "immutable": True,
        "stringData": {TOKEN_KEY: token},
    }


def _storage() -> dict[str, Any]:
    return {"accessModes": ["ReadWriteMany"], "storageClassName": STORAGE_CLASS, "volumeMode": "Filesystem"}
