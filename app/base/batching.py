"""A batcher: items that wait at the same time share a statement or a transaction.

    items ─▶ waiting ─▶ `work` on at most `max_items` of them ─▶ the answer to each item
               ▲                     │ meanwhile
               └── further items ◀───┘

An item joins only work that begins after it was asked for. The more items arrive during work, the more share the next.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from app.base.cancellation import TaskGroup, rounds

_Item = TypeVar("_Item", bound=Hashable)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class WaitingItem(Generic[_Item, _Answer]):
    """The callers that wait for the answer to an item. The first began at `since`, by the clock of the event loop."""

    item: _Item
    since: float
    # Each caller has a future of its own, because the cancellation of a caller cancels the future.
    answers: list[asyncio.Future[_Answer]] = field(default_factory=list)

    def answer(self, value: _Answer) -> None:
        for answer in self.answers:
            if not answer.done():
                answer.set_result(value)

    def refuse(self, error: Exception) -> None:
        """Raise the error for the callers that have no answer yet."""
        for answer in self.answers:
            if not answer.done():
                answer.set_exception(error)


class Batcher(Generic[_Item, _Answer]):
    """Collects items from `ask` and works on them in `run`, which is a task of the owner.

    The number of waiting items has no limit of its own: each belongs to an open request, and these are limited.

    Args:
        work: answers or refuses each item of a batch.
        stopped: makes the error that callers get if `run` ends before their item is answered.
        gather: waits, before a batch is taken, while further items are about to arrive.
        at_once: batches under way at once. A second begins only if the one before takes longer than `patience` seconds.
    """

    def __init__(
        self,
        work: Callable[[Sequence[WaitingItem[_Item, _Answer]]], Awaitable[None]],
        *,
        max_items: int,
        stopped: Callable[[], Exception],
        gather: Callable[[], Awaitable[None]] | None = None,
        at_once: int = 1,
        patience: float = math.inf,
    ) -> None:
        self._work = work
        self._max_items = max_items
        self._stopped = stopped
        self._gather = gather
        self._at_once = at_once
        self._patience = patience
        self.waiting: dict[_Item, WaitingItem[_Item, _Answer]] = {}  # the oldest first
        self._arrived = asyncio.Event()
        self._closed = False

    async def ask(self, item: _Item) -> _Answer:
        """Return the answer to an item. Equal items that wait are one. The cancellation of the caller revokes nothing.

        Raises:
            Exception: `work` refused the item with this error, or `run` has ended.
        """
        if self._closed:
            raise self._stopped()
        loop = asyncio.get_running_loop()
        waiting = self.waiting.get(item)
        if waiting is None:
            waiting = self.waiting[item] = WaitingItem(item, loop.time())
            self._arrived.set()
        answer: asyncio.Future[_Answer] = loop.create_future()
        waiting.answers.append(answer)
        return await answer

    async def run(self) -> None:
        """Work until cancelled, then refuse what waits. It may run again after it has ended."""
        self._closed = False
        turn = asyncio.Lock()
        try:
            async with TaskGroup() as group:
                for _ in range(self._at_once):
                    group.create_task(self._work_in_turn(turn))
        finally:
            self._closed = True
            # No later run works on what is refused, because callers ask again.
            self._refuse(self.take(len(self.waiting)))

    def take(self, count: int) -> Sequence[WaitingItem[_Item, _Answer]]:
        """Remove the oldest waiting items and return them. Later equal items wait for the next batch."""
        if len(self.waiting) <= count:
            batch, self.waiting = self.waiting, {}
            self._arrived.clear()
            return list(batch.values())
        return [self.waiting.pop(item) for item in list(islice(self.waiting, count))]

    async def _work_in_turn(self, turn: asyncio.Lock) -> None:
        for _ in rounds():
            await turn.acquire()
            passing = _Turn(turn)
            batch: Sequence[WaitingItem[_Item, _Answer]] = ()
            try:
                await self._arrived.wait()
                if self._gather is not None:
                    await self._gather()
                batch = self.take(self._max_items)
                passing.after(self._patience)
                await self._work(batch)
            except BaseException:
                self._refuse(batch)
                raise
            finally:
                passing.now()

    def _refuse(self, batch: Sequence[WaitingItem[_Item, _Answer]]) -> None:
        error = self._stopped()
        for waiting in batch:
            waiting.refuse(error)


class _Turn:
    """The right to begin the next batch. It passes on when the batch ends, or earlier if that takes too long."""

    def __init__(self, turn: asyncio.Lock) -> None:
        self._turn: asyncio.Lock | None = turn
        self._timer: asyncio.TimerHandle | None = None

    def after(self, seconds: float) -> None:
        if seconds != math.inf:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.now)

    def now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._turn is not None:
            self._turn.release()
            self._turn = None
