"""Waits for connections to accept, and pauses a loop that accepts them while the process has no resources for more."""

import asyncio
import errno
import socket
from typing import Final

import structlog

log = structlog.get_logger(__name__)

# Errors of accept() that persist until a descriptor or kernel memory is free. All others concern a single client.
_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BACK_OFF: Final = 1.0  # seconds without accepting when the process has no file descriptor left
_LOG_PERIOD: Final = 60.0  # seconds between two lines about the same problem


class LogThrottle:
    """Limits log lines about one problem to one per period, because clients can cause the problem at any rate."""

    def __init__(self, period: float = _LOG_PERIOD) -> None:
        self._period = period
        self._next = float("-inf")
        self._dropped = 0

    def admit(self, now: float) -> int | None:
        """Return the number of lines dropped since the last one, or None if this line must be dropped too."""
        if now < self._next:
            self._dropped += 1
            return None
        dropped, self._dropped = self._dropped, 0
        self._next = now + self._period
        return dropped


class Shortage:
    """Pauses one accept loop while accept() fails for lack of resources. `event` is the event of its log lines.

    The connections wait in the queue of the socket meanwhile. Without a pause, the loop would use a whole core.
    """

    def __init__(self, event: str) -> None:
        self._event = event
        self._lines = LogThrottle()

    @staticmethod
    def causes(error: OSError) -> bool:
        """Return whether the error lasts. Other errors concern a client that disconnected before it was accepted."""
        return error.errno in _NO_RESOURCES

    async def pause(self, error: OSError, **details: object) -> None:
        if (dropped := self._lines.admit(asyncio.get_running_loop().time())) is not None:
            log.error(self._event, error=str(error), dropped=dropped, **details)
        await asyncio.sleep(_BACK_OFF)


async def readable(listening: socket.socket) -> None:
    """Wait until a connection can be accepted. Another process may accept it first."""
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(listening, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        if listening.fileno() >= 0:  # else its owner has closed it, and removed the reader before
            loop.remove_reader(listening)
