"""Sums the capacity of a cluster from its nodes, and the requests from its pods, page by page."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Node
from app.domain.scaling.requests import PodDemand, allocatable_of, request_of, slots_of
from app.domain.scaling.values import Inventory, NodeCapacity, ResourceAmount, ScalableJob
from app.domain.status.pods.ownership import names_anchor

MANY_SLOTS = 1_000_000  # for a node without allocatable pods
_OVER = ("Succeeded", "Failed")
_REPELS = ("NoSchedule", "NoExecute")


class PodPhase(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class CountedPod(msgspec.Struct, frozen=True, gc=False):
    """The fields of any pod of the cluster that its requests and its node depend on."""

    metadata: Metadata = Metadata()
    spec: PodDemand = PodDemand()
    status: PodPhase = PodPhase()


class Census:
    """Counts the nodes and pods of a cluster. `label_keys` are the node labels to keep; no `namespaces` means all."""

    def __init__(
        self, nodes: Iterable[Node], *, label_keys: Collection[str] = (), namespaces: Sequence[str] = ()
    ) -> None:
        self._nodes = {node.metadata.name: node for node in nodes}
        self._why_closed = {name: _why_closed(node) for name, node in self._nodes.items()}
        self._open = [node for name, node in self._nodes.items() if not self._why_closed[name]]
        # What the open nodes with the labels of a node selector have when they are empty: few different amounts.
        self._sizes: dict[frozenset[tuple[str, str]], set[ResourceAmount]] = {}
        self._label_keys = label_keys
        self._namespaces = namespaces
        self._bound = dict.fromkeys(self._nodes, ResourceAmount())
        self._pods = dict.fromkeys(self._nodes, 0)
        self._requested = ResourceAmount()
        self._unbound = 0
        # The pods of each task, and those of them that count as requested.
        self._of_task: Counter[tuple[str, str, str]] = Counter()
        self._counted_of_task: Counter[tuple[str, str, str]] = Counter()

    def count(self, pods: Iterable[CountedPod]) -> None:
        """Add the requests of pods, without those of closed nodes and those that no open node could ever hold.

        Pods being deleted still occupy their node.
        """
        for pod in pods:
            if pod.status.phase in _OVER:
                continue
            request, name = request_of(pod.spec), pod.spec.node_name or ""
            if name in self._nodes:
                self._bound[name] += request
                self._pods[name] += 1
            elif not name:
                self._unbound += 1
            going = pod.metadata.deletion_timestamp is not None
            if not going and (not name or self._why_closed.get(name) == ""):
                counts = bool(name) or self._could_hold(request, pod.spec.node_selector or {})
                if counts:
                    self._requested += request
                marks = pod.metadata.labels
                job = marks.get(labels.JOB_UID, "")
                if names_anchor(pod.metadata, job):
                    task = pod.metadata.namespace, job, marks.get(labels.TASK, "")
                    self._of_task[task] += 1
                    self._counted_of_task[task] += counts

    def inventory(self, jobs: Iterable[ScalableJob] = ()) -> Inventory:
        """Return the inventory that results once the pods of these jobs match their sizes.

        The present one would be misleading: other jobs would be scaled down although pods are already leaving, or
        scaled up into capacity that pods yet to be created need.
        """
        total, requested = ResourceAmount(), self._requested
        for node in self._open:
            total += allocatable_of(node.status.allocatable)
        for job in jobs:
            task = job.namespace, job.uid, job.task
            # Only what counts is subtracted, although a node may have lost the labels that its pods select.
            requested -= job.need.times(max(0, self._counted_of_task[task] - job.size))
            # A job that has settled and lacks pods has replicas that have ended, or that take the place of their former
            # pods.
            if job.settling and self._could_hold(job.need, job.selector):
                requested += job.need.times(max(0, job.size - self._of_task[task]))
        return Inventory(
            nodes=tuple(self._room(node) for node in self._nodes.values()),
            total=total,
            requested=requested,
            unbound_pods=self._unbound,
            namespaces=tuple(self._namespaces),
        )

    def _could_hold(self, request: ResourceAmount, selector: Mapping[str, str]) -> bool:
        """Return whether some open node could hold such a pod if it were empty.

        Otherwise no job needs to shrink for the pod: it would start no sooner.
        """
        wanted = frozenset(selector.items())
        if wanted not in self._sizes:
            self._sizes[wanted] = {
                allocatable_of(node.status.allocatable) for node in self._open if wanted <= node.metadata.labels.items()
            }
        return any(size.covers(request) for size in self._sizes[wanted])

    def _room(self, node: Node) -> NodeCapacity:
        name, allocatable = node.metadata.name, node.status.allocatable
        slots = slots_of(allocatable)
        return NodeCapacity(
            name=name,
            free=allocatable_of(allocatable) - self._bound[name],
            slots=(MANY_SLOTS if slots is None else slots) - self._pods[name],
            closed=self._why_closed[name],
            labels={key: value for key, value in node.metadata.labels.items() if key in self._label_keys},
        )


def _why_closed(node: Node) -> str:
    """Return why the node takes no further pods; empty if it does."""
    if not node.ready:
        return "it is not ready"
    if node.spec.unschedulable:
        return "it is cordoned"
    taint = next((taint for taint in node.spec.taints if taint.effect in _REPELS), None)
    return f"it has the taint {taint.key}:{taint.effect}" if taint else ""
