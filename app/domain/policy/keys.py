"""Which labels and annotations a pod template may have.

Nodes, networks, service meshes and admission webhooks act on the keys of a pod, and each add-on of a cluster has keys
of its own. So the controls list what is allowed, and not what is dangerous.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.domain.errors import pointer_to, shorten
from app.domain.kubernetes.topology import ANNOTATIONS as TOPOLOGY
from app.domain.policy.template import ANNOTATIONS, LABELS, Check, Finding, PodTemplate

ANNOTATIONS_CONTROL: Final = "Annotations"
LABELS_CONTROL: Final = "Labels"
# Keys that give a pod nothing beyond its namespace. A * at the end stands for any further characters.
ALLOWED_ANNOTATIONS: Final = (
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "container.apparmor.security.beta.kubernetes.io/*",  # checked by the control AppArmor
    "jobgate.dev/*",  # checked with the other rules on templates
    "k8s.v1.cni.cncf.io/networks",  # only networks of the pod's namespace, see below
    "karpenter.sh/do-not-disrupt",
    *TOPOLOGY,  # they never reach a pod
    "kubectl.kubernetes.io/*",
    "kubernetes.io/change-cause",
    "kubernetes.io/description",
    "linkerd.io/inject",
    "prometheus.io/*",
    "scheduling.k8s.io/group-name",
    "sidecar.istio.io/inject",
)
ALLOWED_LABELS: Final = ("app.kubernetes.io/*", "helm.sh/chart")
# Multus attaches networks by this annotation. A reference can name another namespace, as ns/name or in JSON.
_NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"
# A label without a prefix that the cluster trusts: it binds an identity of Azure.
_TRUSTED_LABELS: Final = frozenset({"aadpodidbinding"})
# The queue of a job is that of its manifest: Kueue would queue pods with a label of their own one by one.
_KUEUE: Final = "kueue.x-k8s.io/"
_OF_KUEUE: Final = "labels of kueue.x-k8s.io on the manifest itself, for the job as a whole"
_PATTERN: Final = re.compile(r"\*|[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]*)?\*?")


def is_pattern(text: str) -> bool:
    """Return whether a text is a key, the beginning of keys with a * at its end, or * alone."""
    return _PATTERN.fullmatch(text) is not None


@dataclass(frozen=True)
class AllowedKeys:
    """The keys that match one of the patterns, and the user's own keys, which have neither a prefix nor a dot.

    A key with dots may be of a container runtime, such as io.katacontainers.config.hypervisor.path.
    """

    patterns: Collection[str]

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        return tuple(pattern[:-1] for pattern in self.patterns if pattern.endswith("*"))

    def __contains__(self, key: str) -> bool:
        is_own = "/" not in key and "." not in key
        return is_own or key in self.patterns or key.startswith(self._beginnings)

    @property
    def description(self) -> str:
        return "keys without a prefix and dots, " + ", ".join(sorted(self.patterns))


def annotations(further: Collection[str]) -> Check:
    """Return a check that reports annotations which are neither harmless nor match a pattern of `further`."""
    allowed = AllowedKeys(frozenset({*ALLOWED_ANNOTATIONS, *further}))

    def check(pod: PodTemplate) -> Iterator[Finding]:
        for key, value in pod.annotations.items():
            pointer = pointer_to(ANNOTATIONS, key)
            if key not in allowed:
                detail = f"nodes, networks or webhooks of the cluster may trust the annotation {shorten(key)}"
                yield Finding(pointer, detail, _describe_accepted(allowed, "JOBGATE_POD_POLICY_ANNOTATIONS"))
            elif key == _NETWORKS and isinstance(value, str) and ("/" in value or "namespace" in value):
                detail = "the network may belong to another namespace"
                yield Finding(pointer, detail, "names of networks, without a namespace")

    return check


def labels(further: Collection[str]) -> Check:
    """Return a check that reports labels which are neither harmless nor match a pattern of `further`."""
    allowed = AllowedKeys(frozenset({*ALLOWED_LABELS, *further}))

    def check(pod: PodTemplate) -> Iterator[Finding]:
        for key in pod.labels:
            if key not in allowed or (key in _TRUSTED_LABELS and key not in further):
                detail = f"webhooks, meshes or network policies of the cluster may trust the label {shorten(key)}"
                accepted = _describe_accepted(allowed, "JOBGATE_POD_POLICY_LABELS")
                yield Finding(pointer_to(LABELS, key), detail, _OF_KUEUE if key.startswith(_KUEUE) else accepted)

    return check


def _describe_accepted(allowed: AllowedKeys, setting: str) -> str:
    return f"{allowed.description}; an operator allows others with {setting}"
