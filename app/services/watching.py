"""News of jobs and samples, from one reader of the feed a process to everybody who waits in it.

    feed in Postgres ─▶ Watcher.run ─▶ the last few thousand events in memory ─▶ streams and long polls

Nobody who waits holds a connection. Who falls behind what is kept in memory reads the rest from Postgres.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from uuid import UUID

from typing_extensions import override

from app.db import feed
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.db.events import JOBS
from app.db.feed import FeedEvent
from app.domain.errors import Unavailable

_KEPT: Final = 10_000
_BATCH: Final = 1000
_PAUSE_AFTER_ERROR: Final = 1.0
_BEGIN_SECONDS: Final = 5.0

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """Which events somebody waits for: those of one job or sample, or of some namespaces (None: of every one)."""

    job_uid: UUID | None = None
    namespaces: Container[str] | None = None
    resources: frozenset[str] = frozenset({JOBS})

    def covers(self, event: FeedEvent) -> bool:
        if event.resource not in self.resources:
            return False
        if self.job_uid is not None and event.job_uid != self.job_uid:
            return False
        return self.namespaces is None or event.namespace in self.namespaces


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits. `wait` returns at news, at the shutdown and after the timeout."""

    interest: Interest
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Whether something came in time. Every piece of news is told once."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Watcher:
    """Follows the feed for this process. `hint` waits for a sign that there is something new, some seconds at most."""

    def __init__(self, db: Database, hint: Callable[[], Awaitable[None]]) -> None:
        self._db = db
        self._hint = hint
        self._events: deque[FeedEvent] = deque(maxlen=_KEPT)
        self._epoch = 0
        self._last = 0
        self._begun = asyncio.Event()
        self._closing = False
        self._jobs: defaultdict[UUID, set[Waiter]] = defaultdict(set)
        self._others: set[Waiter] = set()

    @property
    def closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """End all streams and polls: the process is about to stop."""
        self._closing = True
        self._wake_all()

    async def run(self) -> None:
        """Follow the feed until cancelled. Postgres being away makes it late, never wrong."""
        while True:
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
        waiter = Waiter(interest)
        group = self._others if interest.job_uid is None else self._jobs[interest.job_uid]
        group.add(waiter)
        try:
            yield waiter
        finally:
            group.discard(waiter)
            if interest.job_uid is not None and not group:
                self._jobs.pop(interest.job_uid, None)

    async def after(self, position: Position, interest: Interest) -> tuple[list[FeedEvent], Position] | None:
        """The next events that matter and the position behind them; None when the feed cannot go on from there."""
        if position.epoch != self._epoch or position.seq > self._last:
            return None
        if position.seq == self._last:
            return [], position
        if self._events and self._events[0].seq <= position.seq + 1:
            skipped = position.seq + 1 - self._events[0].seq
            batch: Sequence[FeedEvent] = list(islice(self._events, skipped, skipped + _BATCH))
            upto = batch[-1].seq
        else:
            page = await feed.read(self._db, position.seq, _BATCH)
            if not page.bounds.continues(position.epoch, position.seq):
                return None
            batch, upto = page.events, page.upto
        return [event for event in batch if interest.covers(event)], Position(epoch=position.epoch, seq=upto)

    async def _follow(self) -> None:
        bounds = await feed.bounds(self._db)
        if not self._begun.is_set() or not bounds.continues(self._epoch, self._last):
            self._begin(bounds)
        while True:
            # Listen before reading: a hint that comes while the read is under way must not be missed.
            async with asyncio.TaskGroup() as group:
                group.create_task(self._until_hinted())
                while await self._read_on():
                    pass

    async def _until_hinted(self) -> None:
        await self._hint()

    async def _read_on(self) -> bool:
        """Take the next page; whether there is another."""
        page = await feed.read(self._db, self._last, _BATCH)
        if not page.bounds.continues(self._epoch, self._last):
            log.warning("the feed has been cut or exchanged; everybody who waits is told to look again")
            self._begin(page.bounds)
            return True
        for event in page.events:
            self._take(event)
        return page.upto < page.bounds.last

    def _begin(self, bounds: feed.Bounds) -> None:
        """Another feed, or the first look at it: nothing that is kept belongs to it."""
        self._events.clear()
        self._epoch, self._last = bounds.epoch, bounds.last
        self._begun.set()
        self._wake_all()

    def _take(self, event: FeedEvent) -> None:
        self._events.append(event)
        self._last = event.seq
        for waiter in self._jobs.get(event.job_uid, ()):
            waiter.wake()
        for waiter in self._others:
            if waiter.interest.covers(event):
                waiter.wake()

    def _wake_all(self) -> None:
        for group in (*self._jobs.values(), self._others):
            for waiter in group:
                waiter.wake()
