"""Kueue's objects in the cluster as reflectors keep them in memory: Workloads of jobs, LocalQueues and ResourceFlavors.

They are followed once the cluster serves Kueue's API. Before they are listed, no new job starts, because its namespace
may have a queue. Without the right to list them, jobs that name a queue wait, and all others run.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Generic, TypeVar

from typing_extensions import override

from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.domain.kubernetes import labels
from app.domain.kubernetes.queueing import FlavorSpec, LocalQueue, ResourceFlavor, Workload
from app.domain.plan import JobIdentity
from app.domain.queueing.admission import observe_workload
from app.domain.status.observed import KueueState, ObservedQueue
from app.domain.status.pods.ownership import is_owned
from app.k8s import codec
from app.k8s.api import KubeApi
from app.k8s.codec import Codec, HasMetadata, ListPage
from app.k8s.errors import KubeError, KubeForbidden
from app.k8s.resources import LOCAL_QUEUE, RESOURCE_FLAVOR, WORKLOAD, Discovery, KubeResource
from app.k8s.watching.reflector import ObjectSource, Reflector, ResourceSource
from app.loops.controller_settings import QueueMode

DISCOVER_EVERY = 30.0  # seconds between two reads of whether the cluster serves Kueue
ASK_AGAIN = 1.0  # seconds after a read that failed

T = TypeVar("T", bound=HasMetadata)


class NamedStore(Generic[T]):
    """A sink of a reflector with the objects by namespace and name. `on_change` gets each that changed."""

    def __init__(self, on_change: Callable[[T], None]) -> None:
        self._on_change = on_change
        self.objects: dict[tuple[str, str], T] = {}

    def replaced(self, objects: Sequence[T]) -> None:
        before, self.objects = self.objects, {_key(obj): obj for obj in objects}
        self._tell(obj for key, obj in before.items() if key not in self.objects)
        self._tell(obj for key, obj in self.objects.items() if key not in before or _differs(before[key], obj))

    def applied(self, obj: T) -> None:
        self.objects[_key(obj)] = obj
        self._on_change(obj)

    def deleted(self, obj: T) -> None:
        known = self.objects.get(_key(obj))
        # A later object may have the name already.
        if known is not None and known.metadata.uid == obj.metadata.uid:
            del self.objects[_key(obj)]
            self._on_change(obj)

    def _tell(self, objects: Iterable[T]) -> None:
        for obj in objects:
            self._on_change(obj)


def _key(obj: HasMetadata) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def _differs(before: HasMetadata, after: HasMetadata) -> bool:
    return (before.metadata.uid, before.metadata.version) != (after.metadata.uid, after.metadata.version)


class _Source(ResourceSource[T]):
    """Reports when jobgate has no right to list the objects. The list is repeated with back-off."""

    def __init__(
        self, api: KubeApi, resource: KubeResource, decoder: Codec[T], denied: Callable[[str], None], **where: Any
    ) -> None:
        super().__init__(api, resource, decoder, **where)
        self._denied = denied

    @override
    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        try:
            return await super().list_page(continue_token, limit)
        except KubeForbidden as error:
            self._denied(error.message)
            raise


class QueueMirror:
    """Follows Kueue's objects in the namespaces. `on_change` gets the uid of a job whose Workload has changed.

    `on_state` is called when the state changes, which can change the decision on any job. `guard` makes a source that
    believes no list of another cluster.
    """

    def __init__(
        self,
        api: KubeApi,
        installation: str,
        clock: Clock,
        *,
        mode: QueueMode,
        namespaces: Sequence[str],
        guard: "Callable[[ObjectSource[Any]], ObjectSource[Any]]",
        on_change: Callable[[str], None],
        on_state: Callable[[], None],
    ) -> None:
        self._mode = mode
        self._on_change = on_change
        self._on_state = on_state
        self._discovery = Discovery(api.get_raw, clock, DISCOVER_EVERY / 2)
        self._workloads: dict[str | None, NamedStore[Workload]] = {}
        self._queue_names: dict[str, frozenset[str]] = {}
        self._queues: dict[str | None, NamedStore[LocalQueue]] = {}
        self._flavors: NamedStore[ResourceFlavor] = NamedStore(self._flavor_changed)
        self._flavor_specs: dict[str, FlavorSpec] = {}
        self._state = KueueState.ABSENT if mode is QueueMode.OFF else KueueState.UNKNOWN
        self._error = ""
        self.known = asyncio.Event()

        def reflector(
            resource: KubeResource, decoder: Codec[Any], sink: NamedStore[Any], **where: Any
        ) -> Reflector[Any]:
            source: ObjectSource[Any] = _Source(api, resource, decoder, self._deny, **where)
            return Reflector(guard(source), sink, clock)

        self._workload_reflectors: dict[str | None, Reflector[Workload]] = {}
        self._reflectors = [reflector(RESOURCE_FLAVOR, codec.RESOURCE_FLAVOR, self._flavors)]
        selector = f"{labels.INSTALLATION}={installation},{labels.JOB_UID}"
        for namespace in namespaces or (None,):
            workloads: NamedStore[Workload] = NamedStore(self._workload_changed)
            queues: NamedStore[LocalQueue] = NamedStore(self._queue_changed)
            followed = reflector(WORKLOAD, codec.WORKLOAD, workloads, namespace=namespace, label_selector=selector)
            self._workloads[namespace] = workloads
            self._queues[namespace] = queues
            self._workload_reflectors[namespace] = followed
            self._reflectors += [followed, reflector(LOCAL_QUEUE, codec.LOCAL_QUEUE, queues, namespace=namespace)]

    async def run(self) -> None:
        """Follow the objects until cancelled, once the cluster serves them."""
        if self._mode is QueueMode.OFF:
            self.known.set()
            return
        await self._until_served()
        async with TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())
            for reflector in self._reflectors:
                await reflector.synced.wait()
            self._become(KueueState.LISTED)

    async def _until_served(self) -> None:
        for _ in rounds():
            try:
                if await self._discovery.has(WORKLOAD):
                    break
            except KubeError as error:
                self._error = str(error)
                await asyncio.sleep(ASK_AGAIN)
            else:
                self._become(KueueState.ABSENT)
                await asyncio.sleep(DISCOVER_EVERY)
        if self._state is KueueState.ABSENT:
            self._become(KueueState.UNKNOWN)

    def _become(self, state: KueueState, error: str = "") -> None:
        self._error = error
        if state is self._state:
            return
        self._state = state
        if state is not KueueState.UNKNOWN:
            self.known.set()
        self._on_state()

    def _deny(self, message: str) -> None:
        if self._state is not KueueState.LISTED:
            self._become(KueueState.DENIED, message)

    def find(self, identity: JobIdentity) -> Workload | None:
        """Return the Workload with the name of that of the job. Only its owner proves that it belongs to the job."""
        key = identity.namespace, labels.anchor_name(identity.uid)
        return next((found for store in self._workloads.values() if (found := store.objects.get(key))), None)

    def observe(self, identity: JobIdentity, anchors: Collection[str]) -> ObservedQueue:
        """Return what is known of Kueue and of the Workload of the job, whose anchor has had these uids."""
        found = self.find(identity)
        owned = found is not None and is_owned(found.metadata, identity.uid, anchors)
        return ObservedQueue(
            state=self._state,
            required=self._mode is QueueMode.ON,
            local_queues=self._queue_names.get(identity.namespace, frozenset()),
            workload=observe_workload(found, self._flavor_specs) if found is not None and owned else None,
            error=self._error,
        )

    def adopt(self, workload: Workload) -> None:
        """Take in a Workload that a request returned, without waiting for the watch."""
        reflectors = self._workload_reflectors
        reflector = reflectors.get(workload.metadata.namespace) or reflectors.get(None)
        if reflector is not None:
            reflector.offer(workload)

    def _workload_changed(self, workload: Workload) -> None:
        self._on_change(workload.metadata.labels.get(labels.JOB_UID, ""))

    def _queue_changed(self, queue: LocalQueue) -> None:
        namespace = queue.metadata.namespace
        store = self._queues.get(namespace) or self._queues[None]
        self._queue_names[namespace] = frozenset(name for where, name in store.objects if where == namespace)

    def _flavor_changed(self, _flavor: ResourceFlavor) -> None:
        known = len(self._flavor_specs)
        self._flavor_specs = {name: obj.spec for (_, name), obj in self._flavors.objects.items()}
        # A job may wait for a flavor that its admission names.
        if len(self._flavor_specs) > known and self._state is KueueState.LISTED:
            self._on_state()
