"""Long polls with the same key share one read after a change that may concern them, and the bytes of its result.

    change ─▶ may it concern the poll? ─▶ one of the waiting requests reads ─▶ another tag? ─▶ all of them answer

The key distinguishes all results that can differ: route, filter, page and visible namespaces, or one object's view.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from typing_extensions import override

from app.api.answers.conditional import matches_tag
from app.base.caches import ENTRY_BYTES, BoundedCache
from app.base.clock import Clock
from app.domain.listing import Criteria, Extent, ListItem, concerns
from app.services.limits.turns import Turns
from app.services.watching.positions import Interest, Position
from app.services.watching.waking import Waiter
from app.services.watching.watcher import Follower, Watcher

# Seconds between two reads of the same list, however much changes in it.
_INTERVAL: Final = 0.5
# Seconds before a list is read after a change, so that changes that come together cause one read.
_COALESCED: Final = 0.05
# Reads at once: few, so that most connections of the database pool remain for other requests.
_LISTS_AT_ONCE: Final = 2
_OBJECTS_AT_ONCE: Final = 4
# Polls that wait for their turn to read. Requests share polls and their number is limited, so this is not reached.
_MAX_WAITING: Final = 10_000
# Polls without a waiting request that are kept: clients that were answered return with the new tag.
_MAX_IDLE: Final = 256
_BODY_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a read has found. `render` returns the body; it is called only if a request needs the body.

    `extent` says which objects a list showed, so that later changes can be compared with it.
    """

    tag: str
    render: Callable[[], Awaitable[bytes]]
    extent: Extent = field(default_factory=Extent)


@dataclass(frozen=True, slots=True)
class PollResult:
    """A tag with its body, None if no request needed the body.

    The result contains at least all changes up to `position` of the feed, and maybe later ones.
    """

    tag: str
    position: Position | None
    body: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """A key and how to read the current state. With `criteria` it concerns a list, otherwise the one object of the
    interest. Polls read in turns by token; requests with the same key read under the token of the first one.
    """

    key: Hashable
    token: str
    interest: Interest
    read: Callable[[], Awaitable[Snapshot]]
    criteria: Criteria | None = None


class SharedPoll(Follower):
    """All requests that wait with the same key. The first one that is woken reads for all of them."""

    def __init__(self, polls: "SharedPolls", poll: Poll) -> None:
        self.interest = poll.interest
        self.criteria = poll.criteria
        self.waiters: set[Waiter] = set()
        self.is_dirty = True  # a change since the last read may concern the result
        self.last: PollResult | None = None
        self._polls = polls
        self._poll = poll
        self._extent = Extent()
        self._is_reading = False
        self._started = self._finished = 0  # numbers of the last read that was started, and that succeeded
        self._read_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    @override
    def follow(self, changed: Sequence[ListItem] | None) -> None:
        """Mark the result as out of date if one of these changes may concern it. None: the changes are unknown."""
        if not self.is_dirty and (changed is None or any(map(self._may_concern, changed))):
            self.is_dirty = True
            self.wake_reader()

    def wake_reader(self) -> None:
        """Wake one waiting request, which then reads for all, if the result is out of date."""
        if self.is_dirty and self.waiters:
            self._polls.watcher.waker.wake(islice(self.waiters, 1))

    async def current(self, if_none_match: str) -> PollResult:
        """Return the last result if it is up to date and the caller has its tag; otherwise read."""
        last = self.last
        if last is not None and not self.is_dirty and matches_tag(if_none_match, last.tag):
            return last
        return await self._read_shared(if_none_match)

    async def after_wake(self, if_none_match: str) -> PollResult:
        """Return an up-to-date result to a request that was woken. Reads of a list keep their minimum interval."""
        if self.is_dirty and self.criteria is not None:
            until_interval = self._read_at + _INTERVAL - self._polls.clock.monotonic()
            await asyncio.sleep(max(_COALESCED, until_interval))
        if self.is_dirty or self.last is None:
            return await self._read_shared(if_none_match)
        return self.last

    async def with_body(self, result: PollResult) -> PollResult:
        """Return the result with its body, or a newer result if the body is no longer cached."""
        if result.body is not None:
            return result
        cached = self._polls.bodies.get((self._poll.key, result.tag))
        if cached is not None:
            return PollResult(result.tag, result.position, cached)
        position = self._polls.watcher.position
        snapshot = await self._poll.read()
        return PollResult(snapshot.tag, position, await snapshot.render())

    async def _read_shared(self, if_none_match: str) -> PollResult:
        """Return the result of a read that starts after this call, by this request or another one."""
        # A read that has already started may have missed the change that woke this request.
        wanted = self._started + 1
        async with self._one_at_a_time:
            if self._finished >= wanted and self.last is not None:
                return self.last
            async with self._polls.turns(self._poll).turn(self._poll.token):
                return await self._read(if_none_match)

    async def _read(self, if_none_match: str) -> PollResult:
        self._started += 1
        # Cleared before the read: a change during it marks the result as out of date again.
        self.is_dirty, self._is_reading = False, True
        self._read_at = self._polls.clock.monotonic()
        before, position = self.last, self._polls.watcher.position
        try:
            snapshot = await self._poll.read()
            is_changed = before is not None and before.tag != snapshot.tag
            is_needed = is_changed or not matches_tag(if_none_match, snapshot.tag)
            body = await snapshot.render() if is_needed else None
        except BaseException:
            # The request may have been cancelled: another one must read in its place.
            self.is_dirty = True
            self.wake_reader()
            raise
        finally:
            self._is_reading = False
        self._extent, self._finished = snapshot.extent, self._started
        self.last = PollResult(snapshot.tag, position, None)
        if body is not None:
            self._polls.bodies.put((self._poll.key, snapshot.tag), body, len(body) + ENTRY_BYTES)
        if is_changed:
            self._polls.watcher.waker.wake(self.waiters)
        self.wake_reader()
        return PollResult(snapshot.tag, position, body)

    def _may_concern(self, item: ListItem) -> bool:
        assert self.criteria is not None
        if self._is_reading:  # the objects of the new page are not known yet
            return item.uid in self._extent.uids or self.criteria.can_match(item)
        return concerns(self.criteria, self._extent, item)


class SharedPolls:
    """The shared polls of this process, including the most recent ones without a waiting request."""

    def __init__(self, watcher: Watcher, clock: Clock) -> None:
        self.watcher = watcher
        self.clock = clock
        self.bodies: BoundedCache[tuple[Hashable, str], bytes] = BoundedCache(_BODY_BYTES)
        self._waiting: dict[Hashable, SharedPoll] = {}
        self._idle: BoundedCache[Hashable, SharedPoll] = BoundedCache(_MAX_IDLE, on_drop=watcher.remove_follower)
        self._lists = Turns("long polls of lists", at_once=_LISTS_AT_ONCE, max_waiting=_MAX_WAITING)
        self._objects = Turns("long polls of objects", at_once=_OBJECTS_AT_ONCE, max_waiting=_MAX_WAITING)

    def turns(self, poll: Poll) -> Turns:
        """Return what bounds how many polls of this sort read at once."""
        return self._objects if poll.criteria is None else self._lists

    @contextmanager
    def join(self, poll: Poll) -> Iterator[tuple[SharedPoll, Waiter]]:
        """Join the requests that wait with the same key."""
        shared, waiter = self._find(poll), Waiter()
        shared.waiters.add(waiter)
        try:
            yield shared, waiter
        finally:
            shared.waiters.discard(waiter)
            if shared.waiters:
                shared.wake_reader()  # this request may have been woken to read, and ended before it did
            else:
                self._idle.put(poll.key, self._waiting.pop(poll.key))

    def _find(self, poll: Poll) -> SharedPoll:
        shared = self._waiting.get(poll.key) or self._idle.pop(poll.key)
        if shared is None:
            shared = SharedPoll(self, poll)
            self.watcher.add_follower(shared)
        self._waiting[poll.key] = shared
        return shared
