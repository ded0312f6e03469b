"""The StatefulSet of a SampleSet's runtime servers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.domain.cache.manifests.service import PORT, TOKEN_KEY
from app.domain.cache.naming import (
    CREATED_BY,
    JUICEFS,
    directory_volume_names,
    object_metadata,
    pod_selector,
    runtime_name,
    service_name,
    set_labels,
    token_secret_name,
)
from app.domain.cache.values import CacheSite, SetIdentity
from app.domain.errors import invalid_manifest
from app.domain.kinds.samples.specs.directories import base_of
from app.domain.kinds.samples.specs.mount_options import cache_dirs_of
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.plan import Manifest

CONTAINER: Final = "runtime"
NODE_ADDRESS: Final = "NODE_ADDRESS"
TOKEN_DIR: Final = "/run/jobgate-cache"  # noqa: S105  a path
TOKEN_FILE: Final = f"{TOKEN_DIR}/{TOKEN_KEY}"
_COMMAND: Final = ("jobgate", "cache-runtime")
_DATA_VOLUME: Final = "sample-set"
_TOKEN_VOLUME: Final = "runtime-token"  # noqa: S105  a volume's name
# Fixed, because no field of the spec sets them, and a quota refuses a container without them. The cache is in memory of
# the pod of the CSI driver, so the limit is for `juicefs sync` and `juicefs warmup`.
_RESOURCES: Final = {
    "limits": {"cpu": "4", "memory": "4Gi"},
    "requests": {"cpu": "100m", "memory": "256Mi"},
}
# The preStop hook deletes the cached files. Many small files take long.
_GRACE_SECONDS: Final = 120


def runtime_stateful_set(
    identity: SetIdentity, spec: SampleSetSpec, persistent_volume: Mapping[str, Any], site: CacheSite
) -> Manifest:
    """Return the StatefulSet with one runtime server for each partition.

    The cache directories come from the PersistentVolume and not from the spec, since the volume is mounted with them.

    Raises:
        InvalidManifest: the installation has no runtime image, or the PersistentVolume names no cache directories, or
            one that is not the set's own.
    """
    if not site.runtime_image:
        raise invalid_manifest(
            "RuntimeImageMissing", "no image for the runtime servers is set: JOBGATE_RUNTIME_IMAGE of the controller"
        )
    selector = dict(pod_selector(identity))
    pod: Manifest = {
        "metadata": {
            "labels": {**set_labels(identity), **selector},
            "annotations": dict(CREATED_BY),
        },
        "spec": _pod_spec(identity, spec, _own_dirs(identity, persistent_volume), site),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": object_metadata(identity, runtime_name(identity.name)),
        "spec": {
            "replicas": spec.partitions,
            "serviceName": service_name(identity.name),
            # Server 0 coordinates warm-ups and runs syncs, so it must start first.
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": selector},
            "template": pod,
        },
    }


def _own_dirs(identity: SetIdentity, persistent_volume: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the cache directories of the set by their bases."""
    found = {}
    for directory in cache_dirs_of(persistent_volume):
        base = base_of(directory, identity.namespace, identity.uid)
        if base is None:
            detail = f"the cache directory {directory} of the volume is not the set's own"
            raise invalid_manifest("CacheDirShared", detail)
        found[base] = directory
    return found


def cache_mounts_of(stateful_set: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return each cache directory of a StatefulSet as (path on the node, path in the container).

    Raises:
        InvalidManifest: the pods do not have exactly one container.
    """
    pod = stateful_set["spec"]["template"]["spec"]
    containers = pod.get("containers") or []
    if len(containers) != 1:
        name = stateful_set["metadata"]["name"]
        raise invalid_manifest(
            "RuntimeNotValid", f"the StatefulSet {name} has {len(containers)} containers and must have one"
        )
    mounted = {mount["name"]: mount["mountPath"] for mount in containers[0].get("volumeMounts") or ()}
    return [
        (volume["hostPath"]["path"], mounted[volume["name"]])
        for volume in pod.get("volumes") or ()
        if volume.get("hostPath") and volume["name"] in mounted
    ]


def _pod_spec(identity: SetIdentity, spec: SampleSetSpec, cache_dirs: Mapping[str, str], site: CacheSite) -> Manifest:
    # Named by the bases, as upstream, which has no directories of sets.
    volumes = directory_volume_names([*cache_dirs], reserved=(_DATA_VOLUME, _TOKEN_VOLUME))
    mounts = [f"{site.cache_mount_path}/{volume}" for volume in volumes]
    # One server on each node: a second one would count and clear the same cache directories.
    anti_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": dict(pod_selector(identity))},
                "namespaces": [identity.namespace],
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
    affinity: Manifest = {"podAntiAffinity": anti_affinity}
    if spec.node_affinity is not None:
        affinity["nodeAffinity"] = spec.node_affinity
    pod: Manifest = {
        "containers": [_container(identity, volumes, mounts, site)],
        "volumes": [
            *(
                {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
                for name, path in zip(volumes, cache_dirs.values(), strict=True)
            ),
            {"name": _DATA_VOLUME, "persistentVolumeClaim": {"claimName": identity.name}},
            {"name": _TOKEN_VOLUME, "secret": {"secretName": token_secret_name(identity.name), "defaultMode": 0o400}},
        ],
        "affinity": affinity,
        # The server sends no requests to the API server.
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
    }
    if spec.tolerations:
        pod["tolerations"] = spec.tolerations
    return pod


def _container(identity: SetIdentity, volumes: Sequence[str], mounts: Sequence[str], site: CacheSite) -> Manifest:
    """Return the container. It is privileged, because Kubernetes allows bidirectional mount propagation to no other."""
    data_dir = site.data_dir(identity.name)
    cache_flags = [f"--cacheDirs={mount}" for mount in mounts]
    directories = [f"--driver={JUICEFS}", *cache_flags, f"--dataDir={data_dir}"]
    propagated = {"mountPropagation": "Bidirectional"}
    return {
        "name": CONTAINER,
        "image": site.runtime_image,
        "command": [*_COMMAND, "server", *directories, f"--token-file={TOKEN_FILE}"],
        # No source may be on the node.
        "env": [{"name": NODE_ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "ports": [{"name": CONTAINER, "containerPort": PORT, "protocol": "TCP"}],
        "resources": _RESOURCES,
        # Only an open port is checked: any other request needs the token.
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 5},
        # Root, whatever the image's user is: the cache directories of the node and the token belong to root.
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [
            *({"name": name, "mountPath": path, **propagated} for name, path in zip(volumes, mounts, strict=True)),
            {"name": _DATA_VOLUME, "mountPath": data_dir, **propagated},
            {"name": _TOKEN_VOLUME, "mountPath": TOKEN_DIR, "readOnly": True},
        ],
        "lifecycle": {"preStop": {"exec": {"command": _clear_command(mounts, cache_flags)}}},
    }


def _clear_command(mounts: Sequence[str], cache_flags: Sequence[str]) -> list[str]:
    """Return the argument list that clears every cache directory. No shell interprets the paths."""
    return [*_COMMAND, "clear", f"--driver={JUICEFS}", *cache_flags, *(f"--paths={mount}/*" for mount in mounts)]
