"""The content of /etc/hosts of a pod, which stands in for cluster DNS. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from devcluster.formats.objects import is_ready, is_terminal

DOMAIN = "cluster.local"

ServiceNames = dict[str, dict[str, list[str]]]
"""The addresses of each name, by namespace and by name inside the namespace."""


def service_names(services: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> ServiceNames:
    """Return the names that Services define. A pod has them while it has an address and has not ended."""
    by_namespace: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for pod in pods:
        if (pod.get("status") or {}).get("podIP") and not is_terminal(pod):
            by_namespace[pod["metadata"]["namespace"]].append(pod)
    names: ServiceNames = {}
    for service in sorted(services, key=lambda s: (s["metadata"]["namespace"], s["metadata"]["name"])):
        namespace = service["metadata"]["namespace"]
        _add_service(names.setdefault(namespace, {}), service, by_namespace[namespace])
    return names


def _add_service(names: dict[str, list[str]], service: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> None:
    spec, name = service["spec"], service["metadata"]["name"]
    selector = spec.get("selector")
    if not selector:
        return
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            continue
        terminating = bool(pod["metadata"].get("deletionTimestamp"))
        if not spec.get("publishNotReadyAddresses") and (terminating or not is_ready(pod)):
            continue
        address = pod["status"]["podIP"]
        _append(names, name, address)
        if pod["spec"].get("subdomain") == name and pod["spec"].get("hostname"):
            _append(names, f"{pod['spec']['hostname']}.{name}", address)


def _append(names: dict[str, list[str]], name: str, address: str) -> None:
    known = names.setdefault(name, [])
    if address not in known:
        known.append(address)


def body_for(namespace: str, names: ServiceNames) -> str:
    """Return the lines that all pods of a namespace share: its own names first, then those of other namespaces."""
    lines: list[str] = []
    for owner in sorted(names, key=lambda n: (n != namespace, n)):
        for name, addresses in sorted(names[owner].items()):
            forms = [f"{name}.{owner}.svc.{DOMAIN}", f"{name}.{owner}.svc", f"{name}.{owner}"]
            if owner == namespace:
                forms.append(name)
            lines += [f"{address}\t{' '.join(forms)}\n" for address in sorted(addresses)]
    return "".join(lines)


def header_for(pod: Mapping[str, Any], address: str) -> str:
    """Return the lines that a kubelet writes: localhost, the name of the pod, and hostAliases."""
    spec, metadata = pod["spec"], pod["metadata"]
    hostname = hostname_of(pod)
    own = hostname
    if subdomain := spec.get("subdomain"):
        own = f"{hostname}.{subdomain}.{metadata['namespace']}.svc.{DOMAIN}\t{hostname}"
    lines = ["# Written by the node agent and kept current.\n", "127.0.0.1\tlocalhost\n", "::1\tlocalhost\n"]
    lines.append(f"{address}\t{own}\n")
    aliases = spec.get("hostAliases") or []
    lines += [f"{alias['ip']}\t{' '.join(alias.get('hostnames') or [])}\n" for alias in aliases]
    return "".join(lines)


def hostname_of(pod: Mapping[str, Any]) -> str:
    """Return the hostname: `hostname` of the pod, or its name, cut to the 63 characters of a hostname."""
    name: str = pod["spec"].get("hostname") or pod["metadata"]["name"][:63].rstrip("-.")
    return name
