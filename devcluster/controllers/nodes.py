"""The node lifecycle controller: marks and taints nodes that stop renewing their Lease, and evicts their pods.

Lease renewed ─▶ Ready as the node reports ─▶ no taint
Lease not renewed for the grace period ─▶ Ready=Unknown ─▶ taint unreachable ─▶ pods not ready ─▶ evicted
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from devcluster import clock
from devcluster.controllers.events import Recorder
from devcluster.controllers.fit import tolerates
from devcluster.errors import StatusError
from devcluster.formats.objects import (
    Object,
    condition,
    is_terminal,
    is_terminating,
    set_condition,
    spec,
    uid,
)
from devcluster.registry.deletion import DeleteOptions
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.pod_actions import disrupt
from devcluster.registry.store import Record
from devcluster.resources import LEASES, NODES, PODS
from devcluster.settings import Timings

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_LEASE_NAMESPACE = "kube-node-lease"
# The conditions that only a kubelet reports.
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(slots=True)
class _Sign:
    """The last sign of life of a node: the observed values, and the time of the observation by the local clock."""

    seen: tuple[object, ...]
    at: float


class NodeLifecycle:
    """Checks all nodes periodically, because a silent node causes no change to react to.

    It measures time by the clock of the event loop, which clock adjustments do not affect.
    """

    def __init__(self, registry: Registry, timings: Timings) -> None:
        self._registry = registry
        self._store = registry.store
        self._timings = timings
        self._recorder = Recorder(registry, "node-controller")
        self._signs: dict[str, _Sign] = {}
        self._tainted_since: dict[tuple[str, str], float] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self.check(loop.time())
            await asyncio.sleep(self._timings.node_monitor_period)

    def check(self, now: float) -> None:
        nodes = self._store.list_records(NODES)
        # Built again each time, so that deleted nodes are forgotten.
        self._signs = {node.name: self._sign(node, now) for node in nodes}
        for node in nodes:
            with suppress(StatusError):
                if now - self._signs[node.name].at > self._timings.node_monitor_grace:
                    self._mark_unknown(node)
        # The nodes are read again, because this iteration may have changed their conditions.
        evicting = not _most_are_silent(self._store.list_records(NODES))
        for node in nodes:
            with suppress(StatusError):
                self._reconcile(node.name, now, evicting=evicting)

    def _sign(self, node: Record, now: float) -> _Sign:
        lease = self._store.get(LEASES, _LEASE_NAMESPACE, node.name)
        renewed = spec(lease.object).get("renewTime") if lease else None
        ready = condition(node.object, "Ready") or {}
        # This controller sets Unknown itself, so Unknown is no sign of life.
        beat = ready.get("lastHeartbeatTime") if ready.get("status") != "Unknown" else None
        seen = (uid(node.object), renewed, beat)
        known = self._signs.get(node.name)
        return known if known is not None and _is_unchanged(known.seen, seen) else _Sign(seen, now)

    def _mark_unknown(self, node: Record) -> None:
        ready = condition(node.object, "Ready")
        if ready is not None and ready.get("status") == "Unknown":
            return

        def change(obj: Object) -> Object:
            for kind in _KUBELET_CONDITIONS:
                posted = condition(obj, kind) is not None
                set_condition(
                    obj,
                    kind,
                    "Unknown",
                    reason="NodeStatusUnknown" if posted else "NodeStatusNeverUpdated",
                    message=f"Kubelet {'stopped posting' if posted else 'never posted'} node status.",
                )
            return obj

        updated = self._registry.update(ObjectAddress(NODES, "", node.name, "status"), change)
        message = f"Node {node.name} status is now: NodeNotReady"
        self._recorder.record(updated, "Normal", "NodeNotReady", message)

    def _reconcile(self, name: str, now: float, *, evicting: bool) -> None:
        """Make taints and pods agree with the Ready condition of the node."""
        node = self._store.get(NODES, "", name)
        if node is None:
            return
        wanted = {"True": "", "False": NOT_READY}.get(_ready(node), UNREACHABLE)
        # Without evictions, the taint only keeps new pods away.
        self._taint(node, wanted, ("NoSchedule", "NoExecute") if evicting else ("NoSchedule",))
        if not wanted or not evicting:
            self._tainted_since = {key: at for key, at in self._tainted_since.items() if key[0] != name}
        since = self._tainted_since.setdefault((name, wanted), now) if wanted and evicting else None
        for record in list(self._store.iterate(PODS)) if wanted else ():
            if spec(record.object).get("nodeName") == name and not is_terminal(record.object):
                self._mark_not_ready(record)
                if since is not None:
                    self._evict(record, wanted, now - since)

    def _taint(self, node: Record, wanted: str, effects: tuple[str, ...]) -> None:
        effects = effects if wanted else ()
        before = spec(node.object).get("taints") or []
        # Taints by users and taints that are still correct stay unchanged.
        kept = [
            taint for taint in before
            if taint["key"] not in (NOT_READY, UNREACHABLE) or (taint["key"] == wanted and taint["effect"] in effects)
        ]  # fmt: skip
        have = {taint["effect"] for taint in kept if taint["key"] == wanted}
        stamp = clock.timestamp()
        kept += [{"key": wanted, "effect": effect, "timeAdded": stamp} for effect in effects if effect not in have]
        if kept == before:
            return

        def change(obj: Object) -> Object:
            obj["spec"]["taints"] = kept
            # A real API server omits an empty list.
            if not kept:
                del obj["spec"]["taints"]
            return obj

        self._registry.update(ObjectAddress(NODES, "", node.name), change)

    def _mark_not_ready(self, record: Record) -> None:
        ready = condition(record.object, "Ready")
        if ready is None or ready.get("status") != "True":
            return

        def change(pod: Object) -> Object:
            set_condition(pod, "Ready", "False", reason="NodeNotReady", message="Node is not ready")
            return pod

        updated = self._registry.update(ObjectAddress(PODS, record.namespace, record.name, "status"), change)
        self._recorder.record(updated, "Warning", "NodeNotReady", "Node is not ready")

    def _evict(self, record: Record, taint_key: str, elapsed: float) -> None:
        tolerated = _toleration_seconds(record.object, {"key": taint_key, "effect": "NoExecute"})
        if is_terminating(record.object) or tolerated is None or elapsed < tolerated:
            return
        address = ObjectAddress(PODS, record.namespace, record.name)
        why = "Taint manager: deleting due to NoExecute taint"
        disrupt(self._registry, address, "DeletionByTaintManager", why, DeleteOptions(uid=uid(record.object)))
        shown = f"Marking for deletion Pod {record.namespace}/{record.name}"
        self._recorder.record(record, "Normal", "TaintManagerEviction", shown)


def _ready(node: Record) -> str:
    return str((condition(node.object, "Ready") or {}).get("status", "Unknown"))


def _most_are_silent(nodes: list[Record]) -> bool:
    """Return whether so many nodes are silent that the network is the likely cause. Nothing is evicted then."""
    silent = sum(_ready(node) != "True" for node in nodes)
    # The thresholds of kube-controller-manager: all nodes, or 55 % in a cluster with more than two.
    return silent == len(nodes) or (silent > 2 and silent >= 0.55 * len(nodes))


def _is_unchanged(known: tuple[object, ...], seen: tuple[object, ...]) -> bool:
    """Return whether two observations are equal. A missing heartbeat counts as equal: this controller removes it."""
    return known == seen or (known[:2] == seen[:2] and seen[2] is None)


def _toleration_seconds(pod: Object, taint: Object) -> float | None:
    """Return for how many seconds a pod tolerates a taint; None means forever."""
    matching = [entry for entry in spec(pod).get("tolerations") or [] if tolerates(entry, taint)]
    if not matching:
        return 0.0
    limits = [float(entry["tolerationSeconds"]) for entry in matching if "tolerationSeconds" in entry]
    return min(limits) if limits else None
