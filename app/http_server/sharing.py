"""Balances connections between processes that accept on one socket.

The kernel wakes every idle process for a new connection, and the one that is first accepts it: without more, one
process may get most of the connections, which keep-alive and streams then keep for hours. So each process publishes how
many it holds, and one that holds more than another gives that one a moment to accept first.
"""

import mmap
from typing import Final

_NOT_ACCEPTING: Final = 2**32 - 1


class ConnectionTable:
    """The number of open connections of each process, in memory that forked processes share."""

    def __init__(self, processes: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 4 * processes)).cast("I")
        for process in range(processes):
            self.withdraw(process)

    def withdraw(self, process: int) -> None:
        """Note that a process does not accept connections."""
        self._counts[process] = _NOT_ACCEPTING

    def share_of(self, process: int) -> "ConnectionShare":
        return ConnectionShare(self, process, self._counts)


class ConnectionShare:
    """The part of one process. Each process writes only its own number, so no lock is needed."""

    def __init__(self, table: ConnectionTable, process: int, counts: memoryview) -> None:
        self._table = table
        self._process = process
        self._counts = counts

    def publish(self, connections: int) -> None:
        self._counts[self._process] = connections

    def withdraw(self) -> None:
        self._table.withdraw(self._process)

    def another_holds_fewer(self) -> bool:
        return min(self._counts) < self._counts[self._process]
