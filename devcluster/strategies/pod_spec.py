"""The validation of a pod spec, with the messages and the order of a real API server.

It holds the rules that clients violate in practice, not all of them.
"""

from collections.abc import Iterator

from devcluster.errors import (
    FieldCause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unknown_reference,
    unsupported,
)
from devcluster.formats import names, quantity
from devcluster.formats.objects import Object

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_OPERATORS = ("Exists", "Equal", "Lt", "Gt")


def validate_spec(found: Object) -> list[FieldCause]:
    volumes = [volume.get("name", "") for volume in found.get("volumes") or []]
    causes = list(_volumes(volumes))
    containers = found.get("containers") or []
    if not containers:
        causes.append(required("spec.containers"))
    # One set of names for containers and init containers: the log of each is addressed by the name alone.
    seen: set[str] = set()
    for index, container in enumerate(containers):
        causes += _container(f"spec.containers[{index}]", container, volumes, seen)
    for index, container in enumerate(found.get("initContainers") or []):
        causes += _container(f"spec.initContainers[{index}]", container, volumes, seen)
    if found.get("nodeName") and found.get("schedulingGates"):
        causes.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    causes += _choices(found)
    causes += _names(found)
    return causes


def _volumes(volumes: list[str]) -> Iterator[FieldCause]:
    for index, name in enumerate(volumes):
        path = f"spec.volumes[{index}].name"
        if not name:
            yield required(path)
            continue
        wrong = names.dns_label(name)
        if wrong:
            yield invalid_value(path, name, wrong)
        if name in volumes[:index]:
            yield duplicate(path, name)


def _container(path: str, container: Object, volumes: list[str], seen: set[str]) -> Iterator[FieldCause]:
    name = container.get("name", "")
    wrong = names.dns_label(name)
    if not name:
        yield required(f"{path}.name")
    elif wrong:
        yield invalid_value(f"{path}.name", name, wrong)
    elif name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULL_POLICIES:
        yield unsupported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    yield from _environment(path, container)
    yield from _mounts(path, container, volumes)
    yield from _ports(path, container)
    yield from _resources(f"{path}.resources", container.get("resources") or {})


def _environment(path: str, container: Object) -> Iterator[FieldCause]:
    for index, variable in enumerate(container.get("env") or []):
        here = f"{path}.env[{index}]"
        if not variable.get("name"):
            yield required(f"{here}.name")
        elif "=" in variable["name"]:
            yield invalid_value(
                f"{here}.name", variable["name"], "a valid environment variable name must not contain '='"
            )
        if variable.get("value") and variable.get("valueFrom"):
            yield invalid_value(f"{here}.valueFrom", "", "may not be specified when `value` is not empty")


def _mounts(path: str, container: Object, volumes: list[str]) -> Iterator[FieldCause]:
    for index, mount in enumerate(container.get("volumeMounts") or []):
        here = f"{path}.volumeMounts[{index}]"
        if not mount.get("name"):
            yield required(f"{here}.name")
        elif mount["name"] not in volumes:
            yield unknown_reference(f"{here}.name", mount["name"])
        if not mount.get("mountPath"):
            yield required(f"{here}.mountPath")
        if mount.get("mountPropagation") == "Bidirectional" and not _is_privileged(container):
            why = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden_field(f"{path}.volumeMounts.mountPropagation", why)


def _is_privileged(container: Object) -> bool:
    return bool((container.get("securityContext") or {}).get("privileged"))


def _ports(path: str, container: Object) -> Iterator[FieldCause]:
    for index, port in enumerate(container.get("ports") or []):
        number = port.get("containerPort", 0)
        if not number:
            yield required(f"{path}.ports[{index}].containerPort")
        elif not 1 <= number <= 65535:
            why = "must be between 1 and 65535, inclusive"
            yield invalid_value(f"{path}.ports[{index}].containerPort", number, why)


def _resources(path: str, resources: Object) -> Iterator[FieldCause]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, text in requests.items():
        limit = limits.get(name)
        # Only extended resources have a domain in their names.
        if "/" in name and limit is None:
            yield FieldCause(
                "FieldValueRequired",
                "Required value: Limit must be set for non overcommitable resources",
                f"{path}.limits",
            )
        if limit is not None and quantity.parse(text) > quantity.parse(limit):
            yield invalid_value(f"{path}.requests", str(text), f"must be less than or equal to {name} limit of {limit}")


def _choices(found: Object) -> Iterator[FieldCause]:
    for field, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        value = found.get(field, "")
        if value not in allowed:
            yield unsupported(f"spec.{field}", value, allowed)
    for index, toleration in enumerate(found.get("tolerations") or []):
        # The API server stores no default here, and reads an absent operator as Equal.
        operator = toleration.get("operator", "Equal")
        if operator not in _OPERATORS:
            yield unsupported(f"spec.tolerations[{index}].operator", operator, _OPERATORS)


def _names(found: Object) -> Iterator[FieldCause]:
    for field, judge in (
        ("serviceAccountName", names.dns_subdomain),
        ("nodeName", names.dns_subdomain),
        ("hostname", names.dns_label),
        ("subdomain", names.dns_label),
        ("priorityClassName", names.dns_subdomain),
    ):
        value = found.get(field)
        wrong = judge(value) if value else None
        if value and wrong:
            yield invalid_value(f"spec.{field}", value, wrong)
    for key, value in (found.get("nodeSelector") or {}).items():
        wrong = names.qualified_name(key) or names.label_value(value)
        if wrong:
            yield invalid_value("spec.nodeSelector", key, wrong)
