"""What one client, and all clients together, may take of the server; and the decisions that follow from it. Pure."""

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

# The database pools, cluster connections, logs, the event loop itself and the files of a thread pool need descriptors.
RESERVED_DESCRIPTORS: Final = 96
LINGER_SECONDS: Final = 2.0  # for a refused client to read its answer, and for a closed transport to end
# What a client has to take of an answer within the send timeout: at 60 s a rate of 273 B/s, far below any modem's.
MIN_TAKEN: Final = 16 * 1024
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Times are seconds. `app.settings` gives the reason for each default.

    Args:
        max_header_bytes: size of a request line with its headers; it is checked every 4 KiB.
        max_connections: open connections.
        max_connections_per_address: open connections of one client address.
        header_timeout: from the connection, or the first byte of a later request, to the end of the headers.
        body_timeout: from the end of the headers to the end of the body.
        idle_timeout: between two requests of a connection.
        send_timeout: for a client to take the next `MIN_TAKEN` bytes of an answer, or the rest if that is less.
    """

    max_header_bytes: int = 64 * 1024
    max_connections: int = 6000
    max_connections_per_address: int = 3000
    header_timeout: float = 10.0
    body_timeout: float = 60.0
    idle_timeout: float = 75.0
    send_timeout: float = 60.0

    def fitting(self, descriptors: int) -> "ServerLimits":
        """The same limits with no more connections than a process with that many file descriptors can hold.

        Where that lowers the total, no address may hold more than half of it.
        """
        room = max(8, descriptors - RESERVED_DESCRIPTORS)
        if room >= self.max_connections:
            return self
        return replace(
            self,
            max_connections=room,
            max_connections_per_address=min(self.max_connections_per_address, room // 2),
        )


class Stage(enum.Enum):
    """Whose turn it is on a connection."""

    NEW = "new"  # connected, nothing received
    HEAD = "head"  # the client sends the request line and headers
    BODY = "body"  # the client sends the body
    ANSWER = "answer"  # the application works on the request
    SENDING = "sending"  # answered; the client takes the answer
    IDLE = "idle"  # answered; the next request may come
    REFUSED = "refused"  # refused; the client may still read why
    CLOSING = "closing"  # closed; the transport has not ended yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Generic[_T]):
    """A connection as the decisions below see it; `waited` and `behind` are seconds.

    Args:
        waited: in this stage, for the client.
        behind: since the client last had taken enough of what was sent to it; 0 if it has to take nothing.
    """

    connection: _T
    address: str
    stage: Stage
    waited: float
    behind: float = 0.0


@dataclass(frozen=True, slots=True)
class SendWindow:
    """The time since which a client has taken less than `MIN_TAKEN` of what was sent to it.

    Nothing is sent within a window, so that the client has taken whatever the write buffer loses.

    Args:
        began: when the client had last taken enough.
        unsent: size of the write buffer at the last look.
        taken: bytes taken since `began`.
    """

    began: float
    unsent: int
    taken: int = 0

    def at(self, now: float, unsent: int) -> "SendWindow":
        """The window after another look; a new one if the client has taken enough."""
        taken = self.taken + max(0, self.unsent - unsent)
        return SendWindow(now, unsent) if taken >= MIN_TAKEN else SendWindow(self.began, unsent, taken)


class Overdue(enum.Enum):
    """What a client has been too slow with."""

    HEAD = "head"
    BODY = "body"
    IDLE = "idle"
    SEND = "send"
    CLOSE = "close"


def overdue(standing: Standing[_T], limits: ServerLimits) -> Overdue | None:
    """Which limit of time the connection has passed, if any."""
    if standing.behind > limits.send_timeout:
        return Overdue.SEND
    allowed, finding = {
        Stage.NEW: (limits.header_timeout, Overdue.IDLE),
        Stage.HEAD: (limits.header_timeout, Overdue.HEAD),
        Stage.BODY: (limits.body_timeout, Overdue.BODY),
        Stage.IDLE: (limits.idle_timeout, Overdue.IDLE),
        Stage.REFUSED: (LINGER_SECONDS, Overdue.CLOSE),
        Stage.CLOSING: (LINGER_SECONDS, Overdue.CLOSE),
    }.get(standing.stage, (float("inf"), None))
    return finding if standing.waited > allowed else None


def dispensable(standings: Iterable[Standing[_T]], address: str | None = None) -> _T | None:
    """The connection to close so that another one can be accepted; None if each is in use.

    A client may lose a connection on which nothing is under way at any time and opens another one. Of these the one
    that has waited longest is chosen, of the address that holds most connections, or of `address`.
    """
    seen = [standing for standing in standings if address in (None, standing.address)]
    held = Counter(standing.address for standing in seen)
    waiting = (standing for standing in seen if standing.stage in (Stage.NEW, Stage.HEAD, Stage.IDLE))
    chosen = max(waiting, key=lambda standing: (held[standing.address], standing.waited), default=None)
    return None if chosen is None else chosen.connection
