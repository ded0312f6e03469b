"""The StatefulSet of a set's runtime servers, and what of it job options depend on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.domain.cache.manifests import PORT, TOKEN_KEY, metadata
from app.domain.cache.mount_options import cache_dirs_of
from app.domain.cache.naming import (
    CREATED_BY,
    directory_volume_names,
    pod_selector,
    runtime_name,
    service_name,
    set_labels,
    token_secret_name,
)
from app.domain.cache.refusals import refusal
from app.domain.cache.sample_set import SampleSetSpec
from app.domain.cache.values import CacheSite, SetIdentity
from app.domain.plan import Manifest

CONTAINER: Final = "runtime"
TOKEN_DIR: Final = "/run/jobgate-cache"  # noqa: S105  a path
TOKEN_FILE: Final = f"{TOKEN_DIR}/{TOKEN_KEY}"
_COMMAND: Final = ("jobgate", "cache-runtime")
_DATA_VOLUME: Final = "sample-set"
_TOKEN_VOLUME: Final = "runtime-token"  # noqa: S105  a volume's name
# A cache of many small files takes its time to delete.
_GRACE_SECONDS: Final = 120


def runtime(
    identity: SetIdentity, driver: str, spec: SampleSetSpec, persistent_volume: Mapping[str, Any], site: CacheSite
) -> Manifest:
    """Its cache directories are those that the PersistentVolume was made with."""
    if not site.runtime_image:
        raise refusal("RuntimeImageMissing", "RUNTIME_IMAGE is not in environment variable")
    selector = dict(pod_selector(identity, driver))
    pod: Manifest = {
        "metadata": {
            "labels": {**set_labels(identity, driver), **selector},
            "annotations": dict(CREATED_BY),
        },
        "spec": _pod_spec(identity, driver, spec, cache_dirs_of(persistent_volume), site),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(identity, driver, runtime_name(identity.name)),
        "spec": {
            "replicas": spec.partitions,
            "serviceName": service_name(identity.name),
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": selector},
            "template": pod,
        },
    }


def cache_mounts_of(stateful_set: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Each cache directory of a runtime as on its node and as mounted."""
    pod = stateful_set["spec"]["template"]["spec"]
    containers = pod.get("containers") or []
    if len(containers) != 1:
        name = stateful_set["metadata"]["name"]
        raise refusal("RuntimeNotValid", f"the StatefulSet {name} has {len(containers)} containers and must have one")
    mounted = {mount["name"]: mount["mountPath"] for mount in containers[0].get("volumeMounts") or ()}
    return [
        (volume["hostPath"]["path"], mounted[volume["name"]])
        for volume in pod.get("volumes") or ()
        if volume.get("hostPath") and volume["name"] in mounted
    ]


def _pod_spec(
    identity: SetIdentity, driver: str, spec: SampleSetSpec, cache_dirs: Sequence[str], site: CacheSite
) -> Manifest:
    volumes = directory_volume_names(cache_dirs, reserved=(_DATA_VOLUME, _TOKEN_VOLUME))
    mounts = [f"{site.cache_mount_path}/{volume}" for volume in volumes]
    anti_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": dict(pod_selector(identity, driver))},
                "namespaces": [identity.namespace],
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
    affinity: Manifest = {"podAntiAffinity": anti_affinity}
    if spec.node_affinity is not None:
        affinity["nodeAffinity"] = spec.node_affinity
    made: Manifest = {
        "containers": [_container(identity, driver, volumes, mounts, site)],
        "volumes": [
            *(
                {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
                for name, path in zip(volumes, cache_dirs, strict=True)
            ),
            {"name": _DATA_VOLUME, "persistentVolumeClaim": {"claimName": identity.name}},
            {"name": _TOKEN_VOLUME, "secret": {"secretName": token_secret_name(identity.name), "defaultMode": 0o400}},
        ],
        "affinity": affinity,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
    }
    if spec.tolerations:
        made["tolerations"] = spec.tolerations
    return made


def _container(
    identity: SetIdentity, driver: str, volumes: Sequence[str], mounts: Sequence[str], site: CacheSite
) -> Manifest:
    """Privileged, since Kubernetes lets no other container pass mounts on to its node."""
    data_dir = site.data_dir(identity.name)
    cache_flags = [f"--cacheDirs={mount}" for mount in mounts]
    places = [f"--driver={driver}", *cache_flags, f"--dataDir={data_dir}"]
    passed_on = {"mountPropagation": "Bidirectional"}
    return {
        "name": CONTAINER,
        "image": site.runtime_image,
        "command": [*_COMMAND, "server", *places, f"--token-file={TOKEN_FILE}"],
        "ports": [{"name": CONTAINER, "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 5},
        "securityContext": {"privileged": True},
        "volumeMounts": [
            *({"name": name, "mountPath": path, **passed_on} for name, path in zip(volumes, mounts, strict=True)),
            {"name": _DATA_VOLUME, "mountPath": data_dir, **passed_on},
            {"name": _TOKEN_VOLUME, "mountPath": TOKEN_DIR, "readOnly": True},
        ],
        "lifecycle": {"preStop": {"exec": {"command": _clearing(driver, mounts, cache_flags)}}},
    }


def _clearing(driver: str, mounts: Sequence[str], cache_flags: Sequence[str]) -> list[str]:
    """An argument list: no shell reads what a path says."""
    return [*_COMMAND, "clear", f"--driver={driver}", *cache_flags, *(f"--paths={mount}/*" for mount in mounts)]
