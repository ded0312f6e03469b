"""Limits on clients of the server, and the pure functions that decide which connection exceeds one."""

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

# File descriptors for database pools, connections to the cluster, logs, the event loop and files read by threads.
RESERVED_DESCRIPTORS: Final = 96
LINGER_SECONDS: Final = 2.0  # for a client to read an error answer, and for a closed transport to disappear
# Bytes of an answer that a client must take within the send timeout: 273 B/s at 60 s, slower than any real link.
MIN_TAKEN: Final = 16 * 1024
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits for one client and for all clients together, in seconds and bytes; `app.settings` explains the defaults.

    Args:
        max_header_bytes: size of the request line with its headers, checked every 4 KiB.
        max_connections: open connections.
        max_connections_per_address: open connections of one client address.
        header_timeout: from the connection, or the first byte of a later request, to the end of the headers.
        body_timeout: from the end of the headers to the end of the body.
        idle_timeout: between two requests of a connection.
        send_timeout: for a client to take the next `MIN_TAKEN` bytes of an answer, or the rest if it is smaller.
    """

    max_header_bytes: int = 64 * 1024
    max_connections: int = 6000
    max_connections_per_address: int = 3000
    header_timeout: float = 10.0
    body_timeout: float = 60.0
    idle_timeout: float = 75.0
    send_timeout: float = 60.0

    def fitting(self, descriptors: int) -> "ServerLimits":
        """Return these limits, with no more connections than fit into the given number of file descriptors.

        If the total has to be lowered, one address may hold at most half of the lowered total.
        """
        room = max(8, descriptors - RESERVED_DESCRIPTORS)
        if room >= self.max_connections:
            return self
        return replace(
            self,
            max_connections=room,
            max_connections_per_address=min(self.max_connections_per_address, room // 2),
        )


class ConnectionStage(enum.Enum):
    """What a connection is waiting for."""

    NEW = "new"  # connected, nothing received
    HEAD = "head"  # the client is sending the request line and headers
    BODY = "body"  # the client is sending the body
    ANSWER = "answer"  # the application is working on the request
    SENDING = "sending"  # answered; the client is reading the answer
    IDLE = "idle"  # answered; the next request may come
    REFUSED = "refused"  # an error answer was sent; the client may still read it
    CLOSING = "closing"  # closed; the transport still exists


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState(Generic[_T]):
    """The state of a connection at one time, as far as the limits depend on it.

    Args:
        waited: seconds that the server has waited for the client in this stage.
        behind: seconds since the client last took enough of the sent data; 0 if it has nothing to take.
    """

    connection: _T
    address: str
    stage: ConnectionStage
    waited: float
    behind: float = 0.0


@dataclass(frozen=True, slots=True)
class SendWindow:
    """The interval in which a client has taken less than `MIN_TAKEN` bytes of the sent data.

    The server writes nothing during the interval, so the client has taken every byte that leaves the write buffer.

    Args:
        began: when the client last completed `MIN_TAKEN` bytes.
        unsent: size of the write buffer when it was last measured.
        taken: bytes taken since `began`.
    """

    began: float
    unsent: int
    taken: int = 0

    def at(self, now: float, unsent: int) -> "SendWindow":
        """Return the window after another measurement: a new one if the client has taken enough."""
        taken = self.taken + max(0, self.unsent - unsent)
        return SendWindow(now, unsent) if taken >= MIN_TAKEN else SendWindow(self.began, unsent, taken)


class Overdue(enum.Enum):
    """The timeout that a client has exceeded."""

    HEAD = "head"
    BODY = "body"
    IDLE = "idle"
    SEND = "send"
    CLOSE = "close"


def overdue(state: ConnectionState[_T], limits: ServerLimits) -> Overdue | None:
    """Return the timeout that the connection has exceeded, if any."""
    if state.behind > limits.send_timeout:
        return Overdue.SEND
    allowed, finding = {
        ConnectionStage.NEW: (limits.header_timeout, Overdue.IDLE),
        ConnectionStage.HEAD: (limits.header_timeout, Overdue.HEAD),
        ConnectionStage.BODY: (limits.body_timeout, Overdue.BODY),
        ConnectionStage.IDLE: (limits.idle_timeout, Overdue.IDLE),
        ConnectionStage.REFUSED: (LINGER_SECONDS, Overdue.CLOSE),
        ConnectionStage.CLOSING: (LINGER_SECONDS, Overdue.CLOSE),
    }.get(state.stage, (float("inf"), None))
    return finding if state.waited > allowed else None


def connection_to_displace(states: Iterable[ConnectionState[_T]], address: str | None = None) -> _T | None:
    """Return the connection to close so that another one can be accepted, or None if all are in use.

    HTTP permits a server to close a connection without a request in progress; the client opens a new one. Among these,
    the function chooses the one that has waited longest, of `address` if given, else of the address with the most
    connections.
    """
    seen = [state for state in states if address in (None, state.address)]
    held = Counter(state.address for state in seen)
    waiting = (
        state for state in seen if state.stage in (ConnectionStage.NEW, ConnectionStage.HEAD, ConnectionStage.IDLE)
    )
    chosen = max(waiting, key=lambda state: (held[state.address], state.waited), default=None)
    return None if chosen is None else chosen.connection
