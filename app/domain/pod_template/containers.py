"""Rules on one container: image, environment, mounts, ports, probes and hooks."""

from dataclasses import dataclass, field

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.pod_template.downward import check_resource, check_variable_field
from app.domain.pod_template.formats import RELATIVE, relative_path
from app.domain.pod_template.reading import Mapping, check_distinct, items, mapping, present_fields, text
from app.domain.pod_template.resources import check_resources
from app.domain.pod_template.volumes import Volumes, check_file_volume, check_use

_ENV_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS = ("postStart", "preStop")
# The API server's default of terminationGracePeriodSeconds.
DEFAULT_GRACE = 30
_HOOK_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScope:
    """Values that the checks of a pod's containers share. The checks add each host port to `host_ports`.

    As in the API server, init containers do not share it, also not those that run until the pod ends.
    """

    volumes: Volumes
    claims: frozenset[str]
    host_network: bool
    grace_seconds: int
    host_ports: set[tuple[str, str, int]] = field(default_factory=set)


def check_container(
    container: Mapping, here: str, problems: Problems, facts: PodScope, *, runs_to_completion: bool
) -> None:
    """Check one container. A container that `runs_to_completion` cannot have probes or hooks."""
    _check_image(container, here, problems)
    _check_env(container, here, problems, facts.volumes)
    _check_mounts(container, here, problems, facts.volumes)
    _check_ports(container, here, problems, facts)
    check_resources(container.get("resources"), pointer_to(here, "resources"), problems)
    _check_claims(container, here, problems, facts.claims)
    _check_restarts(container, here, problems)
    if runs_to_completion:
        for name in present_fields(container, (*_PROBES, "lifecycle")):
            detail = f"an init container has no {name}, unless its restartPolicy is Always"
            problems.add(pointer_to(here, name), "NotSupported", detail, "leave it out")
        return
    for name in present_fields(container, _PROBES):
        _check_probe(name, mapping(container[name]), pointer_to(here, name), problems)
    lifecycle = mapping(container.get("lifecycle"))
    for name in present_fields(lifecycle, _HOOKS):
        hook, pointer = mapping(lifecycle[name]), pointer_to(here, "lifecycle", name)
        _check_handler(hook, pointer, problems, _HOOK_HANDLERS)
        seconds = mapping(hook.get("sleep")).get("seconds")
        if isinstance(seconds, int) and seconds > facts.grace_seconds:
            detail = "the hook sleeps longer than terminationGracePeriodSeconds"
            problems.add(pointer_to(pointer, "sleep", "seconds"), "OutOfRange", detail, f"0 to {facts.grace_seconds}")


def _check_image(container: Mapping, here: str, problems: Problems) -> None:
    image = container.get("image")
    pointer = pointer_to(here, "image")
    if image is None or image == "":
        problems.add(pointer, "Required", "a container must have an image", "an image reference")
    elif isinstance(image, str) and image != image.strip():
        problems.add(pointer, "Invalid", "the image begins or ends with white space", "an image reference")


def _check_env(container: Mapping, here: str, problems: Problems, volumes: Volumes) -> None:
    for variable, pointer in items(container, "env", here):
        name = text(variable, "name")
        if name and (wrong := names.env_name(name)):
            problems.add(pointer_to(pointer, "name"), "Invalid", wrong, "the name of an environment variable")
        if variable.get("valueFrom") is None:
            continue
        source = pointer_to(pointer, "valueFrom")
        if text(variable, "value"):
            problems.add(source, "Invalid", "a variable has either value or valueFrom", "one of them")
        _check_one_of(mapping(variable["valueFrom"]), source, problems, _ENV_SOURCES)
        for kind in ("configMapKeyRef", "secretKeyRef"):
            key = text(mapping(mapping(variable["valueFrom"]).get(kind)), "key")
            if key and (wrong := names.config_key(key)):
                problems.add(pointer_to(source, kind, "key"), "Invalid", wrong, "letters, digits, '-', '_' and '.'")
        _check_references(mapping(variable["valueFrom"]), source, problems, volumes)
    for bulk, pointer in items(container, "envFrom", here):
        prefix = text(bulk, "prefix")
        if prefix and (wrong := names.env_name(prefix)):
            problems.add(pointer_to(pointer, "prefix"), "Invalid", wrong, "the beginning of a variable's name")
        _check_one_of(bulk, pointer, problems, ("configMapRef", "secretRef"))


def _check_references(source: Mapping, here: str, problems: Problems, volumes: Volumes) -> None:
    check_variable_field(mapping(source.get("fieldRef")), pointer_to(here, "fieldRef"), problems)
    check_resource(mapping(source.get("resourceFieldRef")), pointer_to(here, "resourceFieldRef"), problems)
    if source.get("fileKeyRef") is not None:
        check_file_volume(mapping(source["fileKeyRef"]), pointer_to(here, "fileKeyRef"), volumes, problems)


def _check_one_of(owner: Mapping, pointer: str, problems: Problems, choices: tuple[str, ...]) -> bool:
    found = present_fields(owner, choices)
    if len(found) == 1:
        return True
    accepted = "one of: " + ", ".join(choices)
    if found:
        problems.add(pointer, "Invalid", f"{' and '.join(found)} exclude each other", accepted)
    else:
        problems.add(pointer, "Required", "none of the possible sources or handlers is given", accepted)
    return False


def _check_mounts(container: Mapping, here: str, problems: Problems, volumes: Volumes) -> None:
    # Mounts and devices share the file system of the container.
    paths: set[str] = set()
    mounted = {text(mount, "name") for mount, _ in items(container, "volumeMounts", here)}
    privileged = mapping(container.get("securityContext")).get("privileged") is True
    for mount, pointer in items(container, "volumeMounts", here):
        check_use(mount, "volumeMounts", pointer, volumes, problems)
        _check_path(text(mount, "mountPath"), pointer_to(pointer, "mountPath"), paths, problems)
        _check_sub_path(mount, pointer, problems)
        _check_propagation(mount, pointer, problems, privileged=privileged)
    devices: set[str] = set()
    for device, pointer in items(container, "volumeDevices", here):
        check_use(device, "volumeDevices", pointer, volumes, problems)
        _check_path(text(device, "devicePath"), pointer_to(pointer, "devicePath"), paths, problems)
        name = text(device, "name")
        if name and name in mounted | devices:
            detail = "the container uses the volume twice"
            problems.add(pointer_to(pointer, "name"), "Duplicate", detail, "one mount or one device of a volume")
        devices.add(name)


def _check_path(path: str, here: str, paths: set[str], problems: Problems) -> None:
    if path and path in paths:
        problems.add(here, "Duplicate", "another volume is mounted at the same path", "a path of its own")
    paths.add(path)


def _check_sub_path(mount: Mapping, pointer: str, problems: Problems) -> None:
    for name in present_fields(mount, ("subPath", "subPathExpr")):
        if relative_path(text(mount, name)):
            problems.add(pointer_to(pointer, name), "Invalid", f"{name} must stay inside the volume", RELATIVE)
    if text(mount, "subPath") and text(mount, "subPathExpr"):
        problems.add(pointer_to(pointer, "subPathExpr"), "Invalid", "subPath and subPathExpr exclude each other", "one")


def _check_propagation(mount: Mapping, pointer: str, problems: Problems, *, privileged: bool) -> None:
    propagation = text(mount, "mountPropagation")
    if propagation == "Bidirectional" and not privileged:
        here = pointer_to(pointer, "mountPropagation")
        problems.add(here, "Invalid", "only a privileged container propagates its mounts", "HostToContainer or None")
    if text(mount, "recursiveReadOnly") in {"", "Disabled"}:
        return
    here = pointer_to(pointer, "recursiveReadOnly")
    if mount.get("readOnly") is not True:
        problems.add(here, "Invalid", "recursiveReadOnly needs readOnly: true", "Disabled")
    if propagation not in {"", "None"}:
        problems.add(here, "Invalid", "recursiveReadOnly needs the mountPropagation None", "Disabled")


def _check_claims(container: Mapping, here: str, problems: Problems, claims: frozenset[str]) -> None:
    used: set[tuple[str, str]] = set()
    for claim, pointer in items(mapping(container.get("resources")), "claims", pointer_to(here, "resources")):
        name, request = text(claim, "name"), text(claim, "request")
        if any(name == other and (request == part or not request or not part) for other, part in used):
            detail = "the container uses the claim, or this request of it, twice"
            problems.add(pointer, "Duplicate", detail, "each claim or request once")
        used.add((name, request))
        if (name := text(claim, "name")) not in claims:
            detail = f"the pod has no resource claim {shorten(name)}"
            problems.add(pointer_to(pointer, "name"), "NotFound", detail, "the name of one in spec.resourceClaims")


def _check_restarts(container: Mapping, here: str, problems: Problems) -> None:
    check_distinct(container, "resizePolicy", "resourceName", here, problems)
    if container.get("restartPolicyRules") and container.get("restartPolicy") is None:
        problems.add(pointer_to(here, "restartPolicy"), "Required", "restartPolicyRules need one", "Never or another")


def _check_ports(container: Mapping, here: str, problems: Problems, facts: PodScope) -> None:
    seen: set[str] = set()
    for port, pointer in items(container, "ports", here):
        if name := text(port, "name"):
            if wrong := names.port_name(name):
                accepted = "at most 15 lower case letters, digits and '-', with a letter"
                problems.add(pointer_to(pointer, "name"), "Invalid", wrong, accepted)
            elif name in seen:
                detail = f"another port of this container has the name {name}"
                problems.add(pointer_to(pointer, "name"), "Duplicate", detail, "a name of its own")
            seen.add(name)
        _check_host_port(port, pointer, problems, facts)


def _check_host_port(port: Mapping, pointer: str, problems: Problems, facts: PodScope) -> None:
    # For the API server, 0 is an absent port, and with hostNetwork an absent port is the containerPort.
    number = port.get("hostPort") or (port.get("containerPort") if facts.host_network else None)
    if not isinstance(number, int) or isinstance(number, bool) or number == 0:
        return
    here = pointer_to(pointer, "hostPort")
    if facts.host_network and number != port.get("containerPort"):
        problems.add(here, "Invalid", "with hostNetwork, hostPort must equal containerPort", "the containerPort")
    # The API server compares the texts, so an absent hostIP differs from 0.0.0.0.
    taken = (text(port, "hostIP"), text(port, "protocol") or "TCP", number)
    if taken in facts.host_ports:
        problems.add(here, "Duplicate", "another port of this pod is the same host port", "a port of its own")
    facts.host_ports.add(taken)


def _check_probe(name: str, probe: Mapping, here: str, problems: Problems) -> None:
    _check_handler(probe, here, problems, _PROBE_HANDLERS)
    # The API server replaces 0 by its default, 1.
    if name != "readinessProbe" and probe.get("successThreshold") not in (None, 0, 1):
        problems.add(pointer_to(here, "successThreshold"), "Invalid", f"a {name} succeeds at once", "1")
    if name == "readinessProbe" and probe.get("terminationGracePeriodSeconds") is not None:
        pointer = pointer_to(here, "terminationGracePeriodSeconds")
        problems.add(pointer, "NotSupported", "a readiness probe ends nothing", "leave it out")


def _check_handler(owner: Mapping, here: str, problems: Problems, choices: tuple[str, ...]) -> None:
    if not _check_one_of(owner, here, problems, choices):
        return
    if owner.get("exec") is not None and not mapping(owner["exec"]).get("command"):
        problems.add(pointer_to(here, "exec", "command"), "Required", "there is no command to run", "a list of strings")
    for kind in present_fields(owner, ("httpGet", "tcpSocket")):
        _check_target_port(mapping(owner[kind]).get("port"), pointer_to(here, kind, "port"), problems)


def _check_target_port(port: JsonValue, here: str, problems: Problems) -> None:
    accepted = "1 to 65535, or the name of a port"
    if isinstance(port, str):
        if wrong := names.port_name(port):
            problems.add(here, "Invalid", wrong, accepted)
    # The schema has reported every other type.
    elif isinstance(port, int) and not 1 <= port <= 65535:
        problems.add(here, "OutOfRange", "this is not a port number", accepted)
