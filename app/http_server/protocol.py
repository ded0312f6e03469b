"""One client connection: uvicorn's protocol with limits on the size and the speed of what the client sends."""

import asyncio
import re
from collections.abc import Callable
from typing import Final

import httptools
from typing_extensions import override
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.fairness.share import SHARE, FairShares
from app.http_server.draining import PROBES, Arrivals
from app.http_server.error_answers import ErrorAnswer, RefusalReason
from app.http_server.limits import ConnectionStage, ConnectionState, Overdue, SendWindow, ServerLimits
from app.http_server.metrics import REFUSALS

MAX_HEADER_FIELDS: Final = 200
# The parser cannot be interrupted within one call. The size of its input bounds the work for pipelined requests and for
# tiny chunks.
_PIECE: Final = 4096
_READ_BYTES: Final = 64 * 1024
# Bytes that a client may send after an early answer before the connection is aborted. A whole body must fit, because
# many clients read the answer only after they have sent the request.
_DISCARDED_BYTES: Final = 4 * 1024 * 1024
# Bytes that a client may send before an earlier request is answered, or before the handler reads its body; then the
# server stops reading. It does not stop sooner, because it notices a disconnect only while it reads.
_AHEAD_BYTES: Final = 16 * 1024
_VERSIONS: Final = frozenset({"1.0", "1.1"})
# RFC 9112, section 3.2, and RFC 3986, section 3.2.2. It may be empty.
_HOST: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]*)(?::[0-9]*)?")
_UPGRADE_FIELDS: Final = frozenset({b"upgrade", b"http2-settings"})


class _Refused(Exception):  # noqa: N818 - a signal from a callback of the parser to its caller
    """Raised in a callback of the parser with the error answer to send."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on bytes and headers, and with the stage that timeouts depend on.

    The acceptor checks `state` regularly and calls `end_overdue` when a timeout is exceeded.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        *,
        limits: ServerLimits,
        address: str,
        on_lost: Callable[["GuardedProtocol"], None],
        shares: FairShares,
        arrivals: Arrivals,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self.address = address
        self._last_request = False
        self._limits = limits
        self._on_lost = on_lost
        self._shares = shares
        self._arrivals = arrivals
        self._reading: ConnectionStage | None = None  # HEAD or BODY while a request is incomplete
        self._since = self.loop.time()  # when the present stage began
        self._closing_since: float | None = None
        self._active: RequestResponseCycle | None = None  # the request whose handler was started last
        self._sending: SendWindow | None = None  # while sent data waits for the client
        self._refusal: ErrorAnswer | None = None
        self._upgrading = False
        self._unparsed = b""
        self._span = 0  # bytes of the current head, or framing since the last content of the body
        self._discarded = 0

    @property
    def stage(self) -> ConnectionStage:
        closing = self.transport.is_closing()
        if self._answers() and not closing:
            is_own_body = self._reading is ConnectionStage.BODY and not self.pipeline and self._refusal is None
            return ConnectionStage.BODY if is_own_body else ConnectionStage.ANSWER
        if self.transport.get_write_buffer_size():
            return ConnectionStage.SENDING
        if closing:
            return ConnectionStage.CLOSING
        if self._refusal is not None:
            return ConnectionStage.REFUSED
        if self._reading is ConnectionStage.HEAD:
            return ConnectionStage.HEAD
        # IDLE includes a request that was answered before the end of its body: the client decides whether to continue.
        return ConnectionStage.NEW if self._active is None else ConnectionStage.IDLE

    def _answers(self) -> bool:
        """Return whether an answer of the application is outstanding."""
        if self.pipeline and not self.transport.is_closing():
            return True
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def state(self, now: float) -> ConnectionState["GuardedProtocol"]:
        stage, since = self.stage, self._since
        if stage is ConnectionStage.CLOSING:
            since = self._closing_since = self._closing_since or now
        elif stage is ConnectionStage.SENDING or (stage is ConnectionStage.BODY and self.flow.read_paused):
            # Neither time spent on sending an answer nor time in which the server itself stopped reading counts.
            since = self._since = now
        return ConnectionState(
            connection=self, address=self.address, stage=stage, waited=now - since, behind=self._behind(stage, now)
        )

    def _behind(self, stage: ConnectionStage, now: float) -> float:
        """Return for how many seconds the client has read too slowly, or 0 if no data waits for the client.

        While a handler can still write, the size of the buffer does not show how much the client takes. The client is
        therefore checked only while the handler is paused or has finished.
        """
        unsent = self.transport.get_write_buffer_size()
        if not unsent or not (self.flow.write_paused or stage is ConnectionStage.SENDING):
            self._sending = None
            return 0.0
        self._sending = SendWindow(now, unsent) if self._sending is None else self._sending.at(now, unsent)
        return now - self._sending.began

    def abort(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def is_gone(self) -> bool:
        """Return whether the connection has ended."""
        return self.transport is None or self.transport.is_closing()

    def end_overdue(self, finding: Overdue) -> None:
        """Close the connection; answer 408 first if a request is incomplete."""
        if finding is Overdue.HEAD:
            self.refuse(ErrorAnswer(RefusalReason.HEADER_TIME, self._limits.header_timeout))
        elif finding is Overdue.BODY:
            self.refuse(ErrorAnswer(RefusalReason.BODY_TIME, self._limits.body_timeout))
        elif finding is Overdue.IDLE:
            self.transport.close()
        else:
            if finding is Overdue.SEND:
                REFUSALS.labels("send_time").inc()
            self.transport.abort()

    def refuse(self, refusal: ErrorAnswer) -> None:
        """Accept no further request, finish the earlier answers, send the error answer, and close the connection."""
        if self._refusal is not None or self.transport.is_closing():
            return
        REFUSALS.labels(refusal.reason).inc()
        self._refusal, self._unparsed, self._since = refusal, b"", self.loop.time()
        self.flow.resume_reading()
        if self._reading is ConnectionStage.BODY:
            if self.cycle.response_complete:
                # The request has been answered: the client would take a second answer for that to its next request.
                self._send_last(b"")
                return
            self._withdraw()
        if not self._answers():
            self._send_refusal(refusal)

    def _withdraw(self) -> None:
        """Remove the request whose body is invalid: drop it if queued, else report a disconnect to its handler."""
        if self.pipeline:
            self.pipeline.popleft()
            return
        self._report_disconnect(self.cycle)
        if self.cycle.response_started:
            self.transport.close()  # an error answer cannot follow half an answer

    def _send_refusal(self, refusal: ErrorAnswer) -> None:
        self._send_last(refusal.encode(self.server_state.default_headers))

    def _send_last(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._since = self.loop.time()
        self.transport.write(data)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def expect_last_request(self) -> None:
        """Close the connection after its next answer, whose head announces this.

        An answer whose head has been sent is not the last: the client does not expect the connection to close after it,
        and may already have sent its next request.
        """
        self._last_request = True
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    @staticmethod
    def _report_disconnect(cycle: RequestResponseCycle) -> None:
        if not cycle.response_complete:
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False  # nothing may be written any more
            cycle.message_event.set()

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._active = cycle
        credential = next((value for name, value in cycle.scope["headers"] if name == b"authorization"), None)
        cycle.scope[SHARE] = self._shares.share(self.address, credential, self)  # type: ignore[typeddict-unknown-key]
        super()._start_asgi_task(cycle, app)

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        super().connection_made(transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._active is not None:
            self._report_disconnect(self._active)  # uvicorn informs only the latest request, which may still be queued
        self.pipeline.clear()
        super().connection_lost(exc)
        self._unparsed = b""
        self._on_lost(self)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._sending = None  # the buffer fell below its low mark, so the client has taken more than MIN_TAKEN

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
        """Parse until a request has to wait for the answer to an earlier request."""
        while self._unparsed and not self.pipeline and self._refusal is None and self.parser is not None:
            piece, self._unparsed = self._unparsed[:_PIECE], self._unparsed[_PIECE:]
            self._feed(piece)

    def _feed(self, piece: bytes) -> None:
        self._span += len(piece)
        if self._reading is ConnectionStage.BODY and self.cycle.response_complete:  # nothing will read this body
            self._discard(len(piece))
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._continue_without_upgrade(piece[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            reason = error.__context__
            self.refuse(reason.args[0] if isinstance(reason, _Refused) else ErrorAnswer(RefusalReason.MALFORMED))
        else:
            self._check_span()

    def _check_span(self) -> None:
        limit = self._limits.max_header_bytes
        if self._span <= limit:
            return
        if self._reading is ConnectionStage.BODY:
            self.refuse(ErrorAnswer(RefusalReason.FRAMING, limit))
        elif self._reading is ConnectionStage.HEAD:
            # The parser reports the target in pieces: a target that fills all but the last piece is the cause.
            in_target = len(self.url) > limit - _PIECE
            self.refuse(ErrorAnswer(RefusalReason.TARGET_BYTES if in_target else RefusalReason.HEADER_BYTES, limit))

    def _discard(self, count: int) -> None:
        self._discarded += count
        if self._discarded > _DISCARDED_BYTES:
            self.transport.abort()

    def _continue_without_upgrade(self, rest: bytes) -> None:
        """Parse the request again without its upgrade fields, because the parser skips the body of an upgrade."""
        self._upgrading = False
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        lines += [b"%b: %b" % field for field in _without_upgrade(self.headers)]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(lines) + b"\r\n\r\n")
        self._unparsed = rest + self._unparsed

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading, self._since, self._span = ConnectionStage.HEAD, self.loop.time(), 0
        self._discarded = 0

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reading is not ConnectionStage.HEAD:
            return  # a trailer field, which the application never sees
        if len(self.headers) >= MAX_HEADER_FIELDS:
            raise _Refused(ErrorAnswer(RefusalReason.HEADER_COUNT, MAX_HEADER_FIELDS))
        super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise _Refused(ErrorAnswer(RefusalReason.CONNECT))
            self._upgrading = True
            return
        if refusal := _refusal_of_head(self.parser.get_http_version(), self.headers):
            raise _Refused(ErrorAnswer(refusal))
        if self.url.partition(b"?")[0].decode(errors="replace") not in PROBES:
            self._arrivals.requests += 1
        super().on_headers_complete()
        self._reading, self._since, self._span = ConnectionStage.BODY, self.loop.time(), 0
        if self.pipeline:
            self.flow.resume_reading()  # uvicorn pauses reading, and then a disconnect goes unnoticed
        if self._last_request:
            self.cycle.keep_alive = False

    @override
    def on_body(self, body: bytes) -> None:
        self._span = 0
        super().on_body(body)
        if len(self.cycle.body) > _AHEAD_BYTES:
            self.flow.pause_reading()

    @override
    def on_message_complete(self) -> None:
        if self._upgrading:
            return
        super().on_message_complete()
        self._reading, self._since = None, self.loop.time()

    @override
    def on_response_complete(self) -> None:
        # Not uvicorn's method, which also starts a timer of its own: the acceptor closes idle connections.
        self.server_state.total_requests += 1
        if self._active is not None:
            self._active.body.clear()  # nothing will read it
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        self._since, self._sending = self.loop.time(), None
        if self._refusal is not None and not self._answers():
            self._send_refusal(self._refusal)
        elif self._unparsed:
            self.loop.call_soon(self._parse)  # not from here: this runs inside the handler of the answered request


def _refusal_of_head(version: str, headers: list[tuple[bytes, bytes]]) -> RefusalReason | None:
    """Return why the server refuses a head, as RFC 9112 requires: the parser also accepts HTTP/0.9 and HTTP/2.0."""
    if version not in _VERSIONS:
        return RefusalReason.VERSION
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) == 1:
        return None if _HOST.fullmatch(hosts[0]) else RefusalReason.HOST
    return RefusalReason.HOST if hosts or version == "1.1" else None


def _without_upgrade(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the header fields without those that request an upgrade."""
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
