"""Group read: lookups that wait at the same time share a statement.

A lookup joins only a statement that is sent after the lookup was requested. So it sees everything that was committed
before, in any process, like a statement of its own. An idle group sends a lookup at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from app.base.batching import Batcher, WaitingItem
from app.db.postgres.errors import DatabaseUnavailable
from app.fairness.share import next_slice

# Seconds after which a further statement may be sent while one is under way. A statement takes about a millisecond, so
# this happens only while a connection does not answer. The lookups of other connections do not wait for it.
PATIENCE: Final = 0.1
# Statements under way at once, so that most connections of the pool remain for other requests.
MAX_STATEMENTS: Final = 3

_Key = TypeVar("_Key", bound=Hashable)
_Found = TypeVar("_Found")
_Lookups: TypeAlias = Sequence[WaitingItem[_Key, _Found | None]]


class GroupRead(Generic[_Key, _Found]):
    """Collects keys from `get` and reads them in `run`, which is a task of the owner.

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
        self._lookups = Batcher[_Key, _Found | None](
            self._answer,
            max_items=max_keys,
            stopped=partial(DatabaseUnavailable, "this process stopped before the version was read"),
            at_once=MAX_STATEMENTS,
            patience=patience,
        )

    async def get(self, key: _Key) -> _Found | None:
        """Return the value of the key in a statement that is sent after this call, or None if it has none.

        Raises:
            DatabaseUnavailable: the statement failed, with all its lookups.
            Exception: `read` raised this error for the key alone.
        """
        found = await self._lookups.ask(key)
        await next_slice()  # a statement answers many lookups in one iteration of the event loop
        return found

    async def run(self) -> None:
        """Read until cancelled, then refuse the waiting lookups. It may run again after it has ended."""
        await self._lookups.run()

    async def _answer(self, batch: _Lookups[_Key, _Found]) -> None:
        try:
            found = await self._read([lookup.item for lookup in batch])
        except DatabaseUnavailable as error:
            for lookup in (*batch, *self._lookups.take(self._count_older())):
                lookup.refuse(error)
        except Exception as error:  # noqa: BLE001  the callers get the error
            if len(batch) == 1:
                batch[0].refuse(error)
                return
            # Alone, only the bad key fails.
            for lookup in batch:
                await self._answer([lookup])
        else:
            for lookup in batch:
                lookup.answer(found.get(lookup.item))

    def _count_older(self) -> int:
        latest = asyncio.get_running_loop().time() - self._max_wait
        return sum(lookup.since <= latest for lookup in self._lookups.waiting.values())
