"""Keeps the logs of this process's share of the pods, until it is cancelled."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import structlog

from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.base.instruments import ComputedMetric, ValueSource, expose
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.retention import Retention
from app.domain.status.pods.log_keys import attempt_key
from app.k8s.api import KubeApi
from app.k8s.codec import POD as POD_CODEC
from app.k8s.codec import HasMetadata
from app.k8s.resources import POD
from app.k8s.watching.reflector import Reflector, ResourceSource
from app.k8s.watching.store import ReflectorStore
from app.log_store import LogStore
from app.loops.logs import metrics
from app.loops.logs.context import LogContext, UnwrittenText
from app.loops.logs.limits import LogLimits
from app.loops.logs.membership import Membership
from app.loops.logs.pod_logs import PodLogs
from app.loops.logs.slots import ReadSlots
from app.loops.logs.store_health import StoreHealth
from app.loops.logs.upkeep import Upkeep

log = structlog.get_logger(__name__)

_RETRY: Final = 5.0  # seconds before the logs of a pod are kept again after an unexpected error


class LogKeeper:
    """The role `logs`. Without `namespaces`, the pods of all namespaces are watched."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        store: LogStore,
        clock: Clock,
        *,
        installation: str,
        namespaces: Sequence[str],
        limits: LogLimits,
        retention: Retention,
    ) -> None:
        health = StoreHealth(store, installation)
        self._context = LogContext(
            api=api,
            db=db,
            clock=clock,
            installation=installation,
            limits=limits,
            retention=retention,
            store=health,
            slots=ReadSlots(limits.followed),
            unwritten=UnwrittenText(limits.memory, clock),
        )
        self._membership = Membership(
            db, seconds=limits.session, store_error=lambda: health.error, on_change=self._share_again
        )
        selector = f"{labels.INSTALLATION}={installation},{labels.JOB_UID}"
        self._stores = [ReflectorStore[Pod](_uid, self._note_change) for _ in namespaces or (None,)]
        self._reflectors = [
            Reflector(ResourceSource(api, POD, POD_CODEC, namespace=namespace, label_selector=selector), sink, clock)
            for namespace, sink in zip(namespaces or (None,), self._stores, strict=True)
        ]
        self._upkeep = Upkeep(self._context, store, self._membership, self._all_pods)
        self._logs: dict[str, PodLogs] = {}  # of the pods that this process follows, by uid
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._kept: set[str] = set()  # the uids of pods whose logs are final
        self._changed: set[str] = set()
        self._has_changed = asyncio.Event()

    async def run(self) -> None:
        """Keep logs until cancelled."""
        with expose(self._gauges()):
            async with TaskGroup() as group:
                for reflector in self._reflectors:
                    group.create_task(reflector.run())
                group.create_task(self._context.store.run())
                for reflector in self._reflectors:
                    await reflector.synced.wait()
                group.create_task(self._membership.run())
                group.create_task(self._upkeep.run())
                for _ in rounds():
                    await self._has_changed.wait()
                    self._has_changed.clear()
                    self._share(group)

    def _gauges(self) -> Mapping[ComputedMetric, ValueSource]:
        context = self._context
        return {
            metrics.FOLLOWED: lambda: {(): context.slots.reading},
            metrics.WAITING: lambda: {(): context.slots.waiting},
            metrics.UNWRITTEN: lambda: {(): context.unwritten.total},
            metrics.LAG: lambda: {(): context.unwritten.oldest},
            metrics.STORE_FAILING: lambda: {(): float(context.store.error is not None)},
        }

    def _all_pods(self) -> Iterator[Pod]:
        return chain.from_iterable(store.all() for store in self._stores)

    def _pod(self, uid: str) -> Pod | None:
        return next((pod for store in self._stores if (pod := store.get(uid)) is not None), None)

    def _note_change(self, uid: str) -> None:
        self._changed.add(uid)
        self._has_changed.set()

    def _share_again(self) -> None:
        """Note that other processes keep logs now, so that every pod can have another one."""
        self._changed.update(pod.metadata.uid for pod in self._all_pods())
        self._has_changed.set()

    def _share(self, group: TaskGroup) -> None:
        """Follow the changed pods that belong to this process, and leave the others."""
        changed, self._changed = self._changed, set()
        for uid in changed:
            pod = self._pod(uid)
            if pod is None:
                self._kept.discard(uid)
            elif not self._membership.owns(uid):
                self._leave(uid)
                continue
            elif uid not in self._logs and uid not in self._kept:
                self._follow(group, pod)
                continue
            if uid in self._logs:
                self._logs[uid].note_change()

    def _follow(self, group: TaskGroup, pod: Pod) -> None:
        uid, attempt = pod.metadata.uid, attempt_key(pod)
        if attempt is not None:
            self._logs[uid] = PodLogs(self._context, pod, attempt, lambda: self._pod(uid))
            self._tasks[uid] = group.create_task(self._keep(uid))

    def _leave(self, uid: str) -> None:
        """Stop following a pod that belongs to another process. What was not written is read again there."""
        self._kept.discard(uid)
        if self._logs.pop(uid, None) is not None:
            self._tasks.pop(uid).cancel()

    async def _keep(self, uid: str) -> None:
        logs = self._logs[uid]
        try:
            await logs.run()
        except Exception:
            # One pod must not end the followers of all others.
            log.exception("log_keeper.failed", pod=uid)
            await asyncio.sleep(_RETRY)
            self._note_change(uid)
        else:
            if self._pod(uid) is not None:
                self._kept.add(uid)
        finally:
            # Unless the pod has come back from another process meanwhile.
            if self._logs.get(uid) is logs:
                del self._logs[uid], self._tasks[uid]


def _uid(pod: HasMetadata) -> str:
    return pod.metadata.uid
