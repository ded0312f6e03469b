"""Further controls of jobgate, for fields that give a pod rights or a node that its namespace does not have."""

from collections.abc import Collection, Iterator
from typing import Final

from app.domain.errors import pointer_to, shorten
from app.domain.pod_template.reading import text
from app.domain.policy.template import ANNOTATIONS, Check, Finding, PodTemplate

DEFAULT_SERVICE_ACCOUNT: Final = "default"
ANY: Final = "*"
# Kubernetes reserves this prefix for priority classes of its own.
_SYSTEM_PRIORITY: Final = "system-"
# The kubelet, container runtimes, network plugins and sidecar injectors obey these annotations without further checks.
_TRUSTED_ANNOTATIONS: Final = (
    "kubernetes.io/config.",
    "io.kubernetes.cri-o.",
    "io.kubernetes.cri.",
    "cni.projectcalico.org/",
    "k8s.ovn.org/",
    "ovn.kubernetes.io/",
    "sidecar.istio.io/",
    "inject.istio.io/",
)
# This one only turns the injection of a sidecar on or off.
_HARMLESS_ANNOTATIONS: Final = frozenset({"sidecar.istio.io/inject"})
# Multus attaches networks by these annotations. A reference can name another namespace, as ns/name or in JSON.
_NETWORK_ANNOTATIONS: Final = ("k8s.v1.cni.cncf.io/", "v1.multus-cni.io/")


def node_name(pod: PodTemplate) -> Iterator[Finding]:
    if text(pod.spec.value, "nodeName"):
        detail = "the pod would bypass the scheduler, and with it taints and quotas of the nodes"
        yield Finding(pod.spec.at("nodeName"), detail, "leave it out; nodeSelector and affinity choose among nodes")


def priority_class(pod: PodTemplate) -> Iterator[Finding]:
    name = text(pod.spec.value, "priorityClassName")
    if name.startswith(_SYSTEM_PRIORITY):
        detail = f"{shorten(name)} is a priority of the cluster's own pods"
        yield Finding(pod.spec.at("priorityClassName"), detail, "a priority class that does not begin with system-")


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


def annotations(pod: PodTemplate) -> Iterator[Finding]:
    for key, value in pod.annotations.items():
        pointer = pointer_to(ANNOTATIONS, key)
        if key.startswith(_TRUSTED_ANNOTATIONS) and key not in _HARMLESS_ANNOTATIONS:
            yield Finding(pointer, "the node or the network of the cluster trusts this annotation", "leave it out")
        elif key.startswith(_NETWORK_ANNOTATIONS) and isinstance(value, str) and ("/" in value or "namespace" in value):
            yield Finding(
                pointer, "the network may belong to another namespace", "names of networks, without a namespace"
            )
