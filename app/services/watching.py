"""News of jobs and samples, from one reader of the feed in each process to everybody who waits in it.

    feed in Postgres ─▶ Watcher.run ─▶ the last few thousand events in memory ─▶ streams
                                     └▶ the things that have changed ─▶ followers, who decide what concerns them

Nobody who waits holds a connection. Who falls behind what is kept in memory reads the rest from Postgres.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from typing_extensions import override

from app.cancellation import TaskGroup, rounds
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.feed import entries
from app.db.feed.changes import JOBS
from app.db.feed.entries import FeedEvent
from app.db.resources import listed
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.errors import Unavailable
from app.domain.listing import Criteria, ListItem

_KEPT: Final = 10_000
_BATCH: Final = 1000
_REMEMBERED_AT_START: Final = 2000
# In one turn of the event loop: what a woken stream does takes some 100 microseconds.
_WOKEN_AT_ONCE: Final = 20
_TURN_SECONDS: Final = 0.005
_PAUSE_AFTER_ERROR: Final = 1.0
_BEGIN_SECONDS: Final = 5.0

# Waits until the feed may have new entries, at the latest for its polling interval.
FeedHint: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
_T = TypeVar("_T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in the feed; positions of another epoch are places in another feed."""

    epoch: int
    seq: int

    @override
    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"


def parse_position(text: str) -> Position | None:
    """Read what `str` of a position wrote; None is no position of any feed."""
    epoch, _, seq = text.strip().partition(".")
    if not (epoch.isascii() and epoch.isdecimal() and seq.isascii() and seq.isdecimal()):
        return None
    if len(epoch) > 18 or len(seq) > 18:
        return None
    return Position(epoch=int(epoch), seq=int(seq))


# A job or sample, or a resource in one namespace (None: in any).
_Key: TypeAlias = UUID | tuple[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """Which events somebody waits for: those of one job or sample, or those of some namespaces."""

    job_uid: UUID | None = None
    namespaces: NamespaceSet = EVERY_NAMESPACE
    resources: frozenset[str] = frozenset({JOBS})

    def covers(self, event: FeedEvent) -> bool:
        if event.resource not in self.resources:
            return False
        if self.job_uid is not None:
            return event.job_uid == self.job_uid
        return event.namespace in self.namespaces

    def places(self) -> list[_Key]:
        """Where to look for whoever has this interest: every event that is covered has one of these keys."""
        if self.job_uid is not None:
            return [self.job_uid]
        names: Sequence[str | None] | None = self.namespaces.names
        return [(resource, name) for resource in self.resources for name in ((None,) if names is None else names)]


def _keys_of(event: FeedEvent) -> tuple[_Key, ...]:
    return event.job_uid, (event.resource, event.namespace), (event.resource, None)


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits. `wait` returns at news, at the shutdown and after the timeout."""

    _news: asyncio.Event = field(default_factory=asyncio.Event)
    is_due: bool = False
    news_behind: Position | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing has come since the last `wait`."""
        return not self.is_due and not self._news.is_set()

    def wake(self) -> None:
        self.is_due = False
        self._news.set()

    def take_news_behind(self) -> Position | None:
        """The position behind which the news are: there was none before it. None if nobody knows."""
        position, self.news_behind = self.news_behind, None
        return position

    async def wait(self, seconds: float) -> bool:
        """Whether something came in time. Every piece of news is told once."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Waker:
    """Wakes some waiters at a time and lets the event loop do other work in between."""

    def __init__(self) -> None:
        self._due: deque[Waiter] = deque()
        self._some = asyncio.Event()

    def wake(self, waiters: Iterable[Waiter], news_behind: Position | None = None) -> None:
        """Have them woken soon. Who is due already is woken once for both."""
        for waiter in waiters:
            if waiter.is_idle:
                waiter.news_behind = news_behind
            if not waiter.is_due:
                waiter.is_due = True
                self._due.append(waiter)
        self._some.set()

    async def run(self) -> None:
        for _ in rounds():
            await self._some.wait()
            self._some.clear()
            while self._due:
                for _ in range(min(_WOKEN_AT_ONCE, len(self._due))):
                    self._due.popleft().wake()
                await asyncio.sleep(0)


class Follower(Protocol):
    """Somebody who is told of changes themselves. With `criteria` it needs to know the things that have changed."""

    interest: Interest
    criteria: Criteria | None

    def follow(self, changed: Sequence[ListItem] | None) -> None:
        """Take note of changes that the interest covers. None: nobody knows what has changed."""
        ...


class Watcher:
    """Follows the feed for this process. `hint` waits for a sign that there is something new, some seconds at most."""

    def __init__(self, db: Database, hint: FeedHint) -> None:
        self._db = db
        self._hint = hint
        self._events: deque[FeedEvent] = deque(maxlen=_KEPT)
        self._epoch = 0
        self._last = 0
        self._begun = asyncio.Event()
        self._closing = False
        self._waiters: defaultdict[_Key, set[Waiter]] = defaultdict(set)
        self._followers: defaultdict[_Key, set[Follower]] = defaultdict(set)
        self.waker = Waker()

    @property
    def closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """End all streams and polls: the process is about to stop."""
        self._closing = True
        self._wake_all()

    async def run(self) -> None:
        """Follow the feed and wake who waits, until cancelled. Postgres being away makes it late, never wrong."""
        async with TaskGroup() as group:
            group.create_task(self.waker.run())
            group.create_task(self._follow_always())

    async def _follow_always(self) -> None:
        for _ in rounds():
            try:
                await self._follow()
            except* DatabaseUnavailable as errors:
                log.warning("the feed cannot be read: %s", errors.exceptions[0])
                await asyncio.sleep(_PAUSE_AFTER_ERROR)

    @property
    def position(self) -> Position | None:
        """How far this process has read: whatever is read from Postgres after this holds it, and maybe more.

        None until it has looked for the first time.
        """
        return Position(epoch=self._epoch, seq=self._last) if self._begun.is_set() else None

    async def begin(self) -> Position:
        """The position, as soon as there is one.

        Raises:
            Unavailable: the feed could not be read yet.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_SECONDS):
                await self._begun.wait()
        position = self.position
        if position is None:
            raise Unavailable("this process has not read the feed yet: come again in a moment", code="Starting")
        return position

    @contextmanager
    def waiting(self, interest: Interest) -> Iterator[Waiter]:
        """Register before you read, so that nothing can happen in between."""
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
        """Whether what follows is in memory, so that `after` asks Postgres nothing."""
        if position.epoch != self._epoch or position.seq > self._last:
            return False
        return position.seq == self._last or bool(self._events and self._events[0].seq <= position.seq + 1)

    async def after(self, position: Position, interest: Interest) -> tuple[list[FeedEvent], Position] | None:
        """The next events that matter and the position behind them; None when the feed cannot go on from there."""
        if position.epoch != self._epoch or position.seq > self._last:
            return None
        if position.seq == self._last:
            return [], position
        if self.remembers(position):
            skipped = position.seq + 1 - self._events[0].seq
            batch: Sequence[FeedEvent] = list(islice(self._events, skipped, skipped + _BATCH))
            upto = batch[-1].seq
        else:
            page = await entries.read(self._db, position.seq, _BATCH)
            if not page.bounds.continues(position.epoch, position.seq):
                return None
            batch, upto = page.events, page.upto
        return [event for event in batch if interest.covers(event)], Position(epoch=position.epoch, seq=upto)

    async def _follow(self) -> None:
        bounds = await entries.bounds(self._db)
        if not self._begun.is_set():
            await self._remember(bounds)
        elif not bounds.continues(self._epoch, self._last):
            self._begin(bounds)
        for _ in rounds():
            # Listen before reading: a hint that comes while the read is under way must not be missed.
            async with TaskGroup() as group:
                group.create_task(self._hint())
                while await self._read_on():
                    pass

    async def _remember(self, bounds: entries.Bounds) -> None:
        """Begin a little behind the end: the clients of a process that was replaced come with their last ids."""
        self._epoch, self._last = bounds.epoch, max(bounds.first - 1, bounds.last - _REMEMBERED_AT_START)
        while self._last < bounds.last and self._epoch == bounds.epoch:
            await self._read_on()
        self._begun.set()

    async def _read_on(self) -> bool:
        """Take the next page; whether there is another."""
        page = await entries.read(self._db, self._last, _BATCH)
        if not page.bounds.continues(self._epoch, self._last):
            log.warning("the feed has been cut or exchanged; everybody who waits is told to look again")
            self._begin(page.bounds)
            return True
        behind = Position(epoch=self._epoch, seq=self._last)
        self._events.extend(page.events)
        self._last = page.events[-1].seq if page.events else self._last
        await self._tell(page.events, behind)
        return page.upto < page.bounds.last

    def _begin(self, bounds: entries.Bounds) -> None:
        """Another feed, or the first look at it: nothing that is kept belongs to it."""
        self._events.clear()
        self._epoch, self._last = bounds.epoch, bounds.last
        self._begun.set()
        for follower in {follower for group in self._followers.values() for follower in group}:
            follower.follow(None)
        self._wake_all()

    async def _tell(self, events: Sequence[FeedEvent], behind: Position) -> None:
        """Wake who waits for any of these events, and tell followers which of their things have changed."""
        uids: defaultdict[_Key, set[UUID]] = defaultdict(set)
        for event in events:
            for key in _keys_of(event):
                uids[key].add(event.job_uid)
        for key in uids:
            self.waker.wake(self._waiters.get(key, ()), behind)
        followers = {follower for key in uids for follower in self._followers.get(key, ())}
        looking = {key for follower in followers if follower.criteria for key in follower.interest.places()}
        try:
            things = await self._changed(event for event in events if looking.intersection(_keys_of(event)))
        except DatabaseUnavailable:
            for follower in followers:
                follower.follow(None)
            raise
        clock = asyncio.get_running_loop().time
        told_at = clock()
        for follower in followers:
            mine = {uid for key in follower.interest.places() for uid in uids.get(key, ())}
            follower.follow([things[uid] for uid in mine if uid in things] if follower.criteria else None)
            if clock() - told_at > _TURN_SECONDS:
                await asyncio.sleep(0)
                told_at = clock()

    async def _changed(self, events: Iterable[FeedEvent]) -> Mapping[UUID, ListItem]:
        """The things as they are now: one narrow read for each resource, however many follow it."""
        wanted: defaultdict[str, set[UUID]] = defaultdict(set)
        for event in events:
            wanted[event.resource].add(event.job_uid)
        found: dict[UUID, ListItem] = {}
        for resource, uids in wanted.items():
            found |= await listed(self._db, resource, uids)
        return found

    def _wake_all(self) -> None:
        for group in self._waiters.values():
            self.waker.wake(group)


def _register(index: defaultdict[_Key, set[_T]], interest: Interest, who: _T) -> None:
    for key in interest.places():
        index[key].add(who)


def _withdraw(index: defaultdict[_Key, set[_T]], interest: Interest, who: _T) -> None:
    for key in interest.places():
        index[key].discard(who)
        if not index[key]:
            del index[key]
