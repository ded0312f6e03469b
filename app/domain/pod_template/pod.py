"""Rules on the pod as a whole: its containers' names, and where and as whom it runs."""

import ipaddress
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to
from app.domain.kubernetes import names
from app.domain.pod_template.containers import DEFAULT_GRACE, PodScope, check_container
from app.domain.pod_template.metadata import check_labels
from app.domain.pod_template.placement import check_placement
from app.domain.pod_template.reading import (
    NAME_ACCEPTED,
    Mapping,
    check_distinct,
    check_name,
    items,
    mapping,
    present_fields,
    text,
    texts,
)
from app.domain.pod_template.resources import check_amounts, check_resources, check_total
from app.domain.pod_template.security import check_security
from app.domain.pod_template.volumes import Volumes, check_volumes

_SUBDOMAINS = (
    "serviceAccountName",
    "serviceAccount",
    "nodeName",
    "priorityClassName",
    "runtimeClassName",
)
_KUEUE: Final = "kueue.x-k8s.io/"
_SEARCHES_MAX = 2048
_LABELS = ("hostname", "subdomain")


def check_pod_spec(spec: JsonValue, pointer: str, problems: Problems, own_labels: Collection[str]) -> None:
    """Check the spec of a pod with these labels."""
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
    volumes = check_volumes(pod, pointer, problems)
    _check_containers(pod, pointer, problems, volumes)
    check_placement(pod, pointer, problems, own_labels)
    check_resources(pod.get("resources"), pointer_to(pointer, "resources"), problems, extended=False)
    check_security(pod, pointer, problems)
    check_total(pod, pointer, problems)
    check_amounts(pod.get("overhead"), pointer_to(pointer, "overhead"), problems)
    _check_claims(pod, pointer, problems)
    _check_group(pod, pointer, problems)
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
            problems.add(pointer_to(pointer, name), "Invalid", wrong, NAME_ACCEPTED)


def _check_containers(pod: Mapping, pointer: str, problems: Problems, volumes: Volumes) -> None:
    facts = PodScope(
        volumes=volumes,
        claims=frozenset(text(claim, "name") for claim, _ in items(pod, "resourceClaims", pointer)),
        host_network=pod.get("hostNetwork") is True,
        grace_seconds=_grace_of(pod),
    )
    seen: set[str] = set()
    # One set of names for both: Kubernetes addresses the log of a container by its name alone.
    for field in ("initContainers", "containers"):
        for container, here in items(pod, field, pointer):
            # A template may have thousands of containers, and no further error would be kept.
            if problems.full:
                return
            check_name(container, here, seen, problems, what="container")
            seen.add(text(container, "name"))
            runs_to_completion = field == "initContainers" and container.get("restartPolicy") != "Always"
            scope = replace(facts, host_ports=set()) if field == "initContainers" else facts
            if pod.get("hostUsers") is False and container.get("volumeDevices"):
                at = pointer_to(here, "volumeDevices")
                problems.add(at, "NotSupported", "no block devices are possible with hostUsers: false", "leave it out")
            check_container(container, here, problems, scope, runs_to_completion=runs_to_completion)


def _check_claims(pod: Mapping, pointer: str, problems: Problems) -> None:
    check_distinct(pod, "resourceClaims", "name", pointer, problems)
    for claim, here in items(pod, "resourceClaims", pointer):
        chosen = present_fields(claim, ("resourceClaimName", "resourceClaimTemplateName"))
        if len(chosen) != 1:
            detail = "a claim has exactly one of resourceClaimName and resourceClaimTemplateName"
            problems.add(here, "Invalid" if chosen else "Required", detail, "one of them")


def _check_group(pod: Mapping, pointer: str, problems: Problems) -> None:
    if pod.get("schedulingGroup") is None:
        return
    here = pointer_to(pointer, "schedulingGroup", "podGroupName")
    name = mapping(pod["schedulingGroup"]).get("podGroupName")
    if name is None or name == "":
        problems.add(here, "Required", "a scheduling group has the name of a PodGroup", "the name of a PodGroup")
    elif isinstance(name, str) and (wrong := names.dns_subdomain(name)):
        problems.add(here, "Invalid", wrong, "the name of a PodGroup")


def _grace_of(pod: Mapping) -> int:
    grace = pod.get("terminationGracePeriodSeconds")
    if not isinstance(grace, int):
        return DEFAULT_GRACE
    # The API server replaces a negative value.
    return grace if grace >= 0 else 1


def _check_host_namespaces(pod: Mapping, pointer: str, problems: Problems) -> None:
    if pod.get("shareProcessNamespace") is True and pod.get("hostPID") is True:
        here = pointer_to(pointer, "shareProcessNamespace")
        problems.add(here, "Invalid", "shareProcessNamespace and hostPID exclude each other", "one of them")
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get("hostUsers") is False and pod.get(name) is True:
            detail = f"{name} is not possible with hostUsers: false"
            problems.add(pointer_to(pointer, name), "Invalid", detail, "leave it out")
    for name in ("hostNetwork", "setHostnameAsFQDN"):
        if pod.get("hostnameOverride") is not None and pod.get(name) is True:
            detail = f"{name} and hostnameOverride exclude each other"
            problems.add(pointer_to(pointer, "hostnameOverride"), "Invalid", detail, "one of them")


def _check_aliases_and_gates(pod: Mapping, pointer: str, problems: Problems) -> None:
    for alias, here in items(pod, "hostAliases", pointer):
        if not _is_address(text(alias, "ip")):
            problems.add(pointer_to(here, "ip"), "Invalid", "this is not an IP address", "10.9.8.7 or 2001:db8::ffff")
        for hostname, at in texts(alias, "hostnames", here):
            if wrong := names.dns_subdomain(hostname):
                problems.add(at, "Invalid", wrong, "the name of a host, such as db.example.com")
    check_distinct(pod, "schedulingGates", "name", pointer, problems)
    if pod.get("schedulingGates") and pod.get("nodeName"):
        detail = "a pod with schedulingGates has no node yet"
        problems.add(pointer_to(pointer, "nodeName"), "Invalid", detail, "nodeName or schedulingGates")
    for field, name in (("readinessGates", "conditionType"), ("schedulingGates", "name")):
        for gate, here in items(pod, field, pointer):
            if wrong := names.label_key(text(gate, name)):
                problems.add(pointer_to(here, name), "Invalid", wrong, "a name, with or without a DNS prefix and /")
            elif text(gate, name).startswith(_KUEUE) and field == "schedulingGates":
                # The pod would look as if Kueue had captured it, and be replaced again and again.
                detail = "only Kueue and jobgate set gates of Kueue"
                problems.add(pointer_to(here, name), "NotSupported", detail, "a gate with another prefix")


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
    searches = [domain for domain, _ in texts(mapping(pod.get("dnsConfig")), "searches", "")]
    if len(" ".join(searches)) > _SEARCHES_MAX:
        here = pointer_to(pointer, "dnsConfig", "searches")
        problems.add(here, "TooLong", "the search domains are too long", f"at most {_SEARCHES_MAX} characters in all")
    # With every other policy, the node or the cluster has nameservers.
    if text(pod, "dnsPolicy") != "None" or present_fields(mapping(pod.get("dnsConfig")), ("nameservers",)):
        return
    here = pointer_to(pointer, "dnsConfig", "nameservers")
    problems.add(here, "Required", "the DNS policy None needs a nameserver", "one to three addresses")
