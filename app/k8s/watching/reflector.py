"""A reflector, as in client-go: it lists and watches one resource, and keeps a sink equal to the cluster.

    list, page by page ──▶ sink.replaced      watch from the list's version ──▶ sink.applied, sink.deleted
      ▲                                          │  ended, cut, silent, 429, 5xx: watch again from the last version
      └──────────────────────────────────────────┘  410, very short, again and again in vain: list again

The list is a quorum read, so it is never older than an event that was seen before. It replaces the copy, so an object
that was deleted during a gap disappears. The resourceVersion of an object with one uid only increases.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, Self, TypeVar

from app.base.caches import BoundedCache
from app.base.cancellation import rounds
from app.base.clock import Clock
from app.k8s.api import KubeApi
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
from app.k8s.session.watch_events import WatchEvent, WatchEventType
from app.k8s.watching.backoff import JitteredBackoff
from app.k8s.watching.paging import read_ahead

PAGE_SIZE = 500  # as in client-go's pager
DECODED_AT_ONCE = 50  # objects
VERY_SHORT = 1.0  # seconds, as in client-go; a watch that ends sooner without an event proves nothing
MAX_SILENT = 2  # watches; one that is ahead of a restored server is accepted and stays silent for ever
# Seconds without an event or a bookmark, over any number of watches, after which the resource is listed again. A
# healthy server sends a bookmark in half of this time. A watch ahead of a restored server may end in order, repeatedly.
MAX_QUIET = 140.0
MAX_VAIN = 5  # watches without progress; a list skips an event that is too long or that a proxy cuts
MAX_RETRY_AFTER = 120.0
TOMBSTONES = 65_536  # deleted uids kept until the next list, so that a late state does not revive an object

SHORTEST_WATCH = 2  # seconds; the server accepts whole seconds, and a watch below VERY_SHORT proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long watches last and may be silent, in seconds. The defaults suit a watch whose freshness is not measured.

    A healthy idle watch sends bookmarks, and opening a watch counts as contact. `longest` therefore bounds how long a
    dead connection can seem healthy.
    """

    shortest: int = 300  # as in client-go: minWatchTimeout of 5 min, randomized up to twice that
    longest: int = 600
    idle: float = 70.0  # the API server sends a bookmark every 60 s, so a longer silence means a dead connection

    @classmethod
    def within(cls, seconds: float) -> Self:
        """Return a pace at which a healthy watch proves contact, and a dead one is ended, within `seconds`."""
        shortest = max(SHORTEST_WATCH, int(seconds / 3))
        longest = max(shortest, int(seconds * 2 / 3))
        return cls(shortest=shortest, longest=longest, idle=longest + seconds / 6)


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)


class ObjectSource(Protocol[T]):
    """Lists and watches objects. Failures are KubeErrors."""

    async def list_page(self, continue_token: str, limit: int) -> ListPage[T]:
        """Read one page of a consistent list."""
        ...

    def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Watch the changes after that version. `opened` is called when the server has accepted the watch."""
        ...


class ObjectSink(Protocol[T_contra]):
    """Receives the objects and their changes in order. Its methods are fast and never raise."""

    def replaced(self, objects: Sequence[T_contra]) -> None:
        """Replace all objects."""
        ...

    def applied(self, obj: T_contra) -> None:
        """Add or replace an object."""
        ...

    def deleted(self, obj: T_contra) -> None:
        """Remove an object, given its last state."""
        ...


class ResourceSource(Generic[T]):
    """The objects of one resource with a label, in one namespace or in all."""

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
    """Counters since the start, for metrics, and the last error, unless the server has answered since."""

    relists: int = 0
    events: int = 0
    bookmarks: int = 0
    stale: int = 0
    errors: int = 0
    last_error: KubeError | None = None


class Reflector(Generic[T]):
    """Keeps a sink equal to a source until it is cancelled."""

    def __init__(
        self,
        source: ObjectSource[T],
        sink: ObjectSink[T],
        clock: Clock,
        *,
        pace: Pace | None = None,
        page_size: int = PAGE_SIZE,
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
        self._page_size = self._usual_page_size = page_size
        self._position = 0
        self._versions: dict[str, int] = {}
        self._gone: BoundedCache[str, int] = BoundedCache(TOMBSTONES)
        self.synced = asyncio.Event()
        self.last_contact: datetime | None = None
        self.listed_at: datetime | None = None
        self.stats = ReflectorStats()

    async def run(self) -> None:
        """List and watch until cancelled."""
        for _ in rounds():
            try:
                await self._list()
                await self._follow()
            except KubeError as error:
                await self._wait_after(error)

    def adopt(self, obj: T) -> None:
        """Take in an object that another request returned, as if the watch had delivered it."""
        # Without `_take`, which would move the position of the watch past events that have not arrived.
        self._deliver(WatchEvent(WatchEventType.MODIFIED, obj))

    def forget(self) -> None:
        """Remove all objects from the sink, because the server has none of them any more. No `run` may be running."""
        self._versions = {}
        self._sink.replaced(())
        self.synced.clear()

    async def _list(self) -> None:
        objects: list[T] = []
        version = ""

        async def take(page: ListPage[T]) -> None:
            nonlocal version
            # If later pages are newer, the watch repeats changes that they contain. Their versions show that.
            version = version or page.resource_version
            await _decode(page, objects)

        try:
            await read_ahead(self._read_page, take)
        except KubeGone:
            # The list took longer than the server keeps its snapshot. A list with one page needs no snapshot.
            self._page_size = 0
            raise
        self._page_size = self._usual_page_size
        self._replace(objects, version)

    async def _read_page(self, continue_token: str) -> ListPage[T]:
        page = await self._source.list_page(continue_token, self._page_size)
        self._heard()
        return page

    def _replace(self, objects: list[T], version: str) -> None:
        self._position = int(version) if version.isdecimal() else 0
        self._versions = {obj.metadata.uid: obj.metadata.version for obj in objects}
        self._gone = BoundedCache(TOMBSTONES)
        self.stats.relists += 1
        self.listed_at = self._clock.now()
        self._sink.replaced(objects)
        self.synced.set()

    async def _follow(self) -> None:
        """Watch until a new list is needed. The error that is raised has the reason."""
        silent = vain = 0
        quiet_since = self._clock.monotonic()
        for _ in rounds():
            started, heard = self._clock.monotonic(), self._heard_so_far()
            if started - quiet_since > MAX_QUIET:
                raise BrokenAnswer("several watches brought neither an event nor a bookmark")
            try:
                await self._watch()
            # As in client-go: a busy server says nothing about the position, and a list would cost it more than the
            # watch.
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
        # At random, so that watches that began together do not end together.
        seconds = int(pace.shortest + (pace.longest - pace.shortest) * self._chance())
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
        # An object that left the watch by a change of labels can come back with a newer version; a deleted one cannot.
        if not uid or version <= (self._gone.get(uid) or -1) or version < known or (version == known and not deletes):
            self.stats.stale += 1
            return
        if not deletes:
            self._versions[uid] = version
            self._sink.applied(event.object)
            return
        self._versions.pop(uid, None)
        self._gone.put(uid, max(version, known))
        self._sink.deleted(event.object)

    def _heard(self) -> None:
        self.last_contact = self._clock.now()
        self.stats.last_error = None

    def _heard_so_far(self) -> int:
        return self.stats.events + self.stats.bookmarks

    async def _wait_after(self, error: KubeError) -> None:
        self.stats.errors += 1
        # Without its frames, which hold what was read of a list, for as long as an outage lasts.
        error.__cause__ = error.__context__ = None
        self.stats.last_error = error.with_traceback(None)
        requested = error.retry_after if isinstance(error, KubeStatusError) else None
        await self._sleep(max(self._backoff.next(), min(requested or 0.0, MAX_RETRY_AFTER)))


async def _decode(page: ListPage[T], objects: list[T]) -> None:
    """Append the objects of a page."""
    for number, obj in enumerate(page.items):
        if number % DECODED_AT_ONCE == 0:
            await asyncio.sleep(0)  # the request for the next page leaves, and other tasks run
        # An object whose metadata could not be decoded has no uid.
        if obj.metadata.uid:
            objects.append(obj)


def _is_ahead(error: KubeError) -> bool:
    # The server has never had this version: it was restored, or another one replaced it. Only a list shows its state.
    return isinstance(error, KubeStatusError) and error.is_version_too_large
