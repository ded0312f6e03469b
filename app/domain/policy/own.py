"""Further controls of jobgate, for fields that give a pod rights or a node that its namespace does not have."""

from collections.abc import Collection, Iterator
from typing import Final

from app.domain.errors import shorten
from app.domain.pod_template.reading import text
from app.domain.policy.template import Check, Finding, PodTemplate, TemplateObject

DEFAULT_SERVICE_ACCOUNT: Final = "default"
ANY: Final = "*"
# Kubernetes reserves this prefix for priority classes of its own.
_SYSTEM_PRIORITY: Final = "system-"


def node_name(pod: PodTemplate) -> Iterator[Finding]:
    if text(pod.spec.value, "nodeName"):
        detail = "the pod would bypass the scheduler, and with it taints and quotas of the nodes"
        yield Finding(pod.spec.at("nodeName"), detail, "leave it out; nodeSelector and affinity choose among nodes")


def priority_class(pod: PodTemplate) -> Iterator[Finding]:
    name = text(pod.spec.value, "priorityClassName")
    if name.startswith(_SYSTEM_PRIORITY):
        detail = f"{shorten(name)} is a priority of the cluster's own pods"
        yield Finding(pod.spec.at("priorityClassName"), detail, "a priority class that does not begin with system-")


def foreign_pods(pod: PodTemplate) -> Iterator[Finding]:
    """Report terms of affinity that name namespaces. Other terms are about the pods of the pod's own namespace."""
    detail = "the pod could keep the pods of these namespaces from nodes, or learn where they run"
    for term in _pod_terms(pod.spec.child("affinity")):
        # As the scope CrossNamespacePodAffinity of a ResourceQuota. An empty selector selects all namespaces.
        for field in ("namespaces", "namespaceSelector"):
            if term.value.get(field) not in (None, []):
                yield Finding(term.at(field), detail, "leave it out: the term is then about the namespace of the job")


def _pod_terms(affinity: TemplateObject) -> Iterator[TemplateObject]:
    for kind in map(affinity.child, ("podAffinity", "podAntiAffinity")):
        yield from kind.items("requiredDuringSchedulingIgnoredDuringExecution")
        for weighted in kind.items("preferredDuringSchedulingIgnoredDuringExecution"):
            yield weighted.child("podAffinityTerm")


def service_account(allowed: Collection[str]) -> Check:
    """Return a check that reports a pod with another service account than these or `default`."""

    def check(pod: PodTemplate) -> Iterator[Finding]:
        accepted = "one of " + ", ".join(sorted({DEFAULT_SERVICE_ACCOUNT, *allowed}))
        # serviceAccount is the deprecated name of the field, which the API server still obeys.
        for field in ("serviceAccountName", "serviceAccount"):
            name = text(pod.spec.value, field)
            if name and name != DEFAULT_SERVICE_ACCOUNT and name not in allowed and ANY not in allowed:
                detail = f"the pod would have the rights of the service account {shorten(name)}"
                yield Finding(pod.spec.at(field), detail, accepted)

    return check
