"""The controller that admits Workloads.

created ─▶ pending ─▶ admitted ─▶ Finished
              ▲           │ preempted, deactivated, its queue drained
              │           ▼
              └─ owner ─ Evicted: the owner stops its pods, and removes the admission by an update of the status
"""

from collections.abc import Callable
from functools import partial

from devcluster.controllers.kueue import conditions, preemption, queues
from devcluster.controllers.kueue.assignment import Fit, Quota, assign
from devcluster.controllers.kueue.queues import QueueCounts
from devcluster.controllers.kueue.workloads import (
    has_condition,
    is_active,
    is_pending,
    is_reserving,
    pod_sets,
    queue_order,
    total,
    usage,
)
from devcluster.errors import StatusError
from devcluster.formats.objects import Object, condition, labels, spec, uid
from devcluster.formats.selectors import selects
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Record
from devcluster.resources import CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES, RESOURCE_FLAVORS, WORKLOADS

_RELEVANT = (WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES, RESOURCE_FLAVORS, NAMESPACES)


class KueueController:
    """Reconciles all queues at each change of one of them. Each write is a change that leads to another round."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()

    async def run(self) -> None:
        self.reconcile()
        while True:
            relevant = (await self._feed.get()).record.resource in _RELEVANT
            # One round serves all changes that are queued.
            while not self._feed.empty():
                relevant |= self._feed.get_nowait().record.resource in _RELEVANT
            if relevant:
                self.reconcile()

    def reconcile(self) -> None:
        flavors = {record.name: spec(record.object) for record in self._store.iterate(RESOURCE_FLAVORS)}
        for record in self._store.listed(WORKLOADS):
            self._evict_stopped(record)
        waiting: dict[str, list[Record]] = {}
        for record in self._store.listed(WORKLOADS):
            if is_pending(record.object):
                queue = self._find_queue(record, flavors)
                if queue:
                    waiting.setdefault(queue, []).append(record)
        for name, records in waiting.items():
            self._admit(name, sorted(records, key=lambda record: queue_order(record.object)), flavors)
        self._write_queues(flavors)

    def _evict_stopped(self, record: Record) -> None:
        """Evict a Workload that is not active, or whose queue is drained."""
        workload = record.object
        if has_condition(workload, "Finished"):
            return
        if not is_active(workload):
            if (condition(workload, "Evicted") or {}).get("reason") != "Deactivated" or not has_condition(
                workload, "Evicted"
            ):
                self._write(
                    record, partial(conditions.evict, reason="Deactivated", message="The workload is deactivated")
                )
            return
        if not is_reserving(workload) or has_condition(workload, "Evicted"):
            return
        local = self._store.get(LOCAL_QUEUES, record.namespace, spec(workload).get("queueName", ""))
        cluster = self._store.get(CLUSTER_QUEUES, "", workload["status"]["admission"]["clusterQueue"])
        for queue in (local, cluster):
            if queue is not None and queues.drains(queue.object):
                kind = queue.resource.kind
                reason, message = f"{kind}Stopped", f"The {kind} is stopped"
                self._write(record, partial(conditions.evict, reason=reason, message=message))
                return

    def _find_queue(self, record: Record, flavors: dict[str, Object]) -> str:
        """Return the ClusterQueue of a pending Workload, or an empty string after a report why there is none."""
        name = spec(record.object).get("queueName", "")
        local = self._store.get(LOCAL_QUEUES, record.namespace, name)
        if local is None or queues.is_stopped(local.object):
            why = "is inactive" if local else "doesn't exist"
            self._write(record, partial(conditions.report_inadmissible, message=f"LocalQueue {name} {why}"))
            return ""
        target = str(spec(local.object)["clusterQueue"])
        cluster = self._store.get(CLUSTER_QUEUES, "", target)
        if cluster is None or queues.problem_of(cluster.object, flavors)[0]:
            why = "is inactive" if cluster else "doesn't exist"
            self._write(record, partial(conditions.report_inadmissible, message=f"ClusterQueue {target} {why}"))
            return ""
        return target

    def _admit(self, name: str, waiting: list[Record], flavors: dict[str, Object]) -> None:
        """Admit the Workloads that fit, in their order, until one waits for others to give their quota back."""
        queue = self._store.get(CLUSTER_QUEUES, "", name)
        assert queue is not None
        reserving = [
            record.object
            for record in self._store.iterate(WORKLOADS)
            if is_reserving(record.object) and record.object["status"]["admission"]["clusterQueue"] == name
        ]
        strict = spec(queue.object)["queueingStrategy"] == "StrictFIFO"
        for record in waiting:
            fit = self._try(record, queue, reserving, flavors)
            if fit is Fit.AFTER_PREEMPTION or (fit is Fit.NONE and strict):
                return

    def _try(self, record: Record, queue: Record, reserving: list[Object], flavors: dict[str, Object]) -> Fit:
        """Admit a Workload, or report why it waits. AFTER_PREEMPTION says that others give their quota back first."""
        namespace = self._store.get(NAMESPACES, "", record.namespace)
        if not selects(spec(queue.object).get("namespaceSelector"), labels(namespace.object) if namespace else {}):
            self._report(record, "workload namespace doesn't match ClusterQueue selector")
            return Fit.NONE
        can_preempt = spec(queue.object)["preemption"]["withinClusterQueue"] != "Never"
        used = total(usage(workload) for workload in reserving)
        quota = Quota(queues.groups_of(queue.object), flavors, used, can_preempt)
        assignment = assign(pod_sets(record.object), quota)
        if assignment.fit is Fit.NOW:
            admitted = self._write(record, partial(conditions.admit, queue=queue.name, assignment=assignment))
            reserving.append(admitted.object)
            return Fit.NOW
        victims: list[Object] = []
        if assignment.fit is Fit.AFTER_PREEMPTION:
            victims = preemption.victims(record.object, assignment.usage, reserving, quota)
        if not victims:
            self._report(record, assignment.problem)
            return Fit.NONE
        self._report(record, f"{assignment.problem}. Pending the preemption of {len(victims)} workload(s)")
        message = preemption.message(record.object, queue.name)
        for victim in victims:
            current = self._store.by_uid(uid(victim))
            if current is not None and not has_condition(current.object, "Evicted"):
                self._write(current, partial(conditions.preempt, message=message))
        return Fit.AFTER_PREEMPTION

    def _write_queues(self, flavors: dict[str, Object]) -> None:
        clusters = {record.name: QueueCounts() for record in self._store.iterate(CLUSTER_QUEUES)}
        for local in self._store.listed(LOCAL_QUEUES):
            target = self._store.get(CLUSTER_QUEUES, "", str(spec(local.object)["clusterQueue"]))
            counts = QueueCounts()
            for record in self._store.iterate(WORKLOADS, local.namespace):
                if spec(record.object).get("queueName") == local.name:
                    counts.add(record.object, stopped=queues.is_stopped(local.object))
            if target is not None:
                clusters[target.name].join(counts)
            is_usable = target is not None and not queues.problem_of(target.object, flavors)[0]
            found = target.object if target else None
            self._write(local, partial(queues.local_queue_status, counts=counts, target=found, is_usable=is_usable))
        for record in self._store.listed(CLUSTER_QUEUES):
            status = partial(
                queues.cluster_queue_status,
                counts=clusters[record.name],
                problem=queues.problem_of(record.object, flavors),
            )
            self._write(record, status)

    def _report(self, record: Record, message: str) -> None:
        self._write(record, partial(conditions.report_pending, message=message))

    def _write(self, record: Record, change: Callable[[Object], Object]) -> Record:
        """Update the status of an object. Without a change of its content, it gets no new version."""
        address = ObjectAddress(record.resource, record.namespace, record.name, "status")
        try:
            return self._registry.update(address, change)
        except StatusError:
            # The object is gone or its owner has written an invalid one. The next change leads to another round.
            return record
