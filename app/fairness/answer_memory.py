"""The memory for answers: from the decoding of a body or the read of rows until the client has taken the bytes."""

import asyncio
from collections.abc import Hashable
from typing import Final, Protocol

from app.fairness.fair_memory import FairMemory, NoRoomError

MAX_BYTES: Final = 64 * 1024 * 1024
"""The bytes of all answers in progress. Four lists, or two large jobs, are read at once."""
_MOST_WAITING: Final = 1_000_000  # every waiting request has a connection, and their limit is lower


class Client(Protocol):
    """The connection of a client."""

    def abort(self) -> None:
        """End the connection at once."""

    def is_gone(self) -> bool:
        """Return whether the connection has ended."""


class HeldAnswer:
    """The bytes that one request holds. It releases them at its end."""

    def __init__(self, memory: FairMemory, key: Hashable, client: Client) -> None:
        self.key = key
        self.since = float("inf")  # until the answer is sent, it does not wait for its client
        self.held = 0
        self._memory = memory
        self._client = client

    async def hold(self, count: int) -> None:
        """Hold this number of bytes in place of those that the request holds. It waits for room only if it holds none.

        An answer that would wait for more, while it holds some, could wait for another one that does the same.

        Raises:
            NoRoomError: there was no room in time, or the client has gone meanwhile.
        """
        if not self.held and count:
            await self._memory.take(self, count)
            if self._client.is_gone():
                self.release()
                raise NoRoomError
        else:
            self.resize(count)

    def resize(self, count: int) -> None:
        """Hold this number of bytes, which the process has already."""
        self._memory.change(self, count)

    def begin_sending(self) -> None:
        self.since = asyncio.get_running_loop().time()

    def evict(self) -> None:
        self._client.abort()
        self._memory.count(self, 0)

    def release(self) -> None:
        self.since = float("inf")
        if self.held:
            self._memory.change(self, 0)


def answer_memory(max_bytes: int = MAX_BYTES) -> FairMemory:
    """Return the memory for the answers of one event loop."""
    return FairMemory(max_bytes, max_waiting=_MOST_WAITING)
