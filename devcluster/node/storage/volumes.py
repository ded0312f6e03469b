"""The volumes of a pod as directories, refreshed atomically as a kubelet does.

<volume>/..2026_x/key      one version of the payload
<volume>/..data -> ..2026_x     replaced by rename
<volume>/key -> ..data/key
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster.errors import StatusError
from devcluster.node.context import PodContext
from devcluster.node.environment import ConfigError, Sources, field_value, resource_value
from devcluster.node.kube.client import KubeClient
from devcluster.node.kube.configuration import CONFIG_MAPS, SECRETS, Objects, contents
from devcluster.node.storage.csi import PublishError
from devcluster.node.storage.juicefs import DRIVER

DEFAULT_MODE = 0o644
Payload = dict[str, tuple[bytes, int]]
"""Path inside the volume -> content and mode."""

PAYLOAD_KINDS = ("configMap", "secret", "downwardAPI", "projected")


class MountError(Exception):
    """A volume could not be prepared. A kubelet reports this as FailedMount."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')


def has_payload(volume: Mapping[str, Any]) -> bool:
    return any(kind in volume for kind in PAYLOAD_KINDS)


def payload_of(volume: Mapping[str, Any], objects: Objects, sources: Sources, tokens: Mapping[str, str]) -> Payload:
    """Return the files of a configMap, secret, downwardAPI or projected volume.

    Raises:
        MountError: an object or key is missing and not optional.
    """
    name = volume["name"]
    if projected := volume.get("projected"):
        mode = projected.get("defaultMode", DEFAULT_MODE)
        merged: Payload = {}
        for source in projected.get("sources") or []:
            merged |= _source(name, source, mode, objects, sources, tokens)
        return merged
    kind = next(kind for kind in PAYLOAD_KINDS if kind in volume)
    spec = dict(volume[kind])
    if kind == "secret":
        spec["name"] = spec.pop("secretName", "")
    return _source(name, {kind: spec}, spec.get("defaultMode", DEFAULT_MODE), objects, sources, tokens)


def _source(
    volume: str,
    source: Mapping[str, Any],
    mode: int,
    objects: Objects,
    sources: Sources,
    tokens: Mapping[str, str],
) -> Payload:
    if "configMap" in source:
        return _keys(volume, CONFIG_MAPS, source["configMap"], mode, objects)
    if "secret" in source:
        return _keys(volume, SECRETS, source["secret"], mode, objects)
    if "downwardAPI" in source:
        return _downward(volume, source["downwardAPI"], mode, sources)
    if token := source.get("serviceAccountToken"):
        return {token["path"]: (tokens[token["path"]].encode(), mode)}
    raise MountError(volume, f"the embedded node knows no projected source {sorted(source)}")


def _keys(volume: str, kind: str, spec: Mapping[str, Any], mode: int, objects: Objects) -> Payload:
    name, optional = spec.get("name", ""), bool(spec.get("optional"))
    found = objects.get((kind, name))
    if found is None:
        if optional:
            return {}
        raise MountError(volume, f'{kind.removesuffix("s")} "{name}" not found')
    data = contents(kind, found)
    items = spec.get("items")
    if not items:
        return {key: (value, mode) for key, value in data.items()}
    payload: Payload = {}
    for item in items:
        if item["key"] in data:
            payload[item["path"]] = (data[item["key"]], item.get("mode", mode))
        elif not optional:
            raise MountError(volume, f"{kind.removesuffix('s')} references non-existent key: {item['key']}")
    return payload


def _downward(volume: str, spec: Mapping[str, Any], mode: int, sources: Sources) -> Payload:
    payload: Payload = {}
    for item in spec.get("items") or []:
        try:
            if reference := item.get("fieldRef"):
                value = field_value(reference["fieldPath"], sources)
            else:
                value = resource_value(item["resourceFieldRef"], {}, sources)
        except ConfigError as error:
            raise MountError(volume, str(error)) from error
        payload[item["path"]] = (value.encode(), item.get("mode", mode))
    return payload


def write_payload(folder: Path, payload: Payload) -> None:
    """Replace the content of the folder atomically, unless it equals the payload."""
    folder.mkdir(parents=True, exist_ok=True)
    current = folder / "..data"
    if current.exists() and _read_back(current) == {path: data for path, (data, _) in payload.items()}:
        return
    former = current.resolve() if current.is_symlink() else None
    fresh = folder / f"..{secrets.token_hex(8)}"
    fresh.mkdir()
    for path, (data, mode) in payload.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)
    # A symbolic link cannot be overwritten, so a new one replaces it by rename.
    swap = folder / "..data_tmp"
    swap.symlink_to(fresh.name)
    swap.replace(current)
    _link_top_level(folder, {Path(path).parts[0] for path in payload})
    if former:
        shutil.rmtree(former, ignore_errors=True)


def _read_back(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.resolve().rglob("*") if path.is_file())
    return {str(path.relative_to(folder.resolve())): path.read_bytes() for path in files}


def _link_top_level(folder: Path, names: set[str]) -> None:
    for entry in os.listdir(folder):  # noqa: PTH208
        if not entry.startswith("..") and entry not in names:
            (folder / entry).unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


async def service_account_tokens(client: KubeClient, pod: Mapping[str, Any]) -> dict[str, str]:
    """Return a token for each serviceAccountToken source, by its path.

    Raises:
        MountError: the API server issued no token.
    """
    metadata, tokens = pod["metadata"], {}
    account = pod["spec"].get("serviceAccountName") or "default"
    url = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
    bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    for volume in pod["spec"].get("volumes") or []:
        for source in (volume.get("projected") or {}).get("sources") or []:
            if not (wanted := source.get("serviceAccountToken")):
                continue
            spec: dict[str, Any] = {"expirationSeconds": wanted.get("expirationSeconds", 3600), "boundObjectRef": bound}
            if wanted.get("audience"):
                spec["audiences"] = [wanted["audience"]]
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            try:
                answer = await client.post(url, request)
            except StatusError as error:
                raise MountError(volume["name"], f"failed to fetch token: {error.message}") from error
            tokens[wanted["path"]] = answer["status"]["token"]
    return tokens


async def backing_directory(context: PodContext, volume: Mapping[str, Any]) -> Path:
    """Return the directory of a volume without a payload, and create or mount it if needed.

    Raises:
        MountError: the volume does not exist, cannot be mounted, or has a type that this node does not support.
    """
    name: str = volume["name"]
    if "hostPath" in volume:
        return _host_path(context, name, volume["hostPath"])
    if claim := volume.get("persistentVolumeClaim"):
        return await _claimed_volume(context, name, claim["claimName"])
    if set(volume) == {"name"} or "emptyDir" in volume or "ephemeral" in volume:
        folder = context.folder / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        # As a kubelet's emptyDir, writable for all users. The umask limits the mode of mkdir.
        folder.chmod(0o777)
        return folder
    kind = next(key for key in volume if key != "name")
    raise MountError(name, f"the embedded node has no volumes of type {kind}")


def _host_path(context: PodContext, name: str, spec: Mapping[str, Any]) -> Path:
    path = context.node.settings.host_path(str(spec["path"]))
    kind = spec.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    wrong = (kind == "Directory" and not path.is_dir()) or (kind == "File" and not path.is_file())
    if wrong or not path.exists():
        raise MountError(name, f"hostPath type check failed: {spec['path']} is not a {(kind or 'path').lower()}")
    return path


async def _claimed_volume(context: PodContext, name: str, claim: str) -> Path:
    client = context.node.client
    try:
        found = await client.get(f"/api/v1/namespaces/{context.namespace}/persistentvolumeclaims/{claim}")
        bound = (found.get("spec") or {}).get("volumeName")
        if not bound or (found.get("status") or {}).get("phase") != "Bound":
            raise MountError(name, f'persistentvolumeclaim "{claim}" is not bound')
        spec = (await client.get(f"/api/v1/persistentvolumes/{bound}"))["spec"]
    except StatusError as error:
        raise MountError(name, error.message) from error
    if "hostPath" in spec:
        return _host_path(context, name, {"type": "DirectoryOrCreate", **_without_empty(spec["hostPath"])})
    if "local" in spec:
        return _host_path(context, name, dict(spec["local"]))
    if (spec.get("csi") or {}).get("driver") == DRIVER:
        try:
            return await context.node.csi.publish(str(bound), spec, context.uid)
        except PublishError as error:
            raise MountError(str(bound), str(error)) from error
    # A volume of any other type is a directory on this node that outlives the pod.
    folder = context.node.settings.data_dir / "persistent" / str(bound)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _without_empty(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec without the empty strings that an API server sets as defaults."""
    return {key: value for key, value in spec.items() if value != ""}
