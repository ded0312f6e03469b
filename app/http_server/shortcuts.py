"""Requests that a shortcut answers in place of the ASGI application.

    head of a request ─▶ shortcut ─▶ handler ─▶ answer ─▶ one write
                           └ None: the ASGI application handles the request

ASGI describes requests and answers with dictionaries and messages, which cost more than a short answer itself. A
shortcut gets the request line and the header fields, and gives a status, encoded header fields and a body. Limits,
timeouts, the order of pipelined requests, flow control and the drain are those of all requests: `ShortCycle` takes the
place of the object with which uvicorn's protocol follows a request. Decision 0039 has the reasons.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from typing_extensions import override
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from app.http_server.writes import PIECE, write_both

_WITHOUT_LENGTH: Final = frozenset({204, 304})
_NOT_A_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

Field: TypeAlias = tuple[bytes, bytes]


class ShortAnswer(NamedTuple):
    """The answer of a shortcut.

    Args:
        fields: the encoded header fields (`field_lines`), without those that the server adds: Date, Content-Length and
            Connection.
        closes: whether the connection closes after the answer.
    """

    status: int
    fields: bytes
    body: bytes = b""
    closes: bool = False


Respond: TypeAlias = Callable[[ShortAnswer], Awaitable[None]]
Handler: TypeAlias = Callable[[Respond], Awaitable[None]]
"""Answers one request by one call of its argument. It runs in a task, which is cancelled when the server ends."""


class Shortcut(Protocol):
    """Decides from its head whether a request takes the shortcut."""

    def __call__(self, method: bytes, target: bytes, fields: Sequence[Field], address: str) -> Handler | None:
        """Return the handler of the request, or None if the application handles it.

        The handler sees no body, so a request that may have one must not take the shortcut. Names of fields are in
        lower case. `address` is that of the client.
        """
        ...


def field_lines(fields: Iterable[Field]) -> bytes:
    """Return the encoded header fields.

    Raises:
        ValueError: a value contains a control character, which could begin another field.
    """
    lines = []
    for name, value in fields:
        if _NOT_A_VALUE.search(value):
            raise ValueError(f"the header field {name!r} has a value with control characters")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


class _NoEvent(asyncio.Event):
    """The event of a request for whose body nobody waits."""

    @override
    def set(self) -> None:
        pass


class ShortCycle(RequestResponseCycle):
    """A request that takes a shortcut, and its answer. Its state is that of uvicorn's cycle."""

    disconnected = False
    response_started = False
    response_complete = False
    message_event = _NoEvent()

    def __init__(
        self,
        transport: asyncio.Transport,
        flow: FlowControl,
        state: ServerState,
        *,
        keep_alive: bool,
        on_response: Callable[[], None],
    ) -> None:
        # Not that of the base class, whose attributes for bodies and for ASGI a shortcut does not need.
        self.transport = transport
        self.flow = flow
        self.keep_alive = keep_alive
        self.on_response = on_response
        self._state = state

    @override
    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run a handler, which takes the place of the application."""
        handler: Handler = app  # type: ignore[assignment]
        try:
            await handler(self.respond)
        finally:
            self.on_response = _ignore  # it refers to the connection, which refers to this
            if not self.response_complete:
                self.transport.close()

    async def respond(self, answer: ShortAnswer) -> None:
        """Send the answer, unless the client has gone."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected or self.response_started:
            return
        self.response_started = True
        write_both(self.transport, self._head(answer), answer.body[:PIECE])
        for begin in range(PIECE, len(answer.body), PIECE):
            if self.flow.write_paused:
                await self.flow.drain()
            if self.transport.is_closing():
                return
            self.transport.write(answer.body[begin : begin + PIECE])
        self.response_complete = True
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _head(self, answer: ShortAnswer) -> bytes:
        parts = [STATUS_LINE[answer.status]]
        for name, value in self._state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(answer.fields)
        if answer.status not in _WITHOUT_LENGTH:
            parts.append(b"content-length: %d\r\n" % len(answer.body))
        if answer.closes:
            self.keep_alive = False
        parts.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        return b"".join(parts)


def _ignore() -> None:
    pass
