"""Rules on the pod as a whole: its containers' names, its volumes, and where and as whom it runs."""

import ipaddress
from dataclasses import replace

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.pod_template.containers import DEFAULT_GRACE, RELATIVE, PodScope, check_container
from app.domain.pod_template.metadata import check_labels
from app.domain.pod_template.placement import check_placement
from app.domain.pod_template.reading import Mapping, given, items, mapping, text, texts
from app.domain.pod_template.resources import check_amount, check_resources

_NAME_ACCEPTED = "lower case letters, digits and '-', at most 63 characters"
_SUBDOMAINS = (
    "serviceAccountName",
    "serviceAccount",
    "nodeName",
    "priorityClassName",
    "runtimeClassName",
)
_LABELS = ("hostname", "subdomain")


def check_pod_spec(spec: JsonValue, pointer: str, problems: Problems) -> None:
    pod = mapping(spec)
    if pod.get("ephemeralContainers"):
        problems.add(
            pointer_to(pointer, "ephemeralContainers"),
            "NotSupported",
            "ephemeral containers cannot be in a template; Kubernetes adds them to running pods",
            "leave it out",
        )
    _check_references(pod, pointer, problems)
    check_labels(pod.get("nodeSelector"), pointer_to(pointer, "nodeSelector"), problems)
    volumes = _check_volumes(pod, pointer, problems)
    _check_containers(pod, pointer, problems, volumes)
    check_placement(pod, pointer, problems)
    check_resources(pod.get("resources"), pointer_to(pointer, "resources"), problems, extended=False)
    _check_host_namespaces(pod, pointer, problems)
    _check_aliases_and_gates(pod, pointer, problems)
    _check_dns(pod, pointer, problems)


def _check_references(pod: Mapping, pointer: str, problems: Problems) -> None:
    for name in _SUBDOMAINS:
        value = text(pod, name)
        if value and (wrong := names.dns_subdomain(value)):
            problems.add(pointer_to(pointer, name), "Invalid", wrong, "the name of an object")
    for name in _LABELS:
        value = text(pod, name)
        if value and (wrong := names.dns_label(value)):
            problems.add(pointer_to(pointer, name), "Invalid", wrong, _NAME_ACCEPTED)


def _check_volumes(pod: Mapping, pointer: str, problems: Problems) -> frozenset[str]:
    seen: set[str] = set()
    for volume, here in items(pod, "volumes", pointer):
        _check_name(volume, here, seen, problems, what="volume")
        # A volume without a source is an empty directory, so none is no error.
        sources = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(sources) > 1:
            listed = ", ".join(map(shorten, sources[:5]))
            problems.add(here, "Invalid", f"a volume can have only one source, and has {listed}", "one source")
        _check_paths_inside(volume, here, problems)
        check_amount(volume, ("emptyDir", "sizeLimit"), here, problems)
    return frozenset(seen)


def _check_paths_inside(volume: Mapping, here: str, problems: Problems) -> None:
    for source in ("configMap", "downwardAPI", "secret"):
        for item, pointer in items(mapping(volume.get(source)), "items", pointer_to(here, source)):
            path = text(item, "path")
            if path.startswith("/") or ".." in path.split("/"):
                problems.add(pointer_to(pointer, "path"), "Invalid", "the path must stay inside the volume", RELATIVE)
    if ".." in text(mapping(volume.get("hostPath")), "path").split("/"):
        pointer = pointer_to(here, "hostPath", "path")
        problems.add(pointer, "Invalid", "the path must not contain '..'", "an absolute path")
    exported = text(mapping(volume.get("nfs")), "path")
    if exported and not exported.startswith("/"):
        problems.add(pointer_to(here, "nfs", "path"), "Invalid", "the path must be absolute", "an absolute path")


def _check_name(owner: Mapping, here: str, seen: set[str], problems: Problems, *, what: str) -> None:
    name = text(owner, "name")
    pointer = pointer_to(here, "name")
    if not name:
        # The schema reports a name that is missing or of another type.
        if owner.get("name") == "":
            problems.add(pointer, "Required", f"a {what} must have a name", _NAME_ACCEPTED)
        return
    if wrong := names.dns_label(name):
        problems.add(pointer, "Invalid", f"the {what} name {shorten(name)}: {wrong}", _NAME_ACCEPTED)
    elif name in seen:
        problems.add(pointer, "Duplicate", f"another {what} has the name {name}", f"a name of its own for each {what}")
    seen.add(name)


def _check_containers(pod: Mapping, pointer: str, problems: Problems, volumes: frozenset[str]) -> None:
    facts = PodScope(
        volumes=volumes,
        claims=frozenset(text(claim, "name") for claim, _ in items(pod, "resourceClaims", pointer)),
        host_network=pod.get("hostNetwork") is True,
        grace_seconds=grace if isinstance(grace := pod.get("terminationGracePeriodSeconds"), int) else DEFAULT_GRACE,
    )
    seen: set[str] = set()
    # One set of names for both: Kubernetes addresses the log of a container by its name alone.
    for field in ("initContainers", "containers"):
        for container, here in items(pod, field, pointer):
            # A template may have thousands of containers, and no further error would be kept.
            if problems.full:
                return
            _check_name(container, here, seen, problems, what="container")
            runs_to_completion = field == "initContainers" and container.get("restartPolicy") != "Always"
            scope = replace(facts, host_ports=set()) if field == "initContainers" else facts
            check_container(container, here, problems, scope, runs_to_completion=runs_to_completion)


def _check_host_namespaces(pod: Mapping, pointer: str, problems: Problems) -> None:
    if pod.get("shareProcessNamespace") is True and pod.get("hostPID") is True:
        here = pointer_to(pointer, "shareProcessNamespace")
        problems.add(here, "Invalid", "shareProcessNamespace and hostPID exclude each other", "one of them")
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get("hostUsers") is False and pod.get(name) is True:
            detail = f"{name} is not possible with hostUsers: false"
            problems.add(pointer_to(pointer, name), "Invalid", detail, "leave it out")


def _check_aliases_and_gates(pod: Mapping, pointer: str, problems: Problems) -> None:
    for alias, here in items(pod, "hostAliases", pointer):
        if not _is_address(text(alias, "ip")):
            problems.add(pointer_to(here, "ip"), "Invalid", "this is not an IP address", "10.9.8.7 or 2001:db8::ffff")
        for hostname, at in texts(alias, "hostnames", here):
            if wrong := names.dns_subdomain(hostname):
                problems.add(at, "Invalid", wrong, "the name of a host, such as db.example.com")
    for field, name in (("readinessGates", "conditionType"), ("schedulingGates", "name")):
        for gate, here in items(pod, field, pointer):
            if wrong := names.label_key(text(gate, name)):
                problems.add(pointer_to(here, name), "Invalid", wrong, "a name, with or without a DNS prefix and /")


def _is_address(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def _check_dns(pod: Mapping, pointer: str, problems: Problems) -> None:
    for address, here in texts(mapping(pod.get("dnsConfig")), "nameservers", pointer_to(pointer, "dnsConfig")):
        if not _is_address(address):
            problems.add(here, "Invalid", "this is not an IP address", "10.9.8.7 or 2001:db8::ffff")
    # With every other policy, the node or the cluster has nameservers.
    if text(pod, "dnsPolicy") != "None" or given(mapping(pod.get("dnsConfig")), ("nameservers",)):
        return
    here = pointer_to(pointer, "dnsConfig", "nameservers")
    problems.add(here, "Required", "the DNS policy None needs a nameserver", "one to three addresses")
