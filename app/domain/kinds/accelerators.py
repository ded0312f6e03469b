"""Adds volumes, mounts and variables to containers that request an accelerator, as the installation configures it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import Field

from app.domain.errors import Problems
from app.domain.kinds.job_kind import Accelerator
from app.domain.kinds.spec.model import SpecModel, read_spec
from app.domain.plan import Manifest

# As upstream, a resource in either of them counts.
_AMOUNTS: Final = ("limits", "requests")


class _Volume(SpecModel):
    name: str
    host_path: str
    mount_path: str


class _Variable(SpecModel):
    name: str
    value: str = ""


class _Config(SpecModel):
    volumes: list[_Volume] = Field(default=[])
    env_vars: list[_Variable] = Field(default=[])


class _ControllerConfig(SpecModel):
    accelerators: dict[str, _Config]


def accelerators_of(document: Any) -> Mapping[str, Accelerator]:
    """Return the accelerators of a controller config, which has the format of mxnet-operator and tf-operator.

    Raises:
        InvalidManifest: with every error of the document.
    """
    problems = Problems()
    config = read_spec(_ControllerConfig, document, "", problems)
    problems.raise_if_any("the controller config is not valid")
    assert config is not None, "without a problem there is a config"
    return {name: _accelerator(item) for name, item in config.accelerators.items()}


def _accelerator(config: _Config) -> Accelerator:
    return Accelerator(
        volumes=tuple({"name": item.name, "hostPath": {"path": item.host_path}} for item in config.volumes),
        mounts=tuple({"name": item.name, "mountPath": item.mount_path} for item in config.volumes),
        env=tuple({"name": item.name, "value": item.value} for item in config.env_vars),
    )


def with_accelerators(pod_spec: Manifest, container: str, configured: Mapping[str, Accelerator]) -> Manifest:
    """Return the pod spec with the volumes, mounts and variables for the resources that the container requests.

    A volume, mount path or variable that the template already has is not added again. The function is idempotent.
    """
    index = next((i for i, found in enumerate(pod_spec["containers"]) if found["name"] == container), None)
    if index is None:
        return pod_spec
    found: Manifest = pod_spec["containers"][index]
    requested = {name for amounts in _AMOUNTS for name in (found.get("resources") or {}).get(amounts) or {}}
    given = [accelerator for name, accelerator in configured.items() if name in requested]
    if not given:
        return pod_spec
    equipped = {
        **found,
        **_extend(found, "volumeMounts", "mountPath", (item for accelerator in given for item in accelerator.mounts)),
        **_extend(found, "env", "name", (item for accelerator in given for item in accelerator.env)),
    }
    containers = [equipped if i == index else other for i, other in enumerate(pod_spec["containers"])]
    volumes = _extend(pod_spec, "volumes", "name", (item for accelerator in given for item in accelerator.volumes))
    return {**pod_spec, **volumes, "containers": containers}


def _extend(owner: Manifest, field: str, key: str, more: Iterable[Manifest]) -> Manifest:
    """Return the list `field` of the owner, extended by the entries with a new `key`, or {} if it stays empty."""
    items = list(owner.get(field) or [])
    taken = {item[key] for item in items}
    for item in more:
        if item[key] not in taken:
            # A copy, since all plans share the configured entries.
            items.append(dict(item))
            taken.add(item[key])
    return {field: items} if items else {}
