"""The way of the lines of several logs to one client. Readers wait while the client does not take their lines."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from typing_extensions import override

from app.domain.plan import Rank
from app.services.logs.order import MergedLine, TimeMerge

# The most batches of lines that wait for the client.
_WAITING: Final = 8


class LineChannel(ABC):
    """Passes lines from readers to a client."""

    def add_reader(self, key: Rank) -> None:  # noqa: B027 - the order of arrival needs no more
        """Note that a reader of this replica has started."""

    def remove_reader(self, key: Rank) -> None:  # noqa: B027 - as above
        """Note that a reader of this replica has ended."""

    def complete(self) -> None:  # noqa: B027 - as above
        """Note that no other reader starts."""

    @abstractmethod
    async def put(self, key: Rank, lines: Sequence[MergedLine]) -> None:
        """Pass on the next lines of a replica, once there is room."""

    @abstractmethod
    async def end(self, error: Exception | None) -> None:
        """End the channel, for the client with this error."""

    @abstractmethod
    def batches(self) -> AsyncGenerator[Sequence[MergedLine], None]:
        """Yield the lines of all readers, and raise the error of the end."""


class ArrivalOrder(LineChannel):
    """Passes on lines as they arrive: the order for logs that are followed, of which any can be silent for hours."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[Sequence[MergedLine] | Exception | None] = asyncio.Queue(_WAITING)

    @override
    async def put(self, key: Rank, lines: Sequence[MergedLine]) -> None:
        await self.waiting.put(lines)

    @override
    async def end(self, error: Exception | None) -> None:
        await self.waiting.put(error)

    @override
    async def batches(self) -> AsyncGenerator[Sequence[MergedLine], None]:
        while (batch := await self.waiting.get()) is not None:
            if isinstance(batch, Exception):
                raise batch
            yield batch


class TimeOrder(LineChannel):
    """Passes on the lines of logs that end in the order of their times.

    The next line is known once each log has a line or has ended, so all logs are open at once. One batch of each waits.
    """

    def __init__(self) -> None:
        self._merge = TimeMerge()
        self._readers: Counter[Rank] = Counter()
        self._lines: dict[Rank, asyncio.Queue[Sequence[MergedLine] | None]] = {}
        self.room: dict[Rank, asyncio.Semaphore] = {}
        self._is_complete = asyncio.Event()
        self._error: Exception | None = None

    @override
    def add_reader(self, key: Rank) -> None:
        self._readers[key] += 1
        if key not in self._lines:
            self._merge.open(key)
            self._lines[key], self.room[key] = asyncio.Queue(), asyncio.Semaphore(1)

    @override
    def remove_reader(self, key: Rank) -> None:
        self._readers[key] -= 1
        if not self._readers[key]:
            self._lines[key].put_nowait(None)

    @override
    def complete(self) -> None:
        self._is_complete.set()

    @override
    async def put(self, key: Rank, lines: Sequence[MergedLine]) -> None:
        await self.room[key].acquire()
        self._lines[key].put_nowait(lines)

    @override
    async def end(self, error: Exception | None) -> None:
        self._error = error
        self._is_complete.set()
        for lines in self._lines.values():
            lines.put_nowait(None)

    @override
    async def batches(self) -> AsyncGenerator[Sequence[MergedLine], None]:
        await self._is_complete.wait()
        while missing := self._merge.missing():
            for key in missing:
                await self._receive(key)
            if lines := self._merge.take():
                yield lines
        if self._error is not None:
            raise self._error

    async def _receive(self, key: Rank) -> None:
        lines = await self._lines[key].get()
        if lines is None:
            self._merge.close(key)
        else:
            self.room[key].release()
            self._merge.push(key, lines)
