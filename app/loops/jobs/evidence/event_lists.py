"""Lists the Events of pods: one list at a time for each namespace, which answers every request that waited for it.

The API server reads all Events of a namespace from etcd for each list, whatever its selector. The Events of a thousand
pods, read one by one, therefore cost it a thousand times as much as one list of all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

from app.base.clock import Clock
from app.domain.kubernetes.objects import Event
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError
from app.k8s.events import newest_events, newest_events_of
from app.loops import metrics

log = structlog.get_logger(__name__)

CALL_TIMEOUT = 5.0  # seconds for each page
MAX_EVENTS = 50  # of each pod
ONE_BY_ONE = 3  # pods; for more of them, the Events of the whole namespace cost less
MOST_PAUSE = 2.0  # seconds

PodEvents: TypeAlias = Mapping[str, Sequence[Event]]
"""The newest Events of pods by uid, the last one last."""


@dataclass(slots=True)
class _Batch:
    uids: set[str] = field(default_factory=set)
    is_done: bool = False
    events: PodEvents | None = None


@dataclass(slots=True)
class _Namespace:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next: _Batch = field(default_factory=_Batch)
    paused_until: float = 0.0


class EventLists:
    """Lists Events for all loops of a controller.

    After each list of a namespace, the next one waits for as long as that list took, so that a namespace with many
    Events keeps the API server busy at most half of the time. Requests that come meanwhile share the next list.
    """

    def __init__(
        self, api: KubeApi, clock: Clock, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._api = api
        self._clock = clock
        self._sleep = sleep
        self._namespaces: dict[str, _Namespace] = {}

    async def of(self, namespace: str, uids: Collection[str]) -> PodEvents | None:
        """Return the newest Events of these pods, at most MAX_EVENTS of each, from a list that begins after the call.

        The result can have other pods too. It is None if the cluster does not give the Events.
        """
        if not uids:
            return {}
        known = self._namespaces.setdefault(namespace, _Namespace())
        batch = known.next
        batch.uids.update(uids)
        async with known.lock:
            # Whoever gets the lock first lists for all of its batch. If it is cancelled, the next one does.
            if not batch.is_done:
                await self._sleep(max(0.0, known.paused_until - self._clock.monotonic()))
                if known.next is batch:
                    known.next = _Batch()
                began = self._clock.monotonic()
                batch.events = await self._list(namespace, batch.uids)
                batch.is_done = True
                ended = self._clock.monotonic()
                known.paused_until = ended + min(ended - began, MOST_PAUSE)
        return batch.events

    async def _list(self, namespace: str, uids: Collection[str]) -> PodEvents | None:
        try:
            if len(uids) > ONE_BY_ONE:
                return await newest_events_of(self._api, namespace, uids, most=MAX_EVENTS, timeout=CALL_TIMEOUT)
            return {
                uid: await newest_events(
                    self._api, namespace, f"involvedObject.uid={uid}", most=MAX_EVENTS, timeout=CALL_TIMEOUT
                )
                for uid in uids
            }
        except KubeError as error:
            log.info("events.unavailable", namespace=namespace, error=str(error))
            metrics.count_evidence_failure("events", error)
            return None
