"""The environment variables of a container, as a kubelet computes them. Pure."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from devcluster.formats.objects import container_named
from devcluster.formats.quantity import parse as parse_quantity

KEYED = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")
ENV_NAME = re.compile(r"^[^\x00-\x1f\x7f=]+$")


class ConfigError(Exception):
    """A source of a variable is missing. A kubelet reports this as CreateContainerConfigError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of values. A lookup returns None if the object does not exist."""

    pod: Mapping[str, Any]
    pod_ip: str
    host_ip: str
    node_allocatable: Mapping[str, str]
    config_map: Callable[[str], Mapping[str, str] | None]
    secret: Callable[[str], Mapping[str, str] | None]


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace each $(NAME) with its value, and $$ with a dollar sign. References to unknown names stay."""
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        following = text[position + 1 : position + 2]
        if char != "$" or following not in ("$", "("):
            out.append(char)
            position += 1
        elif following == "$":
            out.append("$")
            position += 2
        else:
            end = text.find(")", position)
            if end < 0:
                out.append("$(")
                position += 2
                continue
            name = text[position + 2 : end]
            out.append(values.get(name, f"$({name})"))
            position = end + 1
    return "".join(out)


def build_environment(container: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    """Return the variables of `envFrom`, then those of `env`. A value may refer to earlier variables.

    Raises:
        ConfigError: a ConfigMap, Secret or key is missing and not optional.
    """
    result: dict[str, str] = {}
    for entry in container.get("envFrom") or []:
        result |= _env_from(entry, sources)
    for entry in container.get("env") or []:
        value = _env_value(entry, container, sources, result)
        if value is not None:
            result[entry["name"]] = value
    return result


def _env_from(entry: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    prefix = entry.get("prefix") or ""
    if reference := entry.get("configMapRef"):
        data = _whole(reference, "configmap", sources.config_map)
    else:
        data = _whole(entry.get("secretRef") or {}, "secret", sources.secret)
    return {prefix + key: value for key, value in data.items() if ENV_NAME.match(prefix + key)}


def _whole(
    reference: Mapping[str, Any], kind: str, lookup: Callable[[str], Mapping[str, str] | None]
) -> Mapping[str, str]:
    data = lookup(reference.get("name", ""))
    if data is None and not reference.get("optional"):
        raise ConfigError(f'{kind} "{reference.get("name", "")}" not found')
    return data or {}


def _env_value(
    entry: Mapping[str, Any], container: Mapping[str, Any], sources: Sources, so_far: Mapping[str, str]
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value") or "", so_far)
    if reference := source.get("fieldRef"):
        return field_value(reference["fieldPath"], sources)
    if reference := source.get("resourceFieldRef"):
        return resource_value(reference, container, sources)
    if reference := source.get("configMapKeyRef"):
        return _key(reference, "configmap", "ConfigMap", sources.config_map, sources)
    if reference := source.get("secretKeyRef"):
        return _key(reference, "secret", "Secret", sources.secret, sources)
    raise ConfigError(f"env {entry['name']}: the embedded node knows no valueFrom {sorted(source)}")


def _key(
    reference: Mapping[str, Any],
    kind: str,
    title: str,
    lookup: Callable[[str], Mapping[str, str] | None],
    sources: Sources,
) -> str | None:
    name, key = reference.get("name", ""), reference["key"]
    data = lookup(name)
    if data is not None and key in data:
        return data[key]
    if reference.get("optional"):
        return None
    if data is None:
        raise ConfigError(f'{kind} "{name}" not found')
    namespace = sources.pod["metadata"]["namespace"]
    raise ConfigError(f"couldn't find key {key} in {title} {namespace}/{name}")


def field_value(path: str, sources: Sources) -> str:
    """Return the value of a fieldRef.

    Raises:
        ConfigError: there is no such field.
    """
    metadata, spec = sources.pod["metadata"], sources.pod["spec"]
    if match := KEYED.match(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = sorted((metadata.get(path.partition(".")[2]) or {}).items())
        return "\n".join(f'{key}="{_quote(value)}"' for key, value in pairs)
    simple = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": sources.host_ip,
        "status.hostIPs": sources.host_ip,
        "status.podIP": sources.pod_ip,
        "status.podIPs": sources.pod_ip,
    }
    if path not in simple:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(simple[path])


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(reference: Mapping[str, Any], container: Mapping[str, Any], sources: Sources) -> str:
    """Return the value of a resourceFieldRef, rounded up to whole divisors.

    A missing limit is the allocatable amount of the node, and a missing request is 0.
    """
    kind, _, name = reference["resource"].partition(".")
    spec = sources.pod["spec"]
    named = reference.get("containerName")
    everyone = [*spec["containers"], *(spec.get("initContainers") or [])]
    target = container_named(everyone, named) if named else container
    if target is None:
        raise ConfigError(f'container "{named}" not found')
    resources = target.get("resources") or {}
    limits = resources.get("limits") or {}
    if kind == "limits":
        amount = limits.get(name) or sources.node_allocatable.get(name, "0")
    else:
        amount = (resources.get("requests") or {}).get(name) or limits.get(name) or "0"
    # A divisor of 0 means 1. Fractions keep the division exact.
    divisor = Fraction(parse_quantity(reference.get("divisor") or "0")) or Fraction(1)
    return str(math.ceil(Fraction(parse_quantity(amount)) / divisor))
