"""Creates the objects of a job. Every create may be repeated, and `Refusals` keeps why one is refused.

The names of a job's objects are fixed, so a create that gets 409 AlreadyExists reads the object. If it belongs to the
same job and attempt and is not terminating, the create has succeeded. If it is terminating or belongs to another
attempt or to a former job of this installation, the create waits. Any other object fails the job.

A new object that a webhook or policy of the cluster has changed, so that jobgate would not know it again, is refused:
the expectations keep its name and uid until it is deleted, and the create waits for its back-off.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import structlog

from app.base.backoff import share_of
from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Object, Pod
from app.domain.kubernetes.queueing import Workload
from app.domain.manifests.config import anchor_manifest, hosts_data, hosts_manifest
from app.domain.manifests.gangs import group_manifest, has_own_minimum, minimum_of
from app.domain.manifests.workload import pod_manifest, service_manifest
from app.domain.plan import JobPlan, Manifest, Rank
from app.domain.queueing.admission import Queueing
from app.domain.queueing.pods import with_admission, with_parent
from app.domain.reconcile.actions import CreatePod, EnsureWorkload, MarkAnchor
from app.domain.status.altered_objects import UnusableObject, altered_message, require_own
from app.domain.status.observed import AlteredObject, RefusalVerdict
from app.domain.status.pods.observation import is_captured, is_gated
from app.domain.vocabulary import PendingCode
from app.k8s.codec import OBJECT, Codec
from app.k8s.codec import POD as POD_CODEC
from app.k8s.codec import WORKLOAD as WORKLOAD_CODEC
from app.k8s.errors import KubeAlreadyExists, KubeConflict, KubeError, KubeForbidden, KubeNotFound
from app.k8s.limiter import CreateLimiter
from app.k8s.resources import CONFIG_MAP, POD, POD_GROUPS, Discovery, KubeResource, resource_for
from app.loops import metrics
from app.loops.jobs.actions.captures import Captures
from app.loops.jobs.actions.gates import remove_gates
from app.loops.jobs.actions.refusals import Refusals
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import EnsuredObjects, Expectations
from app.loops.leadership.own_cluster import OwnCluster

log = structlog.get_logger(__name__)

C = TypeVar("C", Pod, Object, Workload)

# An admission soon after the Workload was created finds its objects. After a longer wait they are read again.
ENSURED_SECONDS = 60.0
GROUP_POLL = 300.0  # seconds between reads of a PodGroup that pods wait in


class Creator:
    """Creates anchors, Services, PodGroups, lists of hosts and pods.

    `captures` says which pods Kueue would queue by themselves. `adopt` gets each pod that was created or found, so that
    the mirror has it before the watch delivers it.
    """

    def __init__(
        self,
        cluster: OwnCluster,
        clock: Clock,
        *,
        captures: Captures,
        adopt: Callable[[Pod], None],
    ) -> None:
        self._cluster = cluster
        self._api, self._timeout = cluster.api, cluster.timeout
        self._limiter = CreateLimiter(clock)
        self._clock = clock
        self.refusals = Refusals(clock)
        self._captures = captures
        self._adopt = adopt
        self._discovery = Discovery(cluster.api.get_raw, clock)

    async def gang_apis(self) -> frozenset[str]:
        """Return the apiVersions in which the cluster serves PodGroups."""
        return await self._discovery.find_served(POD_GROUPS)

    async def ensure_objects(self, work: Work) -> str | None:
        """Create the objects that the job's pods need.

        Returns the uid of the anchor, or None if a create is refused or still waits for its back-off.
        """
        plan, known = work.plan, work.expectations.ensured
        # This holds only before the first pods: later, another client may have deleted what further pods need.
        if (
            known is not None
            and not work.established
            and known.serve(plan.identity.generation, self._clock.monotonic())
        ):
            return known.anchor
        if not self.refusals.is_due(work.expectations, None):
            return None
        try:
            anchor = await self._ensure(anchor_manifest(plan), work)
            # Before the other creates: if one is refused, the uid still proves which objects belong to the job.
            _remember_anchor(work.expectations, anchor.uid)
            reach(FaultPoint.ANCHOR_CREATED)
            for service in plan.services:
                await self._ensure(service_manifest(plan, service, anchor.uid), work)
            group = group_manifest(plan, anchor.uid)
            joins = any(isinstance(action, CreatePod) and action.in_gang for action in work.actions)
            if group is not None and (joins or not work.expectations.group_deleting):
                await self._ensure_group(group, work)
            if plan.hosts is not None:
                await self._ensure(hosts_manifest(plan, plan.hosts, anchor.uid), work)
        except KubeError as error:
            self.refusals.note_error(work, None, error)
            return None
        except UnusableObject as unusable:
            self.refusals.note_unusable(work, None, unusable)
            return None
        if any(isinstance(action, EnsureWorkload) and not action.ranks for action in work.actions):
            # The Workload is one of these objects too: the back-off after its refusal grows until it is created.
            until = self._clock.monotonic() + ENSURED_SECONDS
            generation = plan.identity.generation
            work.expectations.ensured = EnsuredObjects(generation=generation, anchor=anchor.uid, until=until)
        else:
            work.expectations.accept(None)
        return anchor.uid

    async def _ensure_group(self, manifest: Manifest, work: Work) -> None:
        expectations = work.expectations
        try:
            found = await self._create_or_find(manifest, OBJECT, work, None)
            if not has_own_minimum(work.plan, found.raw):
                await self._delete_group(manifest, found.metadata.uid)
                found = await self._create_or_find(manifest, OBJECT, work, None)
                _require_own_minimum(work.plan, manifest, found)
        except KubeNotFound:
            self._discovery.doubt(manifest["apiVersion"])
            raise
        except UnusableObject as unusable:
            expectations.note_group(deleting=unusable.code == PendingCode.NAME_TERMINATING)
            raise
        expectations.group_due = self._clock.monotonic() + GROUP_POLL
        expectations.note_group(deleting=False)

    async def check_group(self, work: Work) -> bool:
        """Read the PodGroup that pods wait in, if that is due. The reconciler queues the job again for the next read.

        If another client has deleted or edited it, the next reconcile lets the gang have another one.
        """
        manifest, expectations = group_manifest(work.plan, None), work.expectations
        now = self._clock.monotonic()
        if expectations.group_due is None:
            # A controller that has just started does not read those of all jobs at once.
            expectations.group_due = now + GROUP_POLL * share_of(work.plan.identity.uid)
        if manifest is None or now < expectations.group_due:
            return True
        resource, metadata = resource_for(manifest["apiVersion"], manifest["kind"]), manifest["metadata"]
        serves = False
        try:
            found = await self._api.get(
                resource, metadata["name"], metadata["namespace"], codec=OBJECT, timeout=self._timeout
            )
            serves = found.metadata.deletion_timestamp is None and has_own_minimum(work.plan, found.raw)
        except KubeNotFound:
            pass
        except KubeForbidden:
            # An answer, too: a repetition before the next interval would be refused as well.
            expectations.group_due = self._clock.monotonic() + GROUP_POLL
            return True
        await self._cluster.verify()
        expectations.group_due = self._clock.monotonic() + GROUP_POLL
        expectations.note_group(deleting=not serves)
        return True

    async def _delete_group(self, manifest: Manifest, uid: str) -> None:
        """Delete the PodGroup, which another client has edited. A finalizer can keep it while pods name it."""
        log.warning("group.edited_by_another_client", name=manifest["metadata"]["name"])
        resource, metadata = resource_for(manifest["apiVersion"], manifest["kind"]), manifest["metadata"]
        self._cluster.guard()
        with suppress(KubeNotFound, KubeConflict):
            await self._api.delete(resource, metadata["name"], metadata["namespace"], uid=uid, timeout=self._timeout)

    async def find_anchor(self, plan: JobPlan, expectations: Expectations) -> None:
        """Read the uid of the job's anchor, or that there is none, into the expectations.

        Raises:
            KubeError: the cluster does not answer.
        """
        identity = plan.identity
        name = labels.anchor_name(identity.uid)
        with suppress(KubeNotFound):
            found = await self._api.get(CONFIG_MAP, name, identity.namespace, codec=OBJECT, timeout=self._timeout)
            _remember_anchor(expectations, found.metadata.uid)
        # The absence counts only if this cluster is the right one: another one has no anchor of the job.
        await self._cluster.verify()
        expectations.anchor_sought = True

    async def ensure_workload(self, work: Work, manifest: Manifest, key: Rank | None) -> Workload | None:
        """Create a Workload of the job. Returns None if the create is refused or still waits for its back-off.

        `key` is the first replica of a further Workload: what refuses it does not hold back the others.
        """
        if not self.refusals.is_due(work.expectations, key):
            return None
        try:
            found = await self._create_or_find(manifest, WORKLOAD_CODEC, work, key)
        except KubeError as error:
            self.refusals.note_error(work, key, error)
            return None
        except UnusableObject as unusable:
            self.refusals.note_unusable(work, key, unusable)
            return None
        work.expectations.accept(key)
        return found

    async def write_hosts(self, work: Work) -> bool:
        """Update the existing list of hosts to the plan's generation."""
        plan, expectations = work.plan, work.expectations
        assert plan.hosts is not None, "only a plan with hosts has the action WriteHosts"
        await self._cluster.verify()
        self._cluster.guard()
        patch = {"data": hosts_data(plan, plan.hosts)}
        await self._api.merge_patch(
            CONFIG_MAP, plan.hosts.name, plan.identity.namespace, patch=patch, timeout=self._timeout
        )
        reach(FaultPoint.HOSTS_WRITTEN)
        expectations.hosts_generation = plan.identity.generation
        expectations.revision += 1
        return True

    async def mark_anchor(self, work: Work, action: MarkAnchor) -> bool:
        identity = work.plan.identity
        patch = {"metadata": {"annotations": {labels.TERMINAL_PHASE: action.phase}}}
        # A missing anchor counts as marked, but not if another cluster has none.
        await self._cluster.verify()
        self._cluster.guard()
        with suppress(KubeNotFound):
            await self._api.merge_patch(
                CONFIG_MAP, labels.anchor_name(identity.uid), identity.namespace, patch=patch, timeout=self._timeout
            )
        reach(FaultPoint.ANCHOR_MARKED)
        # Only the first mark can change the next decision.
        work.expectations.revision += not work.expectations.anchor_marked
        work.expectations.anchor_marked = True
        return True

    async def create_pod(self, work: Work, action: CreatePod, anchor: str) -> bool:
        plan, expectations = work.plan, work.expectations
        if not self.refusals.is_due(expectations, action.key):
            # Not a failure: the reconciler queues the job again for `retry_at`.
            return True
        replica = plan.replicas[action.key]
        try:
            if replica.service is not None:
                await self._ensure(service_manifest(plan, replica.service, anchor), work, action.key)
                reach(FaultPoint.SERVICE_CREATED)
            manifest = pod_manifest(plan, replica, action.attempt, anchor, in_gang=action.in_gang)
            manifest = await self._admit(manifest, work.queueing, action.key)
            reach(FaultPoint.POD_BEFORE_CREATE)
            pod = await self._create_or_find(manifest, POD_CODEC, work, action.key)
            reach(FaultPoint.POD_CREATED)
        except KubeError as error:
            self.refusals.note_error(work, action.key, error)
            # The expectations hold the refusal and the time of the next try, so the action itself has not failed.
            return True
        except UnusableObject as unusable:
            self.refusals.note_unusable(work, action.key, unusable)
            return True
        expectations.accept(action.key)
        self._adopt(pod if work.queueing is None else await self._ungate(pod))
        return True

    async def _admit(self, pod: Manifest, queueing: Queueing | None, key: Rank) -> Manifest:
        """Return the pod as the admission of its job requires it."""
        if queueing is None:
            return pod
        admission = queueing.admission_of(key)
        assert admission is not None, "no pod is created without admission"
        admitted = with_admission(pod, admission, key.rank)
        return with_parent(admitted) if await self._captures.would_capture(admitted) else admitted

    async def _ungate(self, pod: Pod) -> Pod:
        """Return the pod without Kueue's gates; unchanged if that fails, so that its next reconcile removes them.

        One that Kueue has captured stays as it is. Its next reconcile replaces it.
        """
        metadata = pod.metadata
        if is_captured(pod):
            self._captures.note(metadata.namespace)
        if is_captured(pod) or not is_gated(pod):
            return pod
        self._cluster.guard()
        try:
            return await remove_gates(
                self._api, metadata.name, metadata.namespace, metadata.uid, request_seconds=self._timeout
            )
        except KubeError:
            return pod

    async def _create_or_find(self, manifest: Manifest, codec: Codec[C], work: Work, key: Rank | None) -> C:
        """Create the object, or read the one that an earlier create has made.

        Raises:
            UnusableObject: the cluster has changed the new object, or another object has its name.
        """
        resource = resource_for(manifest["apiVersion"], manifest["kind"])
        try:
            created = await self._create(manifest, codec, partial(work.expectations.warn, key))
        except KubeAlreadyExists:
            created = await self._find(resource, manifest, codec, work, key)
            # Another object may serve the job already, and its anchor owns all pods: it stays.
            if resource is not POD:
                return created
        message = altered_message(manifest, created)
        if message:
            raise self._remember_altered(work.expectations, key, manifest, created.metadata, message)
        return created

    async def _find(
        self, resource: KubeResource, manifest: Manifest, codec: Codec[C], work: Work, key: Rank | None
    ) -> C:
        """Read the object that has the name: the answer to its create was lost, or the controller died after it."""
        metadata = manifest["metadata"]
        found = await self._api.get(
            resource, metadata["name"], metadata["namespace"], codec=codec, timeout=self._timeout
        )
        before = work.expectations.altered.get(key)
        if before is not None and before.uid == found.metadata.uid:
            raise _changed_object(before)
        require_own(manifest, found.metadata, {*work.anchors, *work.expectations.anchors})
        return found

    def _remember_altered(
        self, expectations: Expectations, key: Rank | None, manifest: Manifest, created: Metadata, message: str
    ) -> UnusableObject:
        """Remember a new object that the cluster has changed, so that the next reconcile deletes it."""
        metrics.REFUSED.labels(PendingCode.CHANGED_BY_CLUSTER).inc()
        altered = AlteredObject(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            name=created.name,
            uid=created.uid,
            finalizers=created.finalizers,
            message=message,
        )
        expectations.altered[key] = altered
        expectations.revision += 1
        return _changed_object(altered)

    async def _ensure(self, manifest: Manifest, work: Work, key: Rank | None = None) -> Metadata:
        return (await self._create_or_find(manifest, OBJECT, work, key)).metadata

    async def _create(self, manifest: Manifest, codec: Codec[C], on_warning: Callable[[str], None]) -> C:
        async with self._limiter:
            # Both checks come after the wait for the limiter, which can take longer than the lease lasts.
            await self._cluster.verify()
            self._cluster.guard()
            return await self._api.create_as(manifest, codec, timeout=self._timeout, on_warning=on_warning)


def _changed_object(altered: AlteredObject) -> UnusableObject:
    return UnusableObject(RefusalVerdict.RETRY, PendingCode.CHANGED_BY_CLUSTER, altered.message)


def _require_own_minimum(plan: JobPlan, manifest: Manifest, created: Object) -> None:
    """Accept a PodGroup that was created again because of its minimum.

    Raises:
        UnusableObject: its minimum is another one again. Pods would wait in it, and be replaced, for ever.
    """
    if has_own_minimum(plan, created.raw):
        return
    metrics.REFUSED.labels(PendingCode.CHANGED_BY_CLUSTER).inc()
    raise UnusableObject(
        RefusalVerdict.RETRY,
        PendingCode.CHANGED_BY_CLUSTER,
        f"PodGroup {created.metadata.name} has the minimum {minimum_of(plan, created.raw)} instead of "
        f"{minimum_of(plan, manifest)}, also after jobgate has created it again: a mutating webhook or policy of the "
        "cluster, or another client, changes it. jobgate tries again",
    )


def _remember_anchor(expectations: Expectations, uid: str) -> None:
    if uid not in expectations.anchors:
        expectations.anchors.append(uid)
        expectations.revision += 1
