"""The connection between the supervisor and one of its processes: a pair of sockets, inherited by fork.

A process sends one byte when it is ready, and one when it has drained; the supervisor sends one byte for each order.
The end of the connection shows each side that the other one has ended.
"""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Final

READY: Final = b"r"
DRAINED: Final = b"q"


class Order(Enum):
    """What a process must do, as sent by its supervisor. Signals from outside are for the supervisor alone."""

    DRAIN = b"d"
    STOP = b"s"


class SupervisorLink:
    """The end of a process. `drain` and `stop` are set when the supervisor orders it.

    The end of the supervisor counts as the order to stop, so that no process survives it.

    Args:
        connection: to the supervisor.
        name: of this process.
        supervisor: process id of the supervisor.
    """

    def __init__(self, connection: socket.socket, name: str, supervisor: int) -> None:
        self.name = name
        self.drain = asyncio.Event()
        self.stop = asyncio.Event()
        self._connection = connection
        self._supervisor = supervisor

    def report_ready(self) -> None:
        self._report(READY)

    def report_drained(self) -> None:
        self._report(DRAINED)

    def _report(self, what: bytes) -> None:
        with suppress(OSError):  # the supervisor has ended, which `stop` reports
            self._connection.send(what)

    def check_supervisor(self) -> str | None:
        """Return what is wrong if the supervisor has ended, or None. Every thread may call this."""
        return None if os.getppid() == self._supervisor else "the supervisor has ended"

    @contextmanager
    def obey_orders(self) -> Iterator[None]:
        """Receive orders in the running event loop during the block."""
        loop = asyncio.get_running_loop()
        self._connection.settimeout(0)
        loop.add_reader(self._connection, self._receive)
        try:
            yield
        finally:
            loop.remove_reader(self._connection)

    def _receive(self) -> None:
        try:
            orders = self._connection.recv(64)
        except BlockingIOError:
            return
        except OSError:
            orders = b""
        if Order.DRAIN.value in orders:
            self.drain.set()
        if Order.STOP.value in orders or not orders:
            asyncio.get_running_loop().remove_reader(self._connection)
            self.stop.set()
