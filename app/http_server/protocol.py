"""One connection of a client: uvicorn's protocol with limits on what the client sends, and how slowly."""

import asyncio
from collections.abc import Callable
from typing import Final

import httptools
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.http_server import answers
from app.http_server.answers import Refusal
from app.http_server.limits import Overdue, ServerLimits, Stage, Standing
from app.http_server.metrics import REFUSALS

MAX_HEADER_FIELDS: Final = 200
# The parser cannot be interrupted within a piece; a piece bounds what it makes of pipelined requests and tiny chunks.
_PIECE: Final = 4096
_READ_BYTES: Final = 64 * 1024
# What a client may still send after its answer before it is cut off: a whole body, since many clients read the answer
# only when they have sent everything.
_DISCARDED_BYTES: Final = 4 * 1024 * 1024
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
        self._blocked_since: float | None = None
        self._refusal: Refusal | None = None
        self._upgrading = False
        self._unparsed = b""
        self._span = 0  # bytes of the present head, or since the last content of the body
        self._discarded = 0

    @property
    def stage(self) -> Stage:
        if self.transport.is_closing():
            return Stage.CLOSING
        if self._refusal is not None:
            return Stage.ANSWER if self._answers() else Stage.REFUSED
        if self._reading is Stage.BODY and not self._answers():
            return Stage.IDLE  # answered without its body: the slot can be given to another client
        if self._reading is not None:
            return self._reading
        if self._latest is None:
            return Stage.NEW
        return Stage.ANSWER if self._answers() else Stage.IDLE

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The latest request; uvicorn declares that there always is one."""
        return self.cycle

    def _answers(self) -> bool:
        """Whether the application still has an answer to give."""
        latest = self._latest
        return latest is not None and not latest.response_complete and not latest.disconnected

    def standing(self, now: float) -> Standing["GuardedProtocol"]:
        stage, since = self.stage, self._since
        if stage is Stage.CLOSING:
            since = self._closing_since = self._closing_since or now
        elif stage in (Stage.HEAD, Stage.BODY) and self.flow.read_paused:
            since = self._since = now  # it is not the client that is slow
        blocked = 0.0 if self._blocked_since is None else now - self._blocked_since
        return Standing(connection=self, address=self.address, stage=stage, waited=now - since, blocked=blocked)

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
        """Answer what can still be answered, take no further request, and close once the client has read it."""
        if self._refusal is not None or self.transport.is_closing():
            return
        REFUSALS.labels(refusal.reason).inc()
        within_body = self._reading is Stage.BODY
        self._refusal, self._unparsed, self._since = refusal, b"", self.loop.time()
        if self._answers():
            self.cycle.keep_alive = False
            if not within_body:
                return  # an earlier request is being answered, and its answer closes the connection
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        self.flow.resume_reading()
        self.transport.write(refusal.wire(self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        super().connection_made(transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unparsed = b""
        self._on_lost(self)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._blocked_since = self.loop.time()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._blocked_since = None

    @override
    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._discard(len(data))
            return
        self._unparsed += data
        self._parse()
        if self._unparsed:
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
        self._reading, self._since, self._span = Stage.BODY, self.loop.time(), 0
        super().on_headers_complete()
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
        self._since = self.loop.time()
        if self._refusal is not None and not self._answers():
            self.transport.close()
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
