"""One connection of a client: uvicorn's protocol with limits on what the client sends, and how slowly."""

import asyncio
from collections.abc import Callable
from typing import Final

import httptools
from typing_extensions import override
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.http_server import answers
from app.http_server.answers import Refusal
from app.http_server.limits import Overdue, SendWindow, ServerLimits, Stage, Standing
from app.http_server.metrics import REFUSALS

MAX_HEADER_FIELDS: Final = 200
# The parser cannot be interrupted within a piece; a piece bounds what it makes of pipelined requests and tiny chunks.
_PIECE: Final = 4096
_READ_BYTES: Final = 64 * 1024
# What a client may still send after its answer before it is cut off: a whole body, since many clients read the answer
# only when they have sent everything.
_DISCARDED_BYTES: Final = 4 * 1024 * 1024
# What a client may send ahead of an answer before the server stops reading. While it reads, it sees the client leave.
_AHEAD_BYTES: Final = 16 * 1024
_UPGRADE_FIELDS: Final = frozenset({b"upgrade", b"http2-settings"})


class _Refused(Exception):  # noqa: N818 - a signal from a callback of the parser to its caller
    """A callback of the parser found a reason to refuse the request."""


class GuardedProtocol(HttpToolsProtocol):
    """Feeds the parser in pieces, knows which stage the connection is in, and refuses what exceeds the limits.

    The owner looks at `standing` regularly and calls `end_overdue` when a limit of time has passed.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        *,
        limits: ServerLimits,
        address: str,
        on_lost: Callable[["GuardedProtocol"], None],
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self.address = address
        self.last_request = False  # set while the server drains: the next answer closes the connection
        self._limits = limits
        self._on_lost = on_lost
        self._reading: Stage | None = None  # HEAD or BODY while a request is incomplete
        self._since = self.loop.time()  # when the present stage began
        self._closing_since: float | None = None
        self._active: RequestResponseCycle | None = None  # the request whose handler was started last
        self._sending: SendWindow | None = None  # while the client has to take what was sent to it
        self._refusal: Refusal | None = None
        self._upgrading = False
        self._unparsed = b""
        self._span = 0  # bytes of the present head, or since the last content of the body
        self._discarded = 0

    @property
    def stage(self) -> Stage:
        closing = self.transport.is_closing()
        if self._answers() and not closing:
            is_own_body = self._reading is Stage.BODY and not self.pipeline and self._refusal is None
            return Stage.BODY if is_own_body else Stage.ANSWER
        if self.transport.get_write_buffer_size():
            return Stage.SENDING
        if closing:
            return Stage.CLOSING
        if self._refusal is not None:
            return Stage.REFUSED
        if self._reading is Stage.HEAD:
            return Stage.HEAD
        return Stage.NEW if self._active is None else Stage.IDLE  # also when answered before the end of the body

    def _answers(self) -> bool:
        """Whether the application still has an answer to give."""
        if self.pipeline and not self.transport.is_closing():
            return True
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def standing(self, now: float) -> Standing["GuardedProtocol"]:
        stage, since = self.stage, self._since
        if stage is Stage.CLOSING:
            since = self._closing_since = self._closing_since or now
        elif stage is Stage.SENDING or (stage is Stage.BODY and self.flow.read_paused):
            since = self._since = now  # the time of the next stage begins later
        return Standing(
            connection=self, address=self.address, stage=stage, waited=now - since, behind=self._behind(stage, now)
        )

    def _behind(self, stage: Stage, now: float) -> float:
        """How long the client has been taking too little of what was sent to it; 0 if it has to take nothing.

        A handler that may still write hides what the client takes. It is therefore judged only while it is paused.
        """
        unsent = self.transport.get_write_buffer_size()
        if not unsent or not (self.flow.write_paused or stage is Stage.SENDING):
            self._sending = None
            return 0.0
        self._sending = SendWindow(now, unsent) if self._sending is None else self._sending.at(now, unsent)
        return now - self._sending.began

    def end_overdue(self, finding: Overdue) -> None:
        """Answer 408 where a request is incomplete, and close the connection."""
        if finding is Overdue.HEAD:
            self.refuse(answers.headers_too_slow(self._limits.header_timeout))
        elif finding is Overdue.BODY:
            self.refuse(answers.body_too_slow(self._limits.body_timeout))
        elif finding is Overdue.IDLE:
            self.transport.close()
        else:
            if finding is Overdue.SEND:
                REFUSALS.labels("send_time").inc()
            self.transport.abort()

    def refuse(self, refusal: Refusal) -> None:
        """Take no further request, answer the earlier ones and then this one, and close once the client has read it."""
        if self._refusal is not None or self.transport.is_closing():
            return
        REFUSALS.labels(refusal.reason).inc()
        self._refusal, self._unparsed, self._since = refusal, b"", self.loop.time()
        self.flow.resume_reading()
        if self._reading is Stage.BODY:
            if self.cycle.response_complete:
                self._send_last(b"")  # a request gets one answer
                return
            self._withdraw()
        if not self._answers():
            self._send_last(self._wire(refusal))

    def _withdraw(self) -> None:
        """Take the latest request from the application; its body is at fault."""
        if self.pipeline:
            self.pipeline.popleft()
            return
        self._tell_disconnected(self.cycle)
        if self.cycle.response_started:
            self.transport.close()

    def _wire(self, refusal: Refusal) -> bytes:
        return refusal.wire(self.server_state.default_headers)

    def _send_last(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._since = self.loop.time()
        self.transport.write(data)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    @staticmethod
    def _tell_disconnected(cycle: RequestResponseCycle) -> None:
        if not cycle.response_complete:
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False  # nothing may be written any more
            cycle.message_event.set()

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        super().connection_made(transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._active is not None:
            self._tell_disconnected(self._active)  # uvicorn tells only the latest request, which may be a pending one
        self.pipeline.clear()
        super().connection_lost(exc)
        self._unparsed = b""
        self._on_lost(self)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._sending = None  # the client took more than a window asks for

    @override
    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._discard(len(data))
            return
        self._unparsed += data
        self._parse()
        if len(self._unparsed) > _AHEAD_BYTES:
            self.flow.pause_reading()

    def _parse(self) -> None:
        """Parse until a request has to wait for the answer to an earlier one."""
        while self._unparsed and not self.pipeline and self._refusal is None and self.parser is not None:
            piece, self._unparsed = self._unparsed[:_PIECE], self._unparsed[_PIECE:]
            self._feed(piece)

    def _feed(self, piece: bytes) -> None:
        self._span += len(piece)
        if self._reading is Stage.BODY and self.cycle.response_complete:
            self._discard(len(piece))
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(piece[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            reason = error.__context__
            self.refuse(reason.args[0] if isinstance(reason, _Refused) else answers.MALFORMED)
        else:
            self._check_span()

    def _check_span(self) -> None:
        limit = self._limits.max_header_bytes
        if self._span <= limit:
            return
        if self._reading is Stage.BODY:
            self.refuse(answers.framing_too_large(limit))
        elif self._reading is Stage.HEAD:
            in_target = len(self.url) > limit - _PIECE
            self.refuse(answers.target_too_long(limit) if in_target else answers.headers_too_large(limit))

    def _discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > _DISCARDED_BYTES:
            self.transport.abort()

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Parse the request again as one that asks for no upgrade: the parser skips the body of one that does."""
        self._upgrading = False
        method, version = self.scope["method"].encode(), self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [b"%b: %b" % field for field in _without_upgrade(self.headers)]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(lines) + b"\r\n\r\n")
        self._unparsed = rest + self._unparsed

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading, self._since, self._span = Stage.HEAD, self.loop.time(), 0
        self._discarded = 0

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is not Stage.HEAD:
            return  # a trailer, which nothing here reads
        if len(self.headers) >= MAX_HEADER_FIELDS:
            raise _Refused(answers.too_many_headers(MAX_HEADER_FIELDS))
        super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise _Refused(answers.CONNECT)
            self.scope["method"] = self.parser.get_method().decode("ascii")
            self._upgrading = True
            return
        super().on_headers_complete()
        self._reading, self._since, self._span = Stage.BODY, self.loop.time(), 0
        if self.pipeline:
            self.flow.resume_reading()  # uvicorn pauses it, and then nobody sees the client leave
        if self.last_request:
            self.cycle.keep_alive = False

    @override
    def on_body(self, body: bytes) -> None:
        self._span = 0
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        if self._upgrading:
            return
        super().on_message_complete()
        self._reading, self._since = None, self.loop.time()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unset_keepalive_if_required()  # the owner ends idle connections
        self._since, self._sending = self.loop.time(), None
        if self._refusal is not None and not self._answers():
            self._send_last(self._wire(self._refusal))
        elif self._unparsed:
            self.loop.call_soon(self._parse)


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The fields without those that ask for another protocol."""
    kept = []
    for name, value in headers:
        if name in _UPGRADE_FIELDS:
            continue
        if name == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            rest = b", ".join(token for token in tokens if token.lower() not in _UPGRADE_FIELDS)
            if not rest:
                continue
            kept.append((name, rest))
        else:
            kept.append((name, value))
    return kept
