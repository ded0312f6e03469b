"""Keeps a copy of one kind of object equal to what the cluster has, whatever the stream does.

    list, page by page ──▶ sink.replaced      watch from the list's version ──▶ sink.applied, sink.deleted
      ▲                                          │  ended, cut, silent, 429, 5xx: watch again from the last version
      └──────────────────────────────────────────┘  410, very short, again and again in vain: list again

The list is a quorum read: it is never older than what was seen before, its pages are honoured, and since it replaces
the copy, what was deleted in a gap is seen to be gone. Within an object's uid versions only rise.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, Self, TypeVar

from app.cancellation import rounds
from app.clock import Clock
from app.k8s.api import KubeApi, WatchEvent, WatchEventType
from app.k8s.backoff import JitteredBackoff
from app.k8s.codec import Codec, HasMetadata, ListPage
from app.k8s.errors import (
    BrokenAnswer,
    KubeError,
    KubeGone,
    KubeServerError,
    KubeStatusError,
    KubeTooManyRequests,
    SilentStream,
    Unreachable,
)
from app.k8s.resources import KubeResource

PAGE_SIZE = 500  # client-go's pager
VERY_SHORT = 1.0  # client-go: a watch that ends sooner and without an event saw nothing, which proves nothing
MAX_SILENT = 2  # a watch ahead of a restored server is accepted and stays silent for ever
# Seconds without an event or a bookmark, over however many watches, after which only a list is believed: twice the time
# in which a healthy server sends a bookmark. A watch ahead of a restored server may also end in order, again and again.
MAX_QUIET = 140.0
MAX_VAIN = 5  # an event that cannot be got past (too long, cut by a proxy) is got past by a list
MAX_RETRY_AFTER = 120.0
TOMBSTONES = 65_536  # deleted uids remembered until the next list, against a state that comes after its deletion

SHORTEST_WATCH = 2  # seconds, of a paced watch: the server takes whole seconds, and below VERY_SHORT it proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long watches last and how long they may be silent, in seconds. The defaults suit a watch nobody waits for.

    A healthy idle watch says something at its bookmarks and when it is opened, so `longest` bounds how long a dead
    connection can pass for a healthy one.
    """

    shortest: int = 300  # client-go: minWatchTimeout 5 min, randomised up to twice that
    longest: int = 600
    idle: float = 70.0  # kopf: the API server sends a bookmark every 60 s, so a longer silence is a dead connection

    @classmethod
    def within(cls, seconds: float) -> Self:
        """Watches of which a healthy one says something, and a dead one is given up, within `seconds`."""
        shortest = max(SHORTEST_WATCH, int(seconds / 3))
        longest = max(shortest, int(seconds * 2 / 3))
        return cls(shortest=shortest, longest=longest, idle=longest + seconds / 6)


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)


class ObjectSource(Protocol[T]):
    """Where objects come from. Failures are KubeErrors."""

    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        """One page of the newest list."""
        ...

    def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """What happened after that version. `opened` is called when the server has agreed to tell it."""
        ...


class ObjectSink(Protocol[T_contra]):
    """Who is told, in order. The calls are quick and do not fail."""

    def replaced(self, objects: Sequence[T_contra]) -> None:
        """These are all there are now."""
        ...

    def applied(self, obj: T_contra) -> None:
        """This one is new or has changed."""
        ...

    def deleted(self, obj: T_contra) -> None:
        """This one is gone; its last state."""
        ...


class ResourceSource(Generic[T]):
    """One resource of a cluster, by label, in one namespace or in all."""

    def __init__(
        self,
        api: KubeApi,
        resource: KubeResource,
        codec: Codec[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
    ) -> None:
        self._api = api
        self._resource = resource
        self._codec = codec
        self._namespace = namespace
        self._selector = label_selector

    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        return await self._api.list_page(
            self._resource,
            self._namespace,
            codec=self._codec,
            label_selector=self._selector,
            limit=limit,
            continue_token=continue_token,
        )

    def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[T], None]:
        return self._api.watch(
            self._resource,
            self._namespace,
            codec=self._codec,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            idle=idle,
            label_selector=self._selector,
            opened=opened,
        )


@dataclass(slots=True)
class ReflectorStats:
    """Counters since the start, for metrics."""

    relists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    stale: int = 0
    errors: int = 0
    last_error: str = ""


class Reflector(Generic[T]):
    """Runs until it is cancelled; never gives up."""

    def __init__(
        self,
        source: ObjectSource[T],
        sink: ObjectSink[T],
        clock: Clock,
        *,
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        self._sink = sink
        self._clock = clock
        self._pace = pace or Pace()
        self._sleep = sleep
        self._chance = chance
        self._backoff = JitteredBackoff(clock, chance)
        self._page_size = PAGE_SIZE
        self._position = 0
        self._versions: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self.synced = asyncio.Event()
        self.last_contact: datetime | None = None
        self.stats = ReflectorStats()

    async def run(self) -> None:
        """Lists and watches, for ever."""
        for _ in rounds():
            try:
                await self._list()
                await self._follow()
            except KubeError as error:
                await self._wait_after(error)

    def offer(self, obj: T) -> None:
        """An object that an answer to another request has just shown: taken in as if the watch had brought it."""
        self._deliver(WatchEvent(WatchEventType.MODIFIED, obj))

    async def _list(self) -> None:
        objects: list[T] = []
        version = token = ""
        for _ in rounds():
            try:
                page = await self._source.list_page(token, self._page_size)
            except KubeGone:
                # The list took longer than its snapshot was kept; all at once it cannot.
                self._page_size = 0
                raise
            self._heard()
            # Should later pages be newer, the watch repeats what they hold already, and versions sort that out.
            version = version or page.resource_version
            objects += [obj for obj in page.items if obj.metadata.uid]
            token = page.continue_token
            if not token:
                break
        self._page_size = PAGE_SIZE
        self._replace(objects, version)

    def _replace(self, objects: list[T], version: str) -> None:
        self._position = int(version) if version.isdecimal() else 0
        self._versions = {obj.metadata.uid: obj.metadata.version for obj in objects}
        self._gone.clear()
        self.stats.relists += 1
        self._sink.replaced(objects)
        self.synced.set()

    async def _follow(self) -> None:
        """Watches until only a list helps; the error that it raises says why."""
        silent = vain = 0
        quiet_since = self._clock.monotonic()
        for _ in rounds():
            started, heard = self._clock.monotonic(), self._heard_so_far()
            if started - quiet_since > MAX_QUIET:
                raise BrokenAnswer("several watches brought neither an event nor a bookmark")
            try:
                await self._watch()
            except KubeTooManyRequests as error:
                await self._wait_after(error)
                continue
            except (Unreachable, KubeServerError) as error:
                if self._heard_so_far() > heard:
                    silent = vain = 0
                    quiet_since = self._clock.monotonic()
                vain += 1
                silent += isinstance(error, SilentStream)
                if vain >= MAX_VAIN or silent >= MAX_SILENT or _is_ahead(error):
                    raise
                await self._wait_after(error)
                continue
            silent = vain = 0
            if self._heard_so_far() > heard:
                quiet_since = self._clock.monotonic()
            if self._clock.monotonic() - started < VERY_SHORT:
                await self._ended_at_once(idle=self._heard_so_far() == heard)

    async def _ended_at_once(self, *, idle: bool) -> None:
        ended = BrokenAnswer("a very short watch: it ended at once")
        if idle:
            raise ended
        await self._wait_after(ended)

    async def _watch(self) -> None:
        pace = self._pace
        seconds = int(pace.shortest + (pace.longest - pace.shortest) * self._chance())
        self.stats.watches += 1
        async with aclosing(self._source.watch(str(self._position), seconds, pace.idle, self._heard)) as events:
            async for event in events:
                self._take(event)

    def _take(self, event: WatchEvent[T]) -> None:
        metadata = event.object.metadata
        self._heard()
        if event.type is WatchEventType.BOOKMARK:
            self.stats.bookmarks += 1
        else:
            self.stats.events += 1
            self._deliver(event)
        self._position = max(self._position, metadata.version)

    def _deliver(self, event: WatchEvent[T]) -> None:
        uid, version = event.object.metadata.uid, event.object.metadata.version
        known = self._versions.get(uid, -1)
        deletes = event.type is WatchEventType.DELETED
        # What left the watch because its labels changed comes back with a newer version; what was deleted cannot.
        if not uid or version <= self._gone.get(uid, -1) or version < known or (version == known and not deletes):
            self.stats.stale += 1
            return
        if not deletes:
            self._versions[uid] = version
            self._sink.applied(event.object)
            return
        self._versions.pop(uid, None)
        self._bury(uid, max(version, known))
        self._sink.deleted(event.object)

    def _bury(self, uid: str, version: int) -> None:
        self._gone[uid] = version
        if len(self._gone) > TOMBSTONES:
            del self._gone[next(iter(self._gone))]

    def _heard(self) -> None:
        self.last_contact = self._clock.now()

    def _heard_so_far(self) -> int:
        return self.stats.events + self.stats.bookmarks

    async def _wait_after(self, error: KubeError) -> None:
        self.stats.errors += 1
        self.stats.last_error = str(error)
        asked = error.retry_after if isinstance(error, KubeStatusError) else None
        await self._sleep(max(self._backoff.next(), min(asked or 0.0, MAX_RETRY_AFTER)))


def _is_ahead(error: KubeError) -> bool:
    return isinstance(error, KubeStatusError) and error.is_version_too_large
