"""What an installation gives to containers that ask for an accelerator: volumes, mounts and environment."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import Field

from app.domain.dialects.base import Accelerator
from app.domain.dialects.spec_model import SpecModel, read_spec
from app.domain.errors import Problems
from app.domain.plan import Manifest

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
    """The accelerators of a controller config in the shape that mxnet-operator and tf-operator read.

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
    """The pod spec with what belongs to the resources that its container of this name asks for.

    Each is added once, and not where the template has a volume, a mount path or a variable of that name already: a
    pod spec that has everything stays as it is.
    """
    index = next((i for i, found in enumerate(pod_spec["containers"]) if found["name"] == container), None)
    if index is None:
        return pod_spec
    found: Manifest = pod_spec["containers"][index]
    asked = {name for amounts in _AMOUNTS for name in (found.get("resources") or {}).get(amounts) or {}}
    given = [accelerator for name, accelerator in configured.items() if name in asked]
    if not given:
        return pod_spec
    equipped = {
        **found,
        **_joined(found, "volumeMounts", "mountPath", (item for one in given for item in one.mounts)),
        **_joined(found, "env", "name", (item for one in given for item in one.env)),
    }
    containers = [equipped if i == index else other for i, other in enumerate(pod_spec["containers"])]
    volumes = _joined(pod_spec, "volumes", "name", (item for one in given for item in one.volumes))
    return {**pod_spec, **volumes, "containers": containers}


def _joined(owner: Manifest, field: str, key: str, more: Iterable[Manifest]) -> Manifest:
    """The list `field` with those entries whose `key` it lacks; nothing where it would stay empty."""
    items = list(owner.get(field) or [])
    taken = {item[key] for item in items}
    for item in more:
        if item[key] not in taken:
            items.append(dict(item))
            taken.add(item[key])
    return {field: items} if items else {}
