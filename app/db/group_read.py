"""Group read: lookups that wait at the same time share a statement. It mirrors the group commit.

    lookups ─▶ waiting ─▶ one statement for at most `max_keys` keys ─▶ the answer of each lookup
                 ▲                      │ meanwhile
                 └── further lookups ◀──┘

A lookup joins only a statement that is sent after the lookup was requested. So it sees everything that was committed
before, in any process, like a statement of its own. An idle group sends a lookup at once. The more lookups arrive
during a statement, the more share the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from app.cancellation import TaskGroup, rounds
from app.db.errors import DatabaseUnavailable
from app.fairness.share import next_slice

# Seconds after which a further statement may be sent while one is under way. A statement takes about a millisecond, so
# this happens only while a connection does not answer. The lookups of other connections do not wait for it.
PATIENCE: Final = 0.1
# Statements under way at once, so that most connections of the pool remain for other requests.
MAX_STATEMENTS: Final = 3

_Key = TypeVar("_Key", bound=Hashable)
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _Lookups:
    """All lookups of one key, in order. The first began to wait at `since`, by the clock of the event loop."""

    since: float
    answers: list[asyncio.Future[Any]] = field(default_factory=list)


class GroupRead(Generic[_Key, _Found]):
    """Collects keys from `get` and reads them in `run`, which is a task of the owner.

    The number of waiting lookups has no limit of its own: each belongs to an open request, and these are limited.

    Args:
        read: reads the values of different keys with one statement. A key without a value is missing in its result.
        max_wait: seconds. A lookup that has waited longer fails together with a statement of others that fails because
            the database is unavailable, so that it does not wait for a second time-out.
    """

    def __init__(
        self,
        read: Callable[[Sequence[_Key]], Awaitable[Mapping[_Key, _Found]]],
        *,
        max_wait: float,
        max_keys: int = 500,
        patience: float = PATIENCE,
    ) -> None:
        self._read = read
        self._max_wait = max_wait
        self._max_keys = max_keys
        self._patience = patience
        self._waiting: dict[_Key, _Lookups] = {}  # the oldest first
        self._arrived = asyncio.Event()
        self._closed = False

    async def get(self, key: _Key) -> _Found | None:
        """Return the value of the key in a statement that is sent after this call, or None if it has none.

        Raises:
            DatabaseUnavailable: the statement failed, with all its lookups.
            Exception: `read` raised this error for the key alone.
        """
        if self._closed:
            raise DatabaseUnavailable("this process is stopping and reads no more versions")
        loop = asyncio.get_running_loop()
        lookups = self._waiting.get(key)
        if lookups is None:
            lookups = self._waiting[key] = _Lookups(loop.time())
            self._arrived.set()
        # Each caller has a future of its own, because the cancellation of a caller cancels the future.
        answer: asyncio.Future[_Found | None] = loop.create_future()
        lookups.answers.append(answer)
        found = await answer
        await next_slice()  # a statement answers many lookups in one iteration of the event loop
        return found

    async def run(self) -> None:
        """Read until cancelled, then refuse the waiting lookups. It may run again after it has ended."""
        self._closed = False
        turn = asyncio.Lock()
        try:
            async with TaskGroup() as group:
                for _ in range(MAX_STATEMENTS):
                    group.create_task(self._read_in_turn(turn))
        finally:
            self._closed = True
            stopping = DatabaseUnavailable("this process stopped before the version was read")
            _refuse(self._take(len(self._waiting)).values(), stopping)

    async def _read_in_turn(self, turn: asyncio.Lock) -> None:
        for _ in rounds():
            await turn.acquire()
            passing = _Turn(turn)
            try:
                await self._arrived.wait()
                batch = self._take(self._max_keys)
                passing.after(self._patience)
                await self._answer(batch)
            finally:
                passing.now()

    def _take(self, count: int) -> dict[_Key, _Lookups]:
        """Remove the oldest waiting lookups and return them. Later lookups of the same keys wait for the next ones."""
        if len(self._waiting) <= count:
            batch, self._waiting = self._waiting, {}
            self._arrived.clear()
            return batch
        return {key: self._waiting.pop(key) for key in list(islice(self._waiting, count))}

    async def _answer(self, batch: Mapping[_Key, _Lookups]) -> None:
        try:
            found = await self._read(list(batch))
        except asyncio.CancelledError:
            _refuse(batch.values(), DatabaseUnavailable("this process stopped before the version was read"))
            raise
        except DatabaseUnavailable as error:
            _refuse(batch.values(), error)
            self._refuse_older(error)
            return
        except Exception as error:  # noqa: BLE001  the callers get the error
            if len(batch) == 1:
                _refuse(batch.values(), error)
                return
            # Alone, only the bad key fails.
            for key, lookups in batch.items():
                await self._answer({key: lookups})
            return
        for key, lookups in batch.items():
            value = found.get(key)
            for answer in lookups.answers:
                # The caller may have been cancelled meanwhile.
                if not answer.done():
                    answer.set_result(value)

    def _refuse_older(self, error: DatabaseUnavailable) -> None:
        latest = asyncio.get_running_loop().time() - self._max_wait
        _refuse(self._take(sum(lookups.since <= latest for lookups in self._waiting.values())).values(), error)


class _Turn:
    """The right to send the next statement. It passes on when the statement ends, or earlier if that takes too long."""

    def __init__(self, turn: asyncio.Lock) -> None:
        self._turn: asyncio.Lock | None = turn
        self._timer: asyncio.TimerHandle | None = None

    def after(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.now)

    def now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._turn is not None:
            self._turn.release()
            self._turn = None


def _refuse(lookups: Iterable[_Lookups], error: Exception) -> None:
    for one in lookups:
        for answer in one.answers:
            if not answer.done():
                answer.set_exception(error)
