"""Long polls that ask the same: one look for all of them after a change that may concern them, shared as bytes.

    change ─▶ may it concern the question? ─▶ one of those who wait looks ─▶ another tag? ─▶ all of them answer

A question is what distinguishes the answers: a route, its filter, page and visible namespaces, or one job's view.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from typing_extensions import override

from app.api.conditional import unchanged
from app.api.rendering import RenderCache
from app.clock import Clock
from app.domain.listing import Criteria, Extent, ListItem, concerns
from app.services.watching import Follower, Interest, Position, Waiter, Watcher

# A list is looked at once in this time however much changes in it, and changes that come together cause one look.
_INTERVAL: Final = 0.5
_COALESCED: Final = 0.05
# Of the database's connections the rest is for other requests.
_LISTS_AT_ONCE: Final = 2
_OTHERS_AT_ONCE: Final = 4
# Questions that nobody waits for at the moment: those who were answered come back with the new tag.
_IDLE: Final = 256
_BODY_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look has found. `render` makes the body, where somebody needs it."""

    tag: str
    render: Callable[[], Awaitable[bytes]]
    extent: Extent = field(default_factory=Extent)


@dataclass(frozen=True, slots=True)
class Look:
    """A tag and a position of the feed: what was seen may be newer, never older. None is a body nobody needed."""

    tag: str
    position: Position | None
    body: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """A question and how to look. With `criteria` it is about a list, else about the one thing of the interest."""

    question: Hashable
    interest: Interest
    see: Callable[[], Awaitable[Seen]]
    criteria: Criteria | None = None


@dataclass(frozen=True, slots=True)
class _Body:
    body: bytes


class Question(Follower):
    """Everybody who waits for the same. Whoever is woken first looks for all of them."""

    def __init__(self, polls: "SharedPolls", poll: Poll) -> None:
        self.interest = poll.interest
        self.criteria = poll.criteria
        self.waiters: set[Waiter] = set()
        self.is_dirty = True
        self.last: Look | None = None
        self._polls = polls
        self._poll = poll
        self._extent = Extent()
        self._is_looking = False
        self._begun = self._done = 0
        self._looked_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    @override
    def follow(self, changed: Sequence[ListItem] | None) -> None:
        """What was seen is out of date if one of these changes may concern it."""
        if not self.is_dirty and (changed is None or any(map(self._may_concern, changed))):
            self.is_dirty = True
            self.pass_on()

    def pass_on(self) -> None:
        """Have one of those who wait look."""
        if self.is_dirty and self.waiters:
            self._polls.watcher.waker.wake(islice(self.waiters, 1))

    async def current(self, if_none_match: str) -> Look:
        """What was seen last, if it is up to date and the caller has it; else a look that begins now."""
        last = self.last
        if last is not None and not self.is_dirty and unchanged(if_none_match, last.tag):
            return last
        return await self.look(if_none_match)

    async def after_news(self, if_none_match: str) -> Look:
        """As `current`, for somebody who was woken: with a pause, in which more changes may come."""
        if self.is_dirty and self.criteria is not None:
            due = self._looked_at + _INTERVAL - self._polls.clock.monotonic()
            await asyncio.sleep(max(_COALESCED, due))
        if self.is_dirty or self.last is None:
            return await self.look(if_none_match)
        return self.last

    async def look(self, if_none_match: str) -> Look:
        """Look, or take what somebody sees whose look begins after this call."""
        wanted = self._begun + 1
        async with self._one_at_a_time:
            if self._done >= wanted and self.last is not None:
                return self.last
            async with self._polls.turn(self._poll):
                return await self._look(if_none_match)

    async def body(self, look: Look) -> Look:
        """The look with its body, which may be that of a newer one."""
        if look.body is not None:
            return look
        kept = self._polls.bodies.get((self._poll.question, look.tag))
        if kept is not None:
            return Look(look.tag, look.position, kept.body)
        position = self._polls.watcher.position
        seen = await self._poll.see()
        return Look(seen.tag, position, await seen.render())

    async def _look(self, if_none_match: str) -> Look:
        self._begun += 1
        self.is_dirty, self._is_looking = False, True
        self._looked_at = self._polls.clock.monotonic()
        before, position = self.last, self._polls.watcher.position
        try:
            seen = await self._poll.see()
            is_news = before is not None and before.tag != seen.tag
            body = await seen.render() if is_news or not unchanged(if_none_match, seen.tag) else None
        except BaseException:
            self.is_dirty = True
            self.pass_on()
            raise
        finally:
            self._is_looking = False
        self._extent, self._done = seen.extent, self._begun
        self.last = Look(seen.tag, position, None)
        if body is not None:
            self._polls.bodies.put((self._poll.question, seen.tag), _Body(body))
        if is_news:
            self._polls.watcher.waker.wake(self.waiters)
        self.pass_on()
        return Look(seen.tag, position, body)

    def _may_concern(self, thing: ListItem) -> bool:
        assert self.criteria is not None
        if self._is_looking:  # nobody knows yet which things the page will have
            return thing.uid in self._extent.uids or self.criteria.can_match(thing)
        return concerns(self.criteria, self._extent, thing)


class SharedPolls:
    """The questions of this process, with those that somebody will probably ask again in a moment."""

    def __init__(self, watcher: Watcher, clock: Clock) -> None:
        self.watcher = watcher
        self.clock = clock
        self.bodies: RenderCache[_Body] = RenderCache(_BODY_BYTES)
        self._questions: dict[Hashable, Question] = {}
        self._idle: OrderedDict[Hashable, None] = OrderedDict()
        self._turns = {True: asyncio.Semaphore(_LISTS_AT_ONCE), False: asyncio.Semaphore(_OTHERS_AT_ONCE)}

    def turn(self, poll: Poll) -> asyncio.Semaphore:
        return self._turns[poll.criteria is not None]

    @contextmanager
    def joined(self, poll: Poll) -> Iterator[tuple[Question, Waiter]]:
        """Wait among those who ask the same."""
        question, waiter = self._find(poll), Waiter()
        question.waiters.add(waiter)
        try:
            yield question, waiter
        finally:
            question.waiters.discard(waiter)
            if question.waiters:
                question.pass_on()
            else:
                self._leave(poll.question)

    def _find(self, poll: Poll) -> Question:
        self._idle.pop(poll.question, None)
        question = self._questions.get(poll.question)
        if question is None:
            question = self._questions[poll.question] = Question(self, poll)
            self.watcher.add_follower(question)
        return question

    def _leave(self, key: Hashable) -> None:
        self._idle[key] = None
        while len(self._idle) > _IDLE:
            oldest, _ = self._idle.popitem(last=False)
            self.watcher.remove_follower(self._questions.pop(oldest))
