"""Kueue's objects in the cluster as reflectors keep them in memory: Workloads of jobs, queues and ResourceFlavors.

Reflectors follow them while the cluster serves Kueue's API. Before they are listed, no new job starts, because its
namespace may have a queue. Without the right to list them, jobs that name a queue wait, and all others run. Jobs do not
depend on ClusterQueues and Cohorts: only what users see of a queue does.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

import structlog
from msgspec.structs import replace
from typing_extensions import override

from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.domain.kubernetes import labels
from app.domain.kubernetes.queueing import ClusterQueue, Cohort, FlavorSpec, LocalQueue, ResourceFlavor, Workload
from app.domain.plan import JobIdentity, JobPlan
from app.domain.queueing.requests import DEFAULT_QUEUE
from app.domain.queueing.workload import job_uid_of, number_of
from app.domain.queueing.workload_status import observe_workload
from app.domain.status.observed import KueueState, ObservedQueue
from app.domain.status.pods.ownership import is_owned
from app.k8s import codec
from app.k8s.api import KubeApi
from app.k8s.codec import Codec, HasMetadata, ListPage
from app.k8s.errors import KubeError, KubeForbidden, summarize
from app.k8s.resources import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, RESOURCE_FLAVOR, WORKLOAD, KubeResource
from app.k8s.session.watch_events import WatchEvent
from app.k8s.watching.reflector import ObjectSink, ObjectSource, Reflector, ResourceSource
from app.k8s.watching.store import ReflectorStore, by_name
from app.loops.controller_settings import QueueMode
from app.loops.failure_log import FailureLog
from app.loops.jobs.kueue_api import KueueApi

log = structlog.get_logger(__name__)

DISCOVER_EVERY = 30.0  # seconds between two reads of whether the cluster serves Kueue
RETRY_EVERY = 1.0  # seconds between two reads while they fail
DENIED_FOR = 180.0  # seconds; a write that is denied is repeated at least every minute while it is needed
_OPTIONAL = (CLUSTER_QUEUE, COHORT)  # jobs do not depend on them

T = TypeVar("T", bound=HasMetadata)
V = TypeVar("V")


class _Source(ResourceSource[T]):
    """Logs why a list or watch fails, and reports when jobgate has no right to list. Both are repeated."""

    def __init__(
        self, api: KubeApi, resource: KubeResource, decoder: Codec[T], denied: Callable[[str], None], **where: Any
    ) -> None:
        super().__init__(api, resource, decoder, **where)
        self._kind = resource.kind
        self._denied = denied

    @override
    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        try:
            return await super().list_page(continue_token, limit)
        except KubeError as error:
            log.info("queues.list_failed", kind=self._kind, error=str(error))
            if isinstance(error, KubeForbidden):
                self._denied(f"the list of {self._kind}s: {summarize(error)}")
            raise

    @override
    async def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[T], None]:
        try:
            async with aclosing(super().watch(resource_version, timeout_seconds, idle, opened)) as events:
                async for event in events:
                    yield event
        except KubeError as error:
            log.info("queues.watch_failed", kind=self._kind, error=str(error))
            raise


class _WorkloadStore(ReflectorStore[Workload]):
    """The Workloads of jobs, also those that have lost the labels by which the watch finds them."""

    @override
    def deleted(self, obj: Workload) -> None:
        metadata = obj.metadata
        if labels.ADMISSION_FINALIZER not in metadata.finalizers or metadata.deletion_timestamp is not None:
            super().deleted(obj)
            return
        # What a finalizer holds is not deleted without a deletionTimestamp. So another client has removed its labels.
        self.applied(replace(obj, metadata=replace(metadata, labels={})))

    def drop(self, obj: Workload) -> None:
        """Remove a Workload that the watch does not report any more, because it has lost its labels."""
        super().deleted(obj)


class QueueMirror:
    """Follows Kueue's objects in the namespaces; without `namespaces`, in all.

    `on_change` gets the uid of the job in the name of each Workload that changes. `on_state` is called when the
    decision on any job can change: when the state changes, or a ResourceFlavor is added. `reflect` makes a reflector
    that does not use a list of another cluster.
    """

    def __init__(
        self,
        api: KubeApi,
        installation: str,
        clock: Clock,
        *,
        mode: QueueMode,
        namespaces: Sequence[str],
        reflect: Callable[[ObjectSource[Any], ObjectSink[Any]], Reflector[Any]],
        on_change: Callable[[str], None],
        on_state: Callable[[], None],
    ) -> None:
        self._mode = mode
        self._on_state = on_state
        self._kueue = KueueApi(api, clock, DISCOVER_EVERY / 2)
        self._clock = clock
        self._denied_until: dict[str, float] = {}  # monotonic time of the end of each denial, by namespace
        self._installation = installation
        self._workloads: dict[str | None, _WorkloadStore] = {}
        self._local_queues: dict[str | None, ReflectorStore[LocalQueue]] = {}
        self._cluster_queues: ReflectorStore[ClusterQueue] = ReflectorStore(by_name, _ignore)
        self._cohorts: ReflectorStore[Cohort] = ReflectorStore(by_name, _ignore)
        self._flavors: ReflectorStore[ResourceFlavor] = ReflectorStore(by_name, self._flavor_changed)
        self._flavor_specs: dict[str, FlavorSpec] = {}
        self._state = KueueState.ABSENT if mode is QueueMode.OFF else KueueState.UNKNOWN
        self._error = "JOBGATE_QUEUES is off" if mode is QueueMode.OFF else ""
        self.known = asyncio.Event()

        self._reflectors: list[tuple[KubeResource, Reflector[Any]]] = []

        def follow(resource: KubeResource, decoder: Codec[Any], sink: ObjectSink[Any], **where: Any) -> Reflector[Any]:
            denied = _ignore if resource in _OPTIONAL else self._deny
            source: ObjectSource[Any] = _Source(api, resource, decoder, denied, **where)
            self._reflectors.append((resource, reflect(source, sink)))
            return self._reflectors[-1][1]

        self._workload_reflectors: dict[str | None, Reflector[Workload]] = {}
        follow(CLUSTER_QUEUE, codec.CLUSTER_QUEUE, self._cluster_queues)
        self._cohort_reflector = follow(COHORT, codec.COHORT, self._cohorts)
        follow(RESOURCE_FLAVOR, codec.RESOURCE_FLAVOR, self._flavors)
        selector = f"{labels.INSTALLATION}={installation},{labels.JOB_UID}"
        for namespace in namespaces or (None,):
            workloads = _WorkloadStore(_by_job, on_change)
            local_queues: ReflectorStore[LocalQueue] = ReflectorStore(by_name, _ignore)
            self._workloads[namespace] = workloads
            self._local_queues[namespace] = local_queues
            self._workload_reflectors[namespace] = follow(
                WORKLOAD, codec.WORKLOAD, workloads, namespace=namespace, label_selector=selector
            )
            follow(LOCAL_QUEUE, codec.LOCAL_QUEUE, local_queues, namespace=namespace)

    async def run(self) -> None:
        """Follow the objects until cancelled, while the cluster serves them."""
        if self._mode is QueueMode.OFF:
            self.known.set()
            return
        for _ in rounds():
            await self._until_served()
            async with TaskGroup() as group:
                tasks = [group.create_task(reflector.run()) for _, reflector in self._reflectors]
                tasks.append(group.create_task(self._report_lists()))
                await self._until_gone()
                for task in tasks:
                    task.cancel()
            # Nobody reports the deletion of each object.
            for _, reflector in self._reflectors:
                reflector.forget()

    async def _report_lists(self) -> None:
        for resource, reflector in self._reflectors:
            if resource not in _OPTIONAL:
                await reflector.synced.wait()
        self._become(KueueState.LISTED)

    async def _until_served(self) -> None:
        failures = FailureLog()
        for _ in rounds():
            try:
                if await self._kueue.is_served():
                    break
            except KubeError as error:
                self._error = summarize(error)
                failures.note("queues.discovery_failed", error)
                await asyncio.sleep(RETRY_EVERY)
            else:
                self._become(KueueState.ABSENT, f"the cluster does not serve {WORKLOAD.api_version}")
                await asyncio.sleep(DISCOVER_EVERY)
        if self._state is KueueState.ABSENT:
            self._become(KueueState.UNKNOWN)

    async def _until_gone(self) -> None:
        served = True
        while served:
            # Beside the lists, which jobs wait for.
            await self._kueue.read_limits()
            await asyncio.sleep(DISCOVER_EVERY)
            with suppress(KubeError):
                served = await self._kueue.is_served()

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

    @property
    def state(self) -> KueueState:
        return self._state

    @property
    def message(self) -> str:
        """Why the state is not LISTED; if it is, what jobgate cannot read or write. Empty without a fault.

        It names no namespace, because readers of every namespace get it. The log has the names.
        """
        if self._state is not KueueState.LISTED:
            return self._error
        errors = {
            resource.kind: summarize(reflector.stats.last_error)
            for resource, reflector in self._reflectors
            if reflector.stats.last_error is not None and (resource is not COHORT or self._kueue.has_cohorts)
        }
        found = [f"jobgate cannot read {kind}s: {error}" for kind, error in errors.items()]
        if max(self._denied_until.values(), default=0.0) > self._clock.monotonic():
            found.append("jobgate cannot write Workloads: 403 Forbidden")
        return "; ".join(found)

    @property
    def last_contact(self) -> datetime | None:
        """The oldest time at which one of the copies was last known to be equal to the cluster; None without a list."""
        contacts = [
            reflector.last_contact
            for resource, reflector in self._reflectors
            if resource not in _OPTIONAL or reflector.synced.is_set()
        ]
        return None if None in contacts else min(filter(None, contacts))

    def local_queues(self) -> Iterator[LocalQueue]:
        return chain.from_iterable(store.all() for store in self._local_queues.values())

    def has_local_queue(self, namespace: str, name: str) -> bool:
        return _get_by_name(self._local_queues, namespace, name) is not None

    def cluster_queue(self, name: str) -> ClusterQueue | None:
        return self._cluster_queues.get_by_name("", name)

    def cluster_queues(self) -> Iterable[ClusterQueue]:
        return self._cluster_queues.all()

    def cohorts(self) -> Iterable[Cohort] | None:
        """Return the Cohorts; None if they cannot be read. A cluster without their API has no Cohorts."""
        is_known = self._cohort_reflector.synced.is_set() or not self._kueue.has_cohorts
        return self._cohorts.all() if is_known else None

    @property
    def most_pod_sets(self) -> int | None:
        """How many pod sets Kueue accepts in a Workload; None if that is not known."""
        return self._kueue.most_pod_sets

    def workloads(self) -> Iterator[Workload]:
        """Return the Workloads with the labels of this installation and of a job."""
        return chain.from_iterable(store.all() for store in self._workloads.values())

    def find(self, identity: JobIdentity) -> Mapping[int, Workload]:
        """Return the Workloads with names of the job, by their numbers. Only their owner proves that they are its."""
        store = _of_namespace(self._workloads, identity.namespace)
        named = store.get_by_index(identity.uid) if store is not None else []
        numbers = ((number_of(item.metadata.name, identity.uid), item) for item in named)
        return {
            number: item
            for number, item in numbers
            if number is not None and item.metadata.namespace == identity.namespace
        }

    def observe(self, plan: JobPlan, anchors: Collection[str]) -> ObservedQueue:
        """Return what is known of Kueue and of the Workloads of the job, whose anchor has had these uids."""
        identity = plan.identity
        usable = {DEFAULT_QUEUE, *([plan.queue.name] if plan.queue is not None else [])}
        return ObservedQueue(
            state=self._state,
            required=self._mode is QueueMode.ON,
            local_queues=frozenset(name for name in usable if self.has_local_queue(identity.namespace, name)),
            workloads={
                number: observe_workload(workload, self._flavor_specs, labelled=self._is_followed(workload))
                for number, workload in self.find(identity).items()
                if is_owned(workload.metadata, identity.uid, anchors)
            },
            error=self._error,
        )

    def adopt(self, workload: Workload) -> None:
        """Take in a Workload that a request returned, without waiting for the watch."""
        reflector = _of_namespace(self._workload_reflectors, workload.metadata.namespace)
        if reflector is not None:
            reflector.adopt(workload)

    def note_denied(self, namespace: str) -> None:
        """Show in `message`, for `DENIED_FOR` seconds, that the cluster denies a write to a Workload there."""
        self._denied_until[namespace] = self._clock.monotonic() + DENIED_FOR

    def note_written(self, namespace: str) -> None:
        """Show no denial of the namespace any more, because the cluster has accepted a write to a Workload of it."""
        self._denied_until.pop(namespace, None)

    def note_gone(self, namespace: str, name: str) -> None:
        """Remove the Workload of this name, which a request has not found, unless the watch reports its deletion."""
        store = _of_namespace(self._workloads, namespace)
        workload = None if store is None else store.get_by_name(namespace, name)
        if store is not None and workload is not None and not self._is_followed(workload):
            store.drop(workload)

    def _is_followed(self, workload: Workload) -> bool:
        """Return whether the watch finds the Workload by its labels."""
        found = workload.metadata.labels
        return found.get(labels.INSTALLATION) == self._installation and labels.JOB_UID in found

    def _flavor_changed(self, name: str) -> None:
        flavor = self._flavors.get_by_name("", name)
        if flavor is None:
            self._flavor_specs.pop(name, None)
            return
        is_new = name not in self._flavor_specs
        self._flavor_specs[name] = flavor.spec
        # A job may wait for a flavor that its admission names.
        if is_new and self._state is KueueState.LISTED:
            self._on_state()


def _by_job(workload: HasMetadata) -> str:
    # Another client may change the label of the job, and then the job would lose its Workload.
    return job_uid_of(workload.metadata.name)


def _of_namespace(found: Mapping[str | None, V], namespace: str) -> V | None:
    """Return what is kept of a namespace, alone or with all others."""
    return found.get(namespace, found.get(None))


def _get_by_name(stores: Mapping[str | None, ReflectorStore[T]], namespace: str, name: str) -> T | None:
    store = _of_namespace(stores, namespace)
    return None if store is None else store.get_by_name(namespace, name)


def _ignore(_change: str) -> None:
    """No job is reconciled: it reads its LocalQueue at the next occasion, and does not depend on the others."""
