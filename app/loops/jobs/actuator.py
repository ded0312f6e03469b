"""Carries out the actions of a decision on the cluster.

Every action may be repeated. What the cluster answers is kept in the job's expectations.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, unique
from functools import partial
from typing import TypeAlias

import msgspec
import structlog

from app.cancellation import TaskGroup
from app.db.errors import DatabaseUnavailable
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Pod
from app.domain.manifests.metadata import job_labels
from app.domain.reconcile.actions import (
    Action,
    CaptureEvidence,
    ConfirmGone,
    CreatePod,
    DeletePod,
    EnsureObjects,
    MarkAnchor,
    ReadEvents,
    ReleasePod,
    RemoveObjects,
    WriteHosts,
)
from app.domain.status.ownership import is_owned
from app.faultpoints import FaultPoint, reached
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeConflict, KubeError, KubeNotFound
from app.k8s.finalizers import release
from app.k8s.resources import CONFIG_MAP, POD, POD_GROUP, SERVICE, KubeResource
from app.loops import metrics
from app.loops.jobs.creator import Creator, Work
from app.loops.jobs.event_lists import PodEvents
from app.loops.jobs.event_reader import EventReader
from app.loops.jobs.evidence import EvidenceCapture, groups
from app.loops.jobs.mirror import Mirror
from app.loops.jobs.node_turns import NoTurn
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

# Calls to the API server at once: those of all jobs that act, as long as each may have the least number. They leave a
# third of the connections of a session for other requests.
CALLS = 64
LEAST_CALLS_PER_JOB = 10
# Seconds after which no further action of a decision begins. A cancel, or a pod that fails, is decided upon only after
# the actions that have begun.
SLICE = 2.0


@unique
class Performed(Enum):
    """How the actions of a decision went."""

    ALL = "all are done"
    LEFT = "the slice ended before some began, or a node is busy: reconcile again at once"
    FAILED = "one failed: reconcile again later"


Call: TypeAlias = Callable[[], Awaitable[Performed]]


def calls_per_job(acting: int) -> int:
    """Return how many calls each job may have at once while this number of jobs act."""
    return max(LEAST_CALLS_PER_JOB, CALLS // acting)


class _Slice:
    """Runs the calls that begin before its time is over, `at_once` at once, and keeps their common result."""

    def __init__(self, at_once: int) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._over = asyncio.Event()
        self.result = Performed.ALL

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Let no call begin after SLICE seconds in the block."""
        timer = asyncio.get_running_loop().call_later(SLICE, self._over.set)
        try:
            yield
        finally:
            timer.cancel()

    async def run(self, call: Call, *, always: bool = False) -> None:
        """Carry out the call, unless the time is over. With `always`, carry it out in any case."""
        async with self._slots:
            self.add(Performed.LEFT if self._over.is_set() and not always else await call())

    def add(self, performed: Performed) -> None:
        """Add a result to the common one."""
        # A failure has a back-off, after which the actions that are left are computed again too.
        self.result = max(self.result, performed, key=list(Performed).index)


class Actuator:
    """Carries out actions. `timeout` is seconds for each request; no request starts that could outlive the lease."""

    def __init__(
        self,
        api: KubeApi,
        leadership: Leadership,
        creator: Creator,
        evidence: EvidenceCapture,
        event_reader: EventReader,
        mirror: Mirror,
        *,
        verify: Callable[[], Awaitable[None]],
        timeout: float,
    ) -> None:
        self._api = api
        self._leadership = leadership
        self._creator = creator
        self._evidence = evidence
        self._event_reader = event_reader
        self._mirror = mirror
        self._verify = verify
        self._timeout = timeout
        self._acting = 0  # jobs whose actions are carried out

    async def perform(self, work: Work) -> Performed:
        """Carry out the actions that begin within SLICE seconds."""
        self._acting += 1
        try:
            # Jobs that begin or end to act change the share of this one from its next reconcile on.
            return await self._perform(work, _Slice(calls_per_job(self._acting)))
        finally:
            self._acting -= 1

    async def _perform(self, work: Work, begun: "_Slice") -> Performed:
        actions = list(work.actions)
        anchor: str | None = None
        if any(isinstance(action, EnsureObjects) for action in actions):
            anchor = await self._creator.ensure_objects(work)
            if anchor is None:
                # Without the anchor, a pod would have no owner. The expectations hold the time of its next try.
                actions = [action for action in actions if not isinstance(action, (CreatePod, WriteHosts))]
        # The list of hosts is written before the pods are created, so that a new pod finds itself in the list.
        write_hosts = partial(self._creator.write_hosts, work)
        for action in actions:
            if isinstance(action, WriteHosts):
                await begun.run(partial(self._try, action, write_hosts))
        with begun.timed():
            async with TaskGroup() as group:
                group.create_task(self._capture(work, begun))
                for action in actions:
                    call = self._call(work, action, anchor)
                    if call is not None:
                        group.create_task(begun.run(partial(self._try, action, call)))
        return begun.result

    async def _capture(self, work: Work, begun: "_Slice") -> None:
        captures = [action for action in work.actions if isinstance(action, CaptureEvidence)]
        if not captures:
            return
        first, *others = groups(captures)
        async with TaskGroup() as group:
            events = group.create_task(self._evidence.events(work.plan.identity, captures))
            # In any case: to wait for the Events can take longer than the slice. The logs are read meanwhile.
            await begun.run(partial(self._try_to_capture, work, first, events), always=True)
        # The list of Events serves all groups. If the others were left, each of them would wait for another list.
        after = _Slice(1)
        with after.timed():
            for attempts in others:
                await after.run(partial(self._try_to_capture, work, attempts, events))
        begun.add(after.result)

    async def _try(self, action: Action, call: Callable[[], Awaitable[bool]]) -> Performed:
        """Carry out one action. The call returns False if it must be repeated even though nothing has changed."""
        name = type(action).__name__
        try:
            with metrics.ACTION_DURATION.labels(name).time():
                done = await call()
        except (KubeError, DatabaseUnavailable) as error:
            log.warning("action.failed", action=name, error=str(error))
            metrics.ACTIONS.labels(name, "failed").inc()
            return Performed.FAILED
        metrics.ACTIONS.labels(name, "done" if done else "again").inc()
        return Performed.ALL if done else Performed.FAILED

    async def _try_to_capture(
        self, work: Work, captures: Sequence[CaptureEvidence], events: Awaitable[PodEvents]
    ) -> Performed:
        """Capture the evidence of several attempts. An attempt whose node is busy is left, which is no failure."""
        name = CaptureEvidence.__name__
        failures: Sequence[Exception]
        try:
            with metrics.ACTION_DURATION.labels(name).time():
                failures = await self._evidence.capture(work.plan.identity, captures, work.expectations, events)
        except DatabaseUnavailable as error:
            failures = [error] * len(captures)
        left = sum(isinstance(failure, NoTurn) for failure in failures)
        for failure in failures:
            if not isinstance(failure, NoTurn):
                log.warning("action.failed", action=name, error=str(failure))
        metrics.ACTIONS.labels(name, "failed").inc(len(failures) - left)
        metrics.ACTIONS.labels(name, "again").inc(left)
        metrics.ACTIONS.labels(name, "done").inc(len(captures) - len(failures))
        if len(failures) > left:
            return Performed.FAILED
        return Performed.LEFT if left else Performed.ALL

    def _call(self, work: Work, action: Action, anchor: str | None) -> Callable[[], Awaitable[bool]] | None:
        match action:
            case CreatePod():
                return partial(self._creator.create_pod, work, action, anchor) if anchor is not None else None
            case DeletePod():
                return partial(self._delete_pod, work, action)
            case ReleasePod():
                return partial(self._release_pod, work, action)
            case ConfirmGone():
                return partial(self._confirm_gone, work, action)
            case ReadEvents():
                # Not awaited: reading Events must not delay the other actions of the job.
                self._event_reader.request(work.plan.identity, action, work.expectations)
                return None
            case MarkAnchor():
                return partial(self._mark_anchor, work, action)
            case RemoveObjects():
                return partial(self._remove_objects, work)
            case EnsureObjects() | WriteHosts() | CaptureEvidence():
                return None

    async def _delete_pod(self, work: Work, action: DeletePod) -> bool:
        reached(FaultPoint.POD_BEFORE_DELETE)
        self._leadership.guard(self._timeout)
        # The pod is gone, or a later pod has its name, which the uid protects.
        with suppress(KubeNotFound, KubeConflict):
            answer = await self._api.delete(
                POD,
                action.name,
                work.plan.identity.namespace,
                uid=action.uid,
                # The kubelet of a lost node cannot confirm the end of the pod, so the pod would stay.
                grace_period=0 if action.force else None,
                timeout=self._timeout,
            )
            self._adopt_deleting(POD_CODEC.decode(answer), action.uid)
        reached(FaultPoint.POD_DELETED)
        return True

    def _adopt_deleting(self, pod: Pod, uid: str) -> None:
        """Let the mirror know that a pod terminates, so that a reconcile before the watch does not delete it again."""
        metadata = pod.metadata
        # With the finalizer, the object existed after the delete. If it is gone since, the watch has said so, and the
        # reflector refuses it.
        if metadata.uid == uid and metadata.deletion_timestamp and labels.EVIDENCE_FINALIZER in metadata.finalizers:
            self._mirror.adopt(pod)

    async def _release_pod(self, work: Work, action: ReleasePod) -> bool:
        """Remove jobgate's finalizer from the pod and keep all others.

        A concurrent change of the pod does not matter.
        """
        namespace = work.plan.identity.namespace
        known = self._mirror.pod(action.uid)
        # The patch tests the uid and the finalizer, so an outdated state of the pod makes it fail without effect.
        if known is not None and await self._without_finalizer(known):
            reached(FaultPoint.POD_RELEASED)
            return True
        with suppress(KubeNotFound):
            pod = await self._api.get(POD, action.name, namespace, codec=POD_CODEC, timeout=self._timeout)
            # A pod of the next attempt may have the same name. Its finalizer must stay.
            if pod.metadata.uid != action.uid:
                return True
            if not await self._without_finalizer(pod):
                return False
        reached(FaultPoint.POD_RELEASED)
        return True

    async def _without_finalizer(self, pod: Pod) -> bool:
        self._leadership.guard(self._timeout)
        finalizer = labels.EVIDENCE_FINALIZER
        return await release(self._api, POD, pod.metadata, finalizer, request_seconds=self._timeout)

    async def _confirm_gone(self, work: Work, action: ConfirmGone) -> bool:
        pod: Pod | None
        try:
            pod = await self._api.get(
                POD, action.name, work.plan.identity.namespace, codec=POD_CODEC, timeout=self._timeout
            )
        except KubeNotFound:
            pod = None
        # Another cluster would also answer that there is no such pod.
        await self._verify()
        # The pod exists although the mirror does not have it: a client has removed its labels, or the watch is late.
        if pod is not None and pod.metadata.uid == action.uid:
            self._mirror.adopt(await self._labelled(work, pod))
        else:
            work.expectations.gone.add(action.uid)
            work.expectations.revision += 1
        return True

    async def _labelled(self, work: Work, pod: Pod) -> Pod:
        """Restore the job's labels if another client removed them. The mirror finds the pod by these labels."""
        identity = work.plan.identity
        wanted = job_labels(identity)
        if pod.metadata.labels.items() >= wanted.items():
            return pod
        log.warning("pod.labels_put_back", pod=pod.metadata.name)
        # The uid makes the API server refuse the patch if a later pod has the name.
        patch = {"metadata": {"uid": pod.metadata.uid, "labels": wanted}}
        self._leadership.guard(self._timeout)
        patched = await self._api.merge_patch(
            POD, pod.metadata.name, identity.namespace, patch=patch, timeout=self._timeout
        )
        return POD_CODEC.decode(msgspec.json.encode(patched.raw))

    async def _mark_anchor(self, work: Work, action: MarkAnchor) -> bool:
        identity = work.plan.identity
        patch = {"metadata": {"annotations": {labels.TERMINAL_PHASE: action.phase}}}
        # A missing anchor counts as marked, but not if another cluster has none.
        await self._verify()
        self._leadership.guard(self._timeout)
        with suppress(KubeNotFound):
            await self._api.merge_patch(
                CONFIG_MAP, labels.anchor_name(identity.uid), identity.namespace, patch=patch, timeout=self._timeout
            )
        reached(FaultPoint.ANCHOR_MARKED)
        # Only the first mark can change the next decision.
        work.expectations.revision += not work.expectations.anchor_marked
        work.expectations.anchor_marked = True
        return True

    async def _remove_objects(self, work: Work) -> bool:
        """Delete the objects of the job. Returns True once none is left.

        An object with the job's labels that its anchor does not control belongs to another client, and stays.
        """
        identity = work.plan.identity
        selector = f"{labels.INSTALLATION}={identity.installation},{labels.JOB_UID}={identity.uid}"
        resources = [SERVICE, CONFIG_MAP]
        if work.plan.gang is not None and await self._creator.has_gang_api():
            resources.insert(0, POD_GROUP)
        listed = [
            (resource, item)
            for resource in resources
            for item in await self._api.list_all(resource, identity.namespace, codec=OBJECT, label_selector=selector)
        ]
        anchor = labels.anchor_name(identity.uid)
        anchors = {item.metadata.uid for resource, item in listed if _is_anchor(resource, item.metadata, anchor)}
        # The anchor itself may be gone already. Its recorded uids still identify the objects that it controlled.
        anchors |= {*work.anchors, *work.expectations.anchors}
        found = 0
        for resource, item in listed:
            if _is_anchor(resource, item.metadata, anchor) or is_owned(item.metadata, identity.uid, anchors):
                # An object that is deleted now still counts, because a finalizer may hold it. The action is repeated
                # until none is found.
                found += 1
                self._leadership.guard(self._timeout)
                with suppress(KubeNotFound, KubeConflict):
                    await self._api.delete(
                        resource,
                        item.metadata.name,
                        identity.namespace,
                        uid=item.metadata.uid,
                        timeout=self._timeout,
                    )
        # The empty lists of another cluster do not mean that nothing is left.
        await self._verify()
        reached(FaultPoint.OBJECTS_REMOVED)
        work.expectations.objects_gone = not found
        work.expectations.revision += not found
        return not found


def _is_anchor(resource: KubeResource, metadata: Metadata, anchor: str) -> bool:
    return resource is CONFIG_MAP and metadata.name == anchor
