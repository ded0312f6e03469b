"""Writes the Workloads of jobs, and removes the gates of Kueue from their pods. Each write may be repeated."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import msgspec

from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Object
from app.domain.plan import Manifest, Rank
from app.domain.queueing.priorities import Priority
from app.domain.queueing.workload import (
    give_back,
    pods_ready_status,
    reclaimable_status,
    with_condition,
    workload_labels,
    workload_manifest,
    workload_name,
)
from app.domain.reconcile.actions import (
    ActivateWorkload,
    EnsureWorkload,
    FinishWorkload,
    GiveBackQuota,
    LabelWorkload,
    QueueAction,
    ReclaimPods,
    RemoveWorkload,
    ReportPodsReady,
    SetPriority,
    UngatePod,
    WorkloadAction,
)
from app.domain.status.altered_objects import UnusableObject
from app.domain.status.pods.ownership import is_owned
from app.k8s.codec import OBJECT
from app.k8s.codec import WORKLOAD as WORKLOAD_CODEC
from app.k8s.errors import KubeConflict, KubeError, KubeForbidden, KubeNotFound, KubeStatusError
from app.k8s.finalizers import delete_and_release, release
from app.k8s.resources import WORKLOAD
from app.loops.jobs.actions.creator import Creator
from app.loops.jobs.actions.gates import remove_gates
from app.loops.jobs.actions.priorities import Priorities
from app.loops.jobs.actions.work import Work
from app.loops.jobs.mirror import Mirror
from app.loops.jobs.queues import QueueMirror
from app.loops.leadership.own_cluster import OwnCluster


class WorkloadActions:
    """Carries out actions on Workloads."""

    def __init__(
        self,
        cluster: OwnCluster,
        clock: Clock,
        creator: Creator,
        mirror: Mirror,
        queues: QueueMirror,
    ) -> None:
        self._cluster = cluster
        self._api, self._timeout = cluster.api, cluster.timeout
        self._clock = clock
        self._creator = creator
        self._mirror = mirror
        self._queues = queues
        self._priorities = Priorities(cluster.api, clock, timeout=cluster.timeout)

    def call(self, work: Work, action: QueueAction, anchor: str | None) -> Callable[[], Awaitable[bool]] | None:
        """Return what carries out the action; None if it needs an anchor that is not there yet."""
        match action:
            case EnsureWorkload():
                return partial(self._ensure, work, action, anchor) if anchor is not None else None
            case UngatePod():
                return partial(self._ungate, work, action)
            case WorkloadAction():
                return partial(self._change, work, action)
            case _:
                raise AssertionError(f"an unknown action: {action}")

    async def _ensure(self, work: Work, action: EnsureWorkload, anchor: str) -> bool:
        """Create a Workload of the job."""
        priority = await self._priority(work, action.key)
        if priority is None:
            return True
        counts = {task: end - first for task, first, end in action.ranks} or None
        manifest = workload_manifest(work.plan, action.queue, priority, anchor, number=action.number, counts=counts)
        found = await self._creator.ensure_workload(work, manifest, action.key)
        reach(FaultPoint.WORKLOAD_CREATED)
        if found is not None:
            self._queues.adopt(found)
        return True

    async def _priority(self, work: Work, key: Rank | None) -> Priority | None:
        """Return the priority of the job; None if there is no such class, or the next try waits for its back-off."""
        if not self._creator.refusals.is_due(work.expectations, key):
            return None
        try:
            return await self._priorities.find(work.plan.priority)
        except UnusableObject as unusable:
            self._creator.refusals.note_unusable(work, key, unusable)
        except KubeError as error:
            self._creator.refusals.note_error(work, key, error)
        return None

    async def _set_priority(self, work: Work, found: Object, key: Rank | None) -> bool:
        priority = await self._priority(work, key)
        if priority is None:
            return True
        work.expectations.accept(key)
        return await self._patch(found, {"spec": priority.patch()})

    async def _change(self, work: Work, action: WorkloadAction) -> bool:
        """Carry out one write, and note what the cluster refuses of it: otherwise nothing says why quota stays in use.

        Returns False if the write must be repeated, because the Workload changed meanwhile.
        """
        gives_back = isinstance(action, GiveBackQuota) and not action.number
        try:
            done = await self._read_and_write(work, action)
        except KubeStatusError as error:
            if isinstance(error, KubeForbidden):
                self._queues.note_denied(work.plan.identity.namespace)
            if gives_back:
                self._creator.refusals.note_change(work, error)
            raise
        if gives_back:
            work.expectations.accept(None)
        return done

    async def _read_and_write(self, work: Work, action: WorkloadAction) -> bool:
        found = await self._read(work, action.number)
        if found is None:
            identity = work.plan.identity
            self._queues.note_gone(identity.namespace, workload_name(identity.uid, action.number))
            return True
        reach(FaultPoint.WORKLOAD_BEFORE_WRITE)
        done = await self._carry_out(work, found, action)
        reach(FaultPoint.WORKLOAD_WRITTEN)
        self._queues.note_written(work.plan.identity.namespace)
        return done

    async def _carry_out(self, work: Work, found: Object, action: WorkloadAction) -> bool:
        match action:
            case SetPriority():
                return await self._set_priority(work, found, action.key)
            case LabelWorkload():
                return await self._patch(found, {"metadata": {"labels": workload_labels(work.plan.identity)}})
            case ActivateWorkload():
                return await self._patch(found, {"spec": {"active": True}})
            case FinishWorkload():
                return await self._write_status(found, action) and await self._release(work, action.number)
            case RemoveWorkload():
                self._cluster.guard()
                finalizer = labels.ADMISSION_FINALIZER
                await delete_and_release(self._api, WORKLOAD, found.metadata, finalizer, request_seconds=self._timeout)
                return True
            case _:
                return await self._write_status(found, action)

    async def _write_status(self, found: Object, action: WorkloadAction) -> bool:
        now, workload = self._clock.now(), found.raw
        match action:
            case GiveBackQuota(reason=reason, message=message, reclaimed=reclaimed):
                status = give_back(workload, reason, message, now) | reclaimable_status(dict(reclaimed))
            case ReclaimPods(reclaimed=reclaimed):
                status = reclaimable_status(dict(reclaimed))
            case FinishWorkload(reason=reason, message=message):
                status = with_condition(workload, "Finished", reason, message, now)
            case ReportPodsReady(ready=ready):
                status = pods_ready_status(workload, now, ready=ready)
            case _:
                raise AssertionError(f"an unknown action: {action}")
        return await self._patch(found, {"status": status}, subresource="status")

    async def _read(self, work: Work, number: int) -> Object | None:
        """Read the Workload of the job with this number; None if it is gone, or its name is that of another object."""
        identity = work.plan.identity
        found: Object | None = None
        with suppress(KubeNotFound):
            found = await self._api.get(
                WORKLOAD,
                workload_name(identity.uid, number),
                identity.namespace,
                codec=OBJECT,
                timeout=self._timeout,
            )
        await self._cluster.verify()
        anchors = {*work.anchors, *work.expectations.anchors}
        return found if found is not None and is_owned(found.metadata, identity.uid, anchors) else None

    async def _release(self, work: Work, number: int) -> bool:
        found = await self._read(work, number)
        if found is None:
            return True
        self._cluster.guard()
        finalizer = labels.ADMISSION_FINALIZER
        return await release(self._api, WORKLOAD, found.metadata, finalizer, request_seconds=self._timeout)

    async def _patch(self, found: Object, patch: Manifest, subresource: str | None = None) -> bool:
        metadata = found.metadata
        # Kueue writes the same conditions, and a merge patch replaces the whole list.
        unchanged = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        self._cluster.guard()
        try:
            answer = await self._api.merge_patch(
                WORKLOAD,
                metadata.name,
                metadata.namespace,
                patch={**patch, "metadata": {**patch.get("metadata", {}), **unchanged}},
                subresource=subresource,
                timeout=self._timeout,
            )
        except KubeConflict:
            return False
        except KubeNotFound:
            self._queues.note_gone(metadata.namespace, metadata.name)
            return True
        self._queues.adopt(WORKLOAD_CODEC.decode(msgspec.json.encode(answer.raw)))
        return True

    async def _ungate(self, work: Work, action: UngatePod) -> bool:
        """Remove what keeps the pod from the scheduler, and what would keep it after its end."""
        namespace = work.plan.identity.namespace
        self._cluster.guard()
        try:
            pod = await remove_gates(self._api, action.name, namespace, action.uid, request_seconds=self._timeout)
        except KubeConflict:
            return False
        except KubeNotFound:
            return True
        self._mirror.adopt(pod)
        return True
