"""The controller that admits Workloads.

created ─▶ pending ─▶ admitted ─▶ Finished
              ▲           │ preempted, deactivated, its queue drained
              │           ▼
              └─ owner ─ Evicted: the owner stops its pods, and removes the admission by an update of the status
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial

from devcluster.controllers.kueue import conditions, preemption, queues
from devcluster.controllers.kueue.assignment import Fit, Quota, assign
from devcluster.controllers.kueue.cohorts import QuotaNode, tree
from devcluster.controllers.kueue.queues import QueueCounts
from devcluster.controllers.kueue.workloads import (
    cluster_queue_of,
    has_condition,
    is_active,
    is_evicted,
    is_orphan,
    is_pending,
    is_reserving,
    pod_sets,
    priority_of,
    queue_order,
    request_of,
    total,
    usage,
)
from devcluster.errors import StatusError
from devcluster.formats.objects import Object, condition, labels, spec, uid
from devcluster.formats.selectors import selects
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Change, ChangeType, Record
from devcluster.resources import CLUSTER_QUEUES, COHORTS, LOCAL_QUEUES, NAMESPACES, RESOURCE_FLAVORS, WORKLOADS

_RULES = (LOCAL_QUEUES, CLUSTER_QUEUES, COHORTS, RESOURCE_FLAVORS, NAMESPACES)


class KueueController:
    """Reconciles all queues at each change of one of them. Each write is a change that leads to another iteration.

    It reconciles only while `runs` is set.
    """

    def __init__(self, registry: Registry, runs: asyncio.Event) -> None:
        self._registry = registry
        self._runs = runs
        self._store = registry.store
        self._feed = registry.store.feed()
        # By uid: what a Workload requests that does not fit. It is tried again once quota is free.
        self._parked: dict[str, Hashable] = {}

    async def run(self) -> None:
        self.reconcile()
        while True:
            relevant = self._handle_change(await self._feed.get())
            # One iteration serves all changes that are queued.
            while not self._feed.empty():
                relevant |= self._handle_change(self._feed.get_nowait())
            if relevant:
                await self._runs.wait()
                began = time.monotonic()
                self.reconcile()
                # With thousands of Workloads, an iteration takes long. The API server has as long until the next one.
                await asyncio.sleep(time.monotonic() - began)

    def _handle_change(self, change: Change) -> bool:
        """Return whether the change may concern a Workload, after those that it may help have left the parked ones."""
        resource, new, old = change.record.resource, change.record.object, change.previous
        if resource is WORKLOADS:
            if old is not None and (change.type is ChangeType.DELETED or _frees(old.object, new)):
                self._parked.clear()
            return True
        if resource not in _RULES:
            return False
        if old is not None and change.type is ChangeType.MODIFIED and _rules(old.object) == _rules(new):
            return False
        self._parked.clear()
        return True

    def reconcile(self) -> None:
        flavors = {record.name: spec(record.object) for record in self._store.iterate(RESOURCE_FLAVORS)}
        reserving: dict[str, list[Object]] = {}
        waiting: dict[str, list[Record]] = {}
        for listed in self._store.list_records(WORKLOADS):
            record = self._settle(listed)
            if is_reserving(record.object):
                reserving.setdefault(cluster_queue_of(record.object), []).append(record.object)
            elif is_pending(record.object):
                queue = self._find_queue(record, flavors)
                if queue:
                    waiting.setdefault(queue, []).append(record)
        nodes = tree(
            [queue.object for queue in self._store.iterate(CLUSTER_QUEUES)],
            [cohort.object for cohort in self._store.iterate(COHORTS)],
        )
        for name, node in nodes.items():
            node.use(total(usage(workload) for workload in reserving.get(name, ())))
        for name, records in waiting.items():
            records.sort(key=lambda record: queue_order(record.object))
            self._admit(name, records, reserving.get(name, []), flavors, nodes[name])
        self._write_queues(flavors)

    def _settle(self, record: Record) -> Record:
        """Finish, evict or queue again a Workload for which its own fields or its queues call, and return it."""
        workload = record.object
        if has_condition(workload, "Finished"):
            return record
        if is_orphan(workload):
            return self._write(record, conditions.finish_orphan)
        if not is_active(workload):
            change = partial(conditions.evict, reason="Deactivated", message="The workload is deactivated")
            return record if is_evicted(workload, "Deactivated") else self._write(record, change)
        if is_reserving(workload):
            return record if has_condition(workload, "Evicted") else self._evict_drained(record)
        return self._requeue(record)

    def _evict_drained(self, record: Record) -> Record:
        for queue in self._queues_of(record):
            if queues.drains(queue.object):
                kind = queue.resource.kind
                reason, message = f"{kind}Stopped", f"The {kind} is stopped"
                return self._write(record, partial(conditions.evict, reason=reason, message=message))
        return record

    def _requeue(self, record: Record) -> Record:
        """Queue a Workload again that its owner has held back, once the reason of its eviction is gone."""
        requeued = condition(record.object, "Requeued") or {}
        if requeued.get("status") != "False":
            return record
        if requeued.get("reason") == "Deactivated":
            change = partial(conditions.requeue, reason="Reactivated", message="The workload was reactivated")
            return self._write(record, change)
        for queue in self._queues_of(record):
            kind = queue.resource.kind
            if requeued.get("reason") != f"{kind}Stopped":
                continue
            if queues.is_stopped(queue.object):
                change = partial(conditions.report_inadmissible, message=f"{kind} {queue.name} is inactive")
            else:
                message = f"The {kind} was restarted after being stopped"
                change = partial(conditions.requeue, reason=f"{kind}Restarted", message=message)
            return self._write(record, change)
        return record

    def _queues_of(self, record: Record) -> list[Record]:
        """Return the LocalQueue of a Workload, and the ClusterQueue that has admitted it or may do so."""
        local = self._store.get(LOCAL_QUEUES, record.namespace, spec(record.object).get("queueName", ""))
        target = spec(local.object)["clusterQueue"] if local else ""
        if is_reserving(record.object):
            target = cluster_queue_of(record.object)
        found = (local, self._store.get(CLUSTER_QUEUES, "", target))
        return [queue for queue in found if queue is not None]

    def _find_queue(self, record: Record, flavors: Mapping[str, Object]) -> str:
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

    def _admit(
        self, name: str, waiting: list[Record], reserving: list[Object], flavors: Mapping[str, Object], node: QuotaNode
    ) -> None:
        """Admit the Workloads that fit, in their order, until one waits for others to give their quota back."""
        queue = self._store.get(CLUSTER_QUEUES, "", name)
        assert queue is not None
        found = spec(queue.object)
        can_preempt = found["preemption"]["withinClusterQueue"] != "Never"
        quota = Quota(queues.groups_of(queue.object), flavors, node, can_preempt)
        for record in waiting:
            own, request = uid(record.object), request_of(record.object)
            is_parked = self._parked.get(own) == request
            fit = Fit.NONE if is_parked else self._try(record, queue, reserving, quota)
            if fit is Fit.NONE:
                self._parked[own] = request
            if fit is Fit.AFTER_PREEMPTION or (fit is Fit.NONE and found["queueingStrategy"] == "StrictFIFO"):
                return

    def _try(self, record: Record, queue: Record, reserving: list[Object], quota: Quota) -> Fit:
        """Admit a Workload, or report why it waits. AFTER_PREEMPTION says that others give their quota back first."""
        namespace = self._store.get(NAMESPACES, "", record.namespace)
        if not selects(spec(queue.object).get("namespaceSelector"), labels(namespace.object) if namespace else {}):
            self._report(record, "workload namespace doesn't match ClusterQueue selector")
            return Fit.NONE
        assignment = assign(pod_sets(record.object), quota)
        if assignment.fit is Fit.NOW:
            admitted = self._write(record, partial(conditions.admit, queue=queue.name, assignment=assignment))
            reserving.append(admitted.object)
            quota.node.use(usage(admitted.object))
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

    def _write_queues(self, flavors: Mapping[str, Object]) -> None:
        local_counts = {(queue.namespace, queue.name): QueueCounts() for queue in self._store.iterate(LOCAL_QUEUES)}
        cluster_counts = {queue.name: QueueCounts() for queue in self._store.iterate(CLUSTER_QUEUES)}
        for record in self._store.iterate(WORKLOADS):
            name = spec(record.object).get("queueName", "")
            local = self._store.get(LOCAL_QUEUES, record.namespace, name)
            target = spec(local.object)["clusterQueue"] if local else ""
            if is_reserving(record.object):
                target = cluster_queue_of(record.object)
            stopped = local is None or queues.is_stopped(local.object)
            for counts in (local_counts.get((record.namespace, name)), cluster_counts.get(target)):
                if counts is not None:
                    counts.add(record.object, stopped=stopped)
        for queue in self._store.list_records(LOCAL_QUEUES):
            cluster = self._store.get(CLUSTER_QUEUES, "", spec(queue.object)["clusterQueue"])
            status = partial(
                queues.local_queue_status,
                counts=local_counts[queue.namespace, queue.name],
                target=cluster.object if cluster else None,
                is_usable=cluster is not None and not queues.problem_of(cluster.object, flavors)[0],
            )
            self._write(queue, status)
        for queue in self._store.list_records(CLUSTER_QUEUES):
            problem = queues.problem_of(queue.object, flavors)
            self._write(queue, partial(queues.cluster_queue_status, counts=cluster_counts[queue.name], problem=problem))

    def _report(self, record: Record, message: str) -> None:
        self._write(record, partial(conditions.report_pending, message=message))

    def _write(self, record: Record, change: Callable[[Object], Object]) -> Record:
        """Update the status of an object, unless it says so already."""
        if change(record.fresh()) == record.object:
            return record
        address = ObjectAddress(record.resource, record.namespace, record.name, "status")
        try:
            return self._registry.update(address, change)
        except StatusError:
            # The object is gone or its owner has written an invalid one. The next change leads to another iteration.
            return record


def _frees(old: Object, new: Object) -> bool:
    """Return whether a Workload uses less than before, or others may preempt it."""
    before, after = (is_reserving(old), usage(old), priority_of(old)), (is_reserving(new), usage(new), priority_of(new))
    return is_reserving(old) and before != after


def _rules(obj: Object) -> tuple[Object, dict[str, str]]:
    """Return the fields of a queue, flavor or namespace that admission depends on: all but the status."""
    return spec(obj), labels(obj)
