"""The pods and nodes of the cluster as reflectors keep them in memory, and the observation of one job."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import chain
from typing import Any, Generic, TypeVar

from typing_extensions import override

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Node, Pod
from app.domain.plan import JobPlan
from app.domain.status.observed import ObservedJob
from app.domain.status.pods.ownership import select_pods
from app.domain.status.records import Recorded
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.codec import POD as POD_CODEC
from app.k8s.codec import HasMetadata, ListPage
from app.k8s.errors import KubeError, KubeForbidden
from app.k8s.resources import NODE, POD
from app.k8s.session.watch_events import WatchEvent
from app.k8s.watching.reflector import ObjectSource, Pace, Reflector, ResourceSource
from app.k8s.watching.store import ReflectorStore, by_label
from app.loops.jobs.expectations import Expectations
from app.loops.jobs.queues import QueueMirror

T = TypeVar("T", bound=HasMetadata)


class GuardedSource(Generic[T]):
    """A source that uses a list only if `verify` succeeds after it. `doubt` is called when a watch ends.

    A list replaces the mirror. Without this check, the list of another cluster behind the same address would make every
    pod seem gone.
    """

    def __init__(
        self, source: ObjectSource[T], verify: Callable[[], Awaitable[None]], doubt: Callable[[], None]
    ) -> None:
        self._source = source
        self._verify = verify
        self._doubt = doubt

    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        page = await self._source.list_page(continue_token, limit)
        await self._verify()
        return page

    async def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[T], None]:
        try:
            async with aclosing(self._source.watch(resource_version, timeout_seconds, idle, opened)) as events:
                async for event in events:
                    yield event
        finally:
            self._doubt()


class NodeSource(ResourceSource[Node]):
    """The nodes of the cluster. Without the RBAC right to list nodes it is empty, and no node is considered lost."""

    @override
    async def list_page(self, continue_token: str, limit: int) -> ListPage[Node]:
        try:
            return await super().list_page(continue_token, limit)
        except KubeForbidden:
            # The watch that follows is refused too, and the list is repeated with back-off. So a right that is granted
            # later is noticed.
            return ListPage(items=(), resource_version="0")


class Nodes:
    """A sink that tracks which nodes are Ready.

    `on_change` is called with the name of a node that becomes (not) Ready.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._ready: dict[str, bool] = {}
        self._on_change = on_change

    def is_lost(self, name: str) -> bool:
        """Return whether the node is NotReady or gone. Always False if nodes cannot be read."""
        return bool(name and self._ready) and not self._ready.get(name, False)

    def replaced(self, objects: Sequence[Node]) -> None:
        before, self._ready = self._ready, {node.metadata.name: node.ready for node in objects}
        for name in before.keys() | self._ready.keys():
            if before.get(name) != self._ready.get(name):
                self._on_change(name)

    def applied(self, obj: Node) -> None:
        if self._ready.get(obj.metadata.name) != obj.ready:
            self._ready[obj.metadata.name] = obj.ready
            self._on_change(obj.metadata.name)

    def deleted(self, obj: Node) -> None:
        if self._ready.pop(obj.metadata.name, None) is not None:
            self._on_change(obj.metadata.name)


class Mirror:
    """The pods of this installation and all nodes.

    `queues` has the Workloads of its jobs. `guard` wraps a source so that a list of another cluster is not used.
    `on_change` gets the uid of each job when one of its pods, or a node of one of its pods, changes. Without
    `namespaces`, pods of all namespaces are watched.
    """

    def __init__(
        self,
        api: KubeApi,
        installation: str,
        clock: Clock,
        *,
        namespaces: Sequence[str],
        pace: Pace,
        guard: Callable[[ObjectSource[Any]], ObjectSource[Any]],
        on_change: Callable[[str], None],
        queues: QueueMirror,
    ) -> None:
        self._on_change = on_change
        self._queues = queues
        self._nodes = Nodes(self._node_changed)
        self._stores: dict[str | None, ReflectorStore[Pod]] = {}
        self._pod_reflectors: dict[str | None, Reflector[Pod]] = {}
        # The label of the job excludes pods of this installation without a job, such as runtime servers.
        selector = f"{labels.INSTALLATION}={installation},{labels.JOB_UID}"
        for namespace in namespaces or (None,):
            source = ResourceSource(api, POD, POD_CODEC, namespace=namespace, label_selector=selector)
            self._stores[namespace] = ReflectorStore(by_label(labels.JOB_UID), self._job_changed)
            self._pod_reflectors[namespace] = Reflector(guard(source), self._stores[namespace], clock, pace=pace)
        self._node_reflector = Reflector(NodeSource(api, NODE, NODE_CODEC), self._nodes, clock, pace=pace)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with TaskGroup() as group:
            for reflector in self._pod_reflectors.values():
                group.create_task(reflector.run())
            group.create_task(self._node_reflector.run())

    async def wait_synced(self) -> None:
        """Wait for the first list of every resource. Before that, a missing pod proves nothing."""
        for synced in (*(reflector.synced for reflector in self._pod_reflectors.values()), self._node_reflector.synced):
            await synced.wait()

    @property
    def last_contact(self) -> datetime | None:
        """The oldest of the last contacts with each watched namespace. A bookmark counts as contact."""
        contacts = [reflector.last_contact for reflector in self._pod_reflectors.values()]
        return None if None in contacts else min(filter(None, contacts))

    @property
    def listed_at(self) -> datetime | None:
        """The oldest of the last lists of pods of each watched namespace."""
        listed = [reflector.listed_at for reflector in self._pod_reflectors.values()]
        return None if None in listed else min(filter(None, listed))

    @property
    def size(self) -> int:
        """The number of pods."""
        return sum(len(store) for store in self._stores.values())

    @property
    def last_error(self) -> KubeError | None:
        """An error of a list or watch of pods after which the server has not answered; None if there is none."""
        errors = (reflector.stats.last_error for reflector in self._pod_reflectors.values())
        return next(filter(None, errors), None)

    @property
    def relists(self) -> int:
        """The number of lists of pods since the start."""
        return sum(reflector.stats.relists for reflector in self._pod_reflectors.values())

    def pods(self) -> Iterator[Pod]:
        """All pods of this installation that belong to a job."""
        return chain.from_iterable(store.all() for store in self._stores.values())

    def count(self, uid: str) -> int:
        """Return how many pods have the label of the job with this uid."""
        return sum(store.count(uid) for store in self._stores.values())

    def adopt(self, pod: Pod) -> None:
        """Take in a pod that a create or a read returned, without waiting for the watch."""
        reflector = self._pod_reflectors.get(pod.metadata.namespace) or self._pod_reflectors.get(None)
        if reflector is not None:
            reflector.adopt(pod)

    def pod(self, uid: str) -> Pod | None:
        """Return the pod with this uid, or None if the mirror has none."""
        return next((pod for store in self._stores.values() if (pod := store.get(uid)) is not None), None)

    def observe(self, plan: JobPlan, recorded: Recorded, expectations: Expectations) -> ObservedJob | None:
        """Return the observation, or None if it depends on the uid of the job's anchor, which is not known."""
        pods = self._pods_of(plan.identity.uid, expectations)
        lost = frozenset(pod.spec.node_name for pod in pods if self._nodes.is_lost(pod.spec.node_name))
        anchors = _anchors(recorded, expectations)
        selection = select_pods(pods, plan, recorded, anchors, lost_nodes=lost)
        if selection.undecided or (anchors is None and self._queues.find(plan.identity)):
            return None
        return ObservedJob(
            pods=selection.pods,
            gone=frozenset(expectations.gone),
            refusals=dict(expectations.refusals),
            job_refusal=expectations.job_refusal,
            lost_nodes=lost,
            pending_events=dict(expectations.pending_events),
            objects_gone=expectations.objects_gone,
            anchor_marked=expectations.anchor_marked,
            hosts_generation=expectations.hosts_generation,
            anchors=tuple(expectations.anchors),
            group_deleting=expectations.group_deleting,
            warnings=tuple(expectations.warnings),
            queue=self._queues.observe(plan, anchors or ()),
            altered=tuple(pod for pod in expectations.altered.values() if not pod.removed),
        )

    def _pods_of(self, uid: str, expectations: Expectations) -> list[Pod]:
        """Return the pods with the label of the job, and those that have lost it, without those to be discarded."""
        pods = {pod.metadata.uid: pod for store in self._stores.values() for pod in store.get_by_index(uid)}
        pods |= {pod_uid: pod for pod_uid in expectations.unfollowed if (pod := self.pod(pod_uid)) is not None}
        for altered in expectations.altered.values():
            pods.pop(altered.uid, None)
        return list(pods.values())

    def _node_changed(self, name: str) -> None:
        for uid in {pod.metadata.labels.get(labels.JOB_UID, "") for pod in self.pods() if pod.spec.node_name == name}:
            self._job_changed(uid)

    def _job_changed(self, uid: str) -> None:
        # Every client that can create pods can set the label. A value that is no uid would end the term in the queue.
        if labels.is_job_uid(uid):
            self._on_change(uid)


def _anchors(recorded: Recorded, expectations: Expectations) -> Collection[str] | None:
    """Return the known uids of the job's anchor, or None if none is recorded and the cluster was not queried."""
    known = {*recorded.status.anchors, *expectations.anchors}
    return known if known or expectations.anchor_sought else None
