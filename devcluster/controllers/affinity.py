"""Required pod anti-affinity, in both directions: the rules of the incoming pod and those of the pods on the nodes."""

from collections.abc import Iterable, Mapping

from devcluster.formats.objects import Object, labels, meta, spec
from devcluster.formats.selectors import selects
from devcluster.registry.store import Record

OWN = "node(s) didn't match pod anti-affinity rules"
THEIRS = "node(s) didn't satisfy existing pods anti-affinity rules"


def required_terms(pod: Object) -> list[Object]:
    """Return the pod's required anti-affinity terms."""
    found = (spec(pod).get("affinity") or {}).get("podAntiAffinity") or {}
    return found.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def closed_nodes(pod: Object, nodes: Iterable[Record], placed: Iterable[tuple[Object, str]]) -> dict[str, str]:
    """Return the nodes that are closed to the pod, each with the message of kube-scheduler."""
    by_name = {node.name: labels(node.object) for node in nodes}
    own, theirs = set[tuple[str, str]](), set[tuple[str, str]]()
    mine = required_terms(pod)
    for other, where in placed:
        here = by_name.get(where, {})
        own |= _domains(mine, pod, other, here)
        theirs |= _domains(required_terms(other), other, pod, here)
    closed = {name: THEIRS for name, found in by_name.items() if _is_in_any(theirs, found)}
    # As kube-scheduler, report the rules of the pod itself if both kinds exclude a node.
    return closed | {name: OWN for name, found in by_name.items() if _is_in_any(own, found)}


def _domains(terms: list[Object], pod: Object, other: Object, node: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the topology domains of the node in which the terms of `pod` forbid `pod` and `other` together.

    A domain is the key and the value of a node label.
    """
    return {
        (term["topologyKey"], node[term["topologyKey"]])
        for term in terms
        if term.get("topologyKey") in node and _applies_to(term, pod, other)
    }


def _applies_to(term: Object, pod: Object, other: Object) -> bool:
    spaces = term.get("namespaces") or [meta(pod).get("namespace")]
    # Another selector would need the labels of namespaces, which this scheduler does not read.
    everywhere = term.get("namespaceSelector") == {}
    named = everywhere or meta(other).get("namespace") in spaces
    return named and selects(term.get("labelSelector"), labels(other))


def _is_in_any(domains: set[tuple[str, str]], node: Mapping[str, str]) -> bool:
    return any(node.get(key) == value for key, value in domains)
