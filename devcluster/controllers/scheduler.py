"""The scheduler: binds each pending pod to the least loaded node that fits, or reports why none does."""

from collections.abc import Iterable
from decimal import Decimal

from devcluster.controllers import affinity, fit
from devcluster.controllers.events import Recorder
from devcluster.controllers.volumes import claims_of
from devcluster.errors import StatusError
from devcluster.formats.objects import (
    Object,
    condition,
    is_terminal,
    is_terminating,
    meta,
    phase,
    set_condition,
    spec,
    status,
    uid,
)
from devcluster.formats.quantity import Amounts, add, amounts, charged_amounts
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.pod_actions import bind
from devcluster.registry.store import Change, ChangeType, Record
from devcluster.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS


class Scheduler:
    """Keeps the sum of requests on each node from the feed, so that scheduling costs no more than the pending pods."""

    def __init__(self, registry: Registry, names: frozenset[str]) -> None:
        self._registry = registry
        self._store = registry.store
        self._names = names
        self._feed = registry.store.feed()
        self._recorder = Recorder(registry, "default-scheduler")
        # By pod uid: the node of the pod and the amounts charged to it.
        self._charged: dict[str, tuple[str, Amounts]] = {}
        self._used: dict[str, Amounts] = {}
        # By uid: pods without a node that this scheduler must place.
        self._waiting: dict[str, Record] = {}
        # By uid: placed pods with anti-affinity rules, which also concern pods without rules.
        self._with_anti_affinity: set[str] = set()

    async def run(self) -> None:
        for record in self._store.iterate(PODS):
            self._handle_pod(record)
        self.schedule()
        while True:
            relevant = self._handle_change(await self._feed.get())
            # One iteration serves all changes that are queued.
            while not self._feed.empty():
                relevant |= self._handle_change(self._feed.get_nowait())
            if relevant:
                self.schedule()

    def _handle_change(self, change: Change) -> bool:
        """Record a change, and return whether it may make a waiting pod schedulable."""
        if change.record.resource is NODES:
            return _shape(change.record) != (_shape(change.previous) if change.previous else None)
        if change.record.resource is PERSISTENT_VOLUME_CLAIMS:
            return bool(self._waiting)
        if change.record.resource is not PODS:
            return False
        if change.type is ChangeType.DELETED:
            self._waiting.pop(uid(change.record.object), None)
            return self._release(uid(change.record.object))
        return self._handle_pod(change.record)

    def _handle_pod(self, record: Record) -> bool:
        pod, own = record.object, uid(record.object)
        if is_terminal(pod):
            self._waiting.pop(own, None)
            return self._release(own)
        node = spec(pod).get("nodeName")
        if node:
            self._waiting.pop(own, None)
            self._charge(own, node, pod)
            return False
        if is_terminating(pod) or not self._is_ours(pod):
            self._waiting.pop(own, None)
            return False
        # A pod that waits already is tried again only when a change may help it.
        is_new = own not in self._waiting
        self._waiting[own] = record
        return is_new

    def _is_ours(self, pod: Object) -> bool:
        return spec(pod).get("schedulerName") in self._names and not spec(pod).get("schedulingGates")

    def _charge(self, own: str, node: str, pod: Object) -> None:
        # `schedule` charges a pod at once; the change in the feed comes later.
        if own in self._charged:
            return
        requested = charged_amounts(pod)
        self._charged[own] = (node, requested)
        if affinity.required_terms(pod):
            self._with_anti_affinity.add(own)
        self._used[node] = add(self._used.get(node, {}), requested)

    def _release(self, own: str) -> bool:
        node, requested = self._charged.pop(own, ("", {}))
        self._with_anti_affinity.discard(own)
        if not node:
            return False
        self._used[node] = add(self._used[node], {name: -amount for name, amount in requested.items()})
        return True

    def schedule(self) -> None:
        nodes = self._store.list_records(NODES)
        for record in sorted(self._waiting.values(), key=_order):
            current = self._store.get(PODS, record.namespace, record.name)
            # The pod is gone, and another one may have its name.
            if current is None or uid(current.object) != uid(record.object):
                self._waiting.pop(uid(record.object), None)
                continue
            try:
                self._place(current, nodes)
            except StatusError:
                # The pod has changed in the meantime. That change is in the feed, and the next iteration sees it.
                continue

    def _place(self, record: Record, nodes: list[Record]) -> None:
        candidates: list[tuple[Decimal, str]] = []
        failures: list[list[str]] = []
        problem = self._claim_problem(record)
        if problem and nodes:
            self._report(record, f"0/{len(nodes)} nodes are available: {problem}. not found")
            return
        closed = affinity.closed_nodes(record.object, nodes, self._find_placed(record.object))
        for node in nodes:
            used = self._used.get(node.name, {})
            why = fit.reasons(record.object, node.object, used, closed.get(node.name, ""))
            if why:
                failures.append(why)
            else:
                candidates.append((_load(node.object, used), node.name))
        if not candidates:
            self._report(record, fit.explain(failures))
            return
        # Equal loads are decided by name, so that the choice is reproducible.
        node_name = min(candidates)[1]
        bind(self._registry, ObjectAddress(PODS, record.namespace, record.name), node_name)
        self._waiting.pop(uid(record.object), None)
        self._charge(uid(record.object), node_name, record.object)
        where = f"{record.namespace}/{record.name} to {node_name}"
        self._recorder.record(record, "Normal", "Scheduled", f"Successfully assigned {where}", "Binding")

    def _claim_problem(self, record: Record) -> str:
        """Return why a claim keeps the pod from all nodes, or an empty string if none does."""
        for name in sorted(claims_of(record.object)):
            claim = self._store.get(PERSISTENT_VOLUME_CLAIMS, record.namespace, name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if is_terminating(claim.object):
                return f'persistentvolumeclaim "{name}" is being deleted'
            if phase(claim.object) != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _find_placed(self, pod: Object) -> Iterable[tuple[Object, str]]:
        """Yield the placed pods that anti-affinity concerns, with their nodes.

        A pod without rules of its own concerns only the placed pods that have rules.
        """
        for own in list(self._charged if affinity.required_terms(pod) else self._with_anti_affinity):
            other = self._store.by_uid(own)
            if other is not None:
                yield other.object, self._charged[own][0]

    def _report(self, record: Record, message: str) -> None:
        reported = condition(record.object, "PodScheduled")
        if reported is not None and reported.get("message") == message:
            return

        def change(pod: Object) -> Object:
            set_condition(pod, "PodScheduled", "False", reason="Unschedulable", message=message)
            return pod

        updated = self._registry.update(ObjectAddress(PODS, record.namespace, record.name, "status"), change)
        self._recorder.record(updated, "Warning", "FailedScheduling", message, "Scheduling")


def _order(record: Record) -> tuple[int, str, int]:
    created = str(meta(record.object).get("creationTimestamp", ""))
    # Higher priority first, then first come, first served.
    return -int(spec(record.object).get("priority", 0)), created, record.version


def _shape(node: Record) -> tuple[object, ...]:
    """Return the fields of a node that affect scheduling. Heartbeats do not."""
    found = spec(node.object)
    return (
        found.get("unschedulable"),
        found.get("taints"),
        status(node.object).get("allocatable"),
        meta(node.object).get("labels"),
    )


def _load(node: Object, used: Amounts) -> Decimal:
    """Return the used share of a node: the largest among CPU, memory and pods."""
    room = amounts(status(node).get("allocatable"))
    shares = [used.get(name, Decimal(0)) / room[name] for name in ("cpu", "memory", "pods") if room.get(name)]
    return max(shares, default=Decimal(0))
