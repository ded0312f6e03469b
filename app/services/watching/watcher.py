"""Distributes the feed in one process: one reader, and any number of streams and long polls.

    feed in Postgres ─▶ Watcher.run ─▶ the last 10 000 events in memory ─▶ streams
                                    └▶ the changed objects ─▶ followers, which filter them

A stream or poll that waits holds no database connection. A stream that falls behind the events in memory reads the
missing ones from Postgres.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final, Protocol, TypeVar
from uuid import UUID

import structlog

from app.base.cancellation import TaskGroup, rounds
from app.base.instruments import expose
from app.db.feed import entries
from app.db.feed.entries import FeedEvent
from app.db.objects.resources import read_list_items
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.errors import Unavailable
from app.domain.listing import Criteria, ListItem
from app.services import metrics
from app.services.hints import FeedHint
from app.services.watching.positions import EventKey, Interest, Position, keys_of
from app.services.watching.waking import Waiter, Waker

_KEPT: Final = 10_000  # events in memory, a few MiB
_BATCH: Final = 1000  # events per read
# Events that a new process reads behind the end: clients of the process that it replaces resume from their last event.
_KEPT_AT_START: Final = 2000
_TURN_SECONDS: Final = 0.005  # longest time for followers before the event loop runs other tasks
_PAUSE_AFTER_ERROR: Final = 1.0  # seconds
_BEGIN_SECONDS: Final = 5.0  # how long a request waits for the first read of the feed

_T = TypeVar("_T")
log = structlog.get_logger(__name__)


class Follower(Protocol):
    """Receives the changes of an interest. With `criteria`, it also receives the changed objects."""

    interest: Interest
    criteria: Criteria | None

    def follow(self, changed: Sequence[ListItem] | None) -> None:
        """Note changes that the interest covers. None means that anything may have changed."""
        ...


class Watcher:
    """Reads the feed for this process, wakes waiters and informs followers."""

    def __init__(self, db: Database, hint: FeedHint) -> None:
        self._db = db
        self._hint = hint
        self._events: deque[FeedEvent] = deque(maxlen=_KEPT)
        self._epoch = 0
        self._last = 0  # the number of the last event that was read
        self._begun = asyncio.Event()
        self._closing = False
        self._waiters: defaultdict[EventKey, set[Waiter]] = defaultdict(set)
        self._followers: defaultdict[EventKey, set[Follower]] = defaultdict(set)
        self.waker = Waker()

    @property
    def closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """End all streams and long polls, because the process stops: wake them, and let `closing` return True."""
        self._closing = True
        self._wake_all()

    async def run(self) -> None:
        """Follow the feed until cancelled. While PostgreSQL does not answer, events are late, but none is lost."""
        with expose({metrics.FOLLOWED: lambda: {(): self._last} if self._begun.is_set() else {}}):
            async with TaskGroup() as group:
                group.create_task(self.waker.run())
                group.create_task(self._follow_with_retries())

    async def _follow_with_retries(self) -> None:
        for _ in rounds():
            try:
                await self._follow()
            # Errors from within the task group of `_follow` come in a group. `except*` also catches one that comes
            # alone.
            except* DatabaseUnavailable as errors:
                log.warning("feed.database_unavailable", error=str(errors.exceptions[0]))
            await asyncio.sleep(_PAUSE_AFTER_ERROR)

    @property
    def position(self) -> Position | None:
        """The position up to which this process has read the feed; None before the first read.

        A later read from Postgres returns a state that includes all events up to this position.
        """
        return Position(epoch=self._epoch, seq=self._last) if self._begun.is_set() else None

    async def begin(self) -> Position:
        """Wait for the first read of the feed, and return the position.

        Raises:
            Unavailable: the feed could not be read in time.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_SECONDS):
                await self._begun.wait()
        position = self.position
        if position is None:
            raise Unavailable("this process has not read the feed yet: repeat the request in a moment", code="Starting")
        return position

    @contextmanager
    def waiting(self, interest: Interest) -> Iterator[Waiter]:
        """Register a waiter during the block. Read only after that, so that no change in between is missed."""
        waiter = Waiter()
        _register(self._waiters, interest, waiter)
        try:
            yield waiter
        finally:
            _withdraw(self._waiters, interest, waiter)

    def add_follower(self, follower: Follower) -> None:
        _register(self._followers, follower.interest, follower)

    def remove_follower(self, follower: Follower) -> None:
        _withdraw(self._followers, follower.interest, follower)

    def remembers(self, position: Position) -> bool:
        """Whether the events after the position are in memory, so that `after` does not query Postgres."""
        if position.epoch != self._epoch or position.seq > self._last:
            return False
        return position.seq == self._last or bool(self._events and self._events[0].seq <= position.seq + 1)

    async def after(self, position: Position, interest: Interest) -> tuple[list[FeedEvent], Position] | None:
        """Return the next events of the interest, and the position after them.

        Return None if the feed does not continue from this position: its events were deleted, or it is of another
        epoch.
        """
        if position.epoch != self._epoch or position.seq > self._last:
            return None
        if position.seq == self._last:
            return [], position
        if self.remembers(position):
            # The numbers have no gaps, so the place of an event follows from its number.
            skipped = position.seq + 1 - self._events[0].seq
            batch: Sequence[FeedEvent] = list(islice(self._events, skipped, skipped + _BATCH))
            upto = batch[-1].seq
        else:
            page = await entries.read(self._db, position.seq, _BATCH)
            if not page.bounds.continues(position.epoch, position.seq):
                return None
            batch, upto = page.events, page.upto
        return [event for event in batch if interest.covers(event)], Position(epoch=position.epoch, seq=upto)

    async def has_further(self, position: Position, job_uid: UUID) -> bool:
        """Return whether events of this object follow the position, which this process may not have read yet."""
        return await entries.has_further(self._db, job_uid, position.seq)

    async def _follow(self) -> None:
        bounds = await entries.bounds(self._db)
        if not self._begun.is_set():
            await self._read_recent(bounds)
        elif not bounds.continues(self._epoch, self._last):
            self._begin(bounds)
        for _ in rounds():
            # Listen before reading, so that no hint is missed that arrives during the read.
            async with TaskGroup() as group:
                group.create_task(self._hint())
                while await self._read_page():
                    pass

    async def _read_recent(self, bounds: entries.Bounds) -> None:
        """Read the last events of the feed at the start of the process."""
        self._epoch, self._last = bounds.epoch, max(bounds.first - 1, bounds.last - _KEPT_AT_START)
        # If the feed is replaced meanwhile, `_read_page` continues at its end.
        while self._last < bounds.last and self._epoch == bounds.epoch:
            await self._read_page()
        self._begun.set()

    async def _read_page(self) -> bool:
        """Read and distribute the next page. Return whether there is another."""
        page = await entries.read(self._db, self._last, _BATCH)
        if not page.bounds.continues(self._epoch, self._last):
            log.warning("feed.begun_again", read_to=self._last, first=page.bounds.first, last=page.bounds.last)
            self._begin(page.bounds)
            return True
        before = Position(epoch=self._epoch, seq=self._last)
        self._events.extend(page.events)
        self._last = page.events[-1].seq if page.events else self._last
        await self._distribute(page.events, before)
        return page.upto < page.bounds.last

    def _begin(self, bounds: entries.Bounds) -> None:
        """Start at the end of another feed: the events in memory do not belong to it."""
        self._events.clear()
        self._epoch, self._last = bounds.epoch, bounds.last
        self._begun.set()
        for follower in {follower for group in self._followers.values() for follower in group}:
            follower.follow(None)
        self._wake_all()

    async def _distribute(self, events: Sequence[FeedEvent], before: Position) -> None:
        """Wake the waiters of these events, and inform their followers of the changed objects."""
        uids: defaultdict[EventKey, set[UUID]] = defaultdict(set)
        for event in events:
            for key in keys_of(event):
                # Nobody in this process waits for most events.
                if key in self._waiters or key in self._followers:
                    uids[key].add(event.job_uid)
        if not uids:
            return
        for key in uids:
            # `get`, because a defaultdict would keep an entry for every key of an event.
            self.waker.wake(self._waiters.get(key, ()), before)
        followers = {follower for key in uids for follower in self._followers.get(key, ())}
        # Only the changes that a follower with criteria may want are read from PostgreSQL.
        filtered = {key for follower in followers if follower.criteria for key in follower.interest.index_keys()}
        try:
            objects = await self._read_changed(event for event in events if filtered.intersection(keys_of(event)))
        # These events count as read and are not distributed again, so the followers must assume that anything has
        # changed.
        except DatabaseUnavailable:
            for follower in followers:
                follower.follow(None)
            raise
        clock = asyncio.get_running_loop().time
        turn_began = clock()
        for follower in followers:
            changed = {uid for key in follower.interest.index_keys() for uid in uids.get(key, ())}
            # Nothing is known of a purged object from which it follows whether a list had it.
            is_known = follower.criteria is not None and changed <= objects.keys()
            follower.follow([objects[uid] for uid in changed] if is_known else None)
            if clock() - turn_began > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn_began = clock()

    async def _read_changed(self, events: Iterable[FeedEvent]) -> Mapping[UUID, ListItem]:
        """Return the current objects of the events: one narrow query for each resource, whatever the number of
        followers.
        """
        wanted: defaultdict[str, set[UUID]] = defaultdict(set)
        for event in events:
            wanted[event.resource].add(event.job_uid)
        found: dict[UUID, ListItem] = {}
        for resource, uids in wanted.items():
            found |= await read_list_items(self._db, resource, uids)
        return found

    def _wake_all(self) -> None:
        for group in self._waiters.values():
            self.waker.wake(group)


def _register(index: defaultdict[EventKey, set[_T]], interest: Interest, member: _T) -> None:
    for key in interest.index_keys():
        index[key].add(member)


def _withdraw(index: defaultdict[EventKey, set[_T]], interest: Interest, member: _T) -> None:
    for key in interest.index_keys():
        index[key].discard(member)
        if not index[key]:
            del index[key]
