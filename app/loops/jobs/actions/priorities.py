"""Reads the priorities of Workloads from the classes of the cluster."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from app.base.clock import Clock
from app.domain.kubernetes.objects import Object
from app.domain.plan import PriorityClassKind, PriorityClassRef
from app.domain.queueing.priorities import Priority, default_priority, priority_of
from app.domain.status.altered_objects import UnusableObject
from app.domain.status.observed import RefusalVerdict
from app.domain.vocabulary import PendingCode
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeError, KubeNotFound
from app.k8s.resources import PRIORITY_CLASS, WORKLOAD_PRIORITY_CLASS, KubeResource

DEFAULT_TTL: Final = 30.0  # seconds until another default class is noticed
_RESOURCES: Final[Mapping[PriorityClassKind, KubeResource]] = {
    PriorityClassKind.WORKLOAD: WORKLOAD_PRIORITY_CLASS,
    PriorityClassKind.POD: PRIORITY_CLASS,
}


class Priorities:
    """What the priority that a job requests stands for in the cluster; `timeout` is seconds for each request."""

    def __init__(self, api: KubeApi, clock: Clock, *, timeout: float) -> None:
        self._api = api
        self._clock = clock
        self._timeout = timeout
        self._default = Priority()
        self._default_until = 0.0
        self._listing = asyncio.Lock()
        self._failure: KubeError | None = None
        self._failed_at = float("-inf")

    async def find(self, requested: PriorityClassRef | int | None) -> Priority:
        """Return the priority of a job.

        Raises:
            UnusableObject: the cluster has no such class.
            KubeError: the cluster does not answer, or jobgate may not read its classes.
        """
        if isinstance(requested, int):
            return Priority(value=requested)
        if requested is None:
            return await self._find_default()
        try:
            found = await self._api.get(_RESOURCES[requested.kind], requested.name, codec=OBJECT, timeout=self._timeout)
        except KubeNotFound as error:
            message = f"the cluster has no {requested.kind.value} {requested.name}"
            raise UnusableObject(RefusalVerdict.RETRY, PendingCode.PRIORITY_CLASS_MISSING, message) from error
        return priority_of(requested, found.raw)

    async def _find_default(self) -> Priority:
        """Return the priority of jobs that request none. Those that wait at the same time share a list, or its failure.

        Raises:
            KubeError: the cluster does not answer, or jobgate may not list its classes.
        """
        began = self._clock.monotonic()
        async with self._listing:
            # One after the other, they would each wait for a cluster that does not answer.
            if self._failure is not None and began < self._failed_at:
                raise self._failure
            if self._default_until <= self._clock.monotonic():
                await self._list_default()
        return self._default

    async def _list_default(self) -> None:
        found: list[Object] = []
        try:
            # The embedded cluster does not serve them.
            with suppress(KubeNotFound):
                found = await self._api.list_all(PRIORITY_CLASS, codec=OBJECT)
        except KubeError as error:
            self._failure, self._failed_at = error, self._clock.monotonic()
            raise
        self._default = default_priority(priority_class.raw for priority_class in found)
        self._default_until = self._clock.monotonic() + DEFAULT_TTL
