"""The access log, and the spans of requests. The middleware is installed only if one of them is on."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override

from app.api.answer_status import AnswerStatus
from app.api.head_requests import is_head
from app.telemetry import log_fields, trace_context, tracing
from app.telemetry.log_fields import RequestFields
from app.telemetry.tracing import Span, SpanKind

# Probes and scrapes arrive every few seconds from every node. Only those that fail are logged.
_PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
# Characters. A request line may have 64 KiB.
_MAX_PATH: Final = 1024
_FIELDS: Final = "jobgate.request_fields"  # the key in the scope
# Those of OpenTelemetry. A client may send any method, and the name of a span must not repeat what a client sends.
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})

log = structlog.get_logger(__name__)


def begin_request(scope: Scope) -> RequestFields:
    """Return the log fields of the request. The first call for a request adds them, and its trace, to log lines."""
    fields: RequestFields | None = scope.get(_FIELDS)
    if fields is None:
        fields = scope[_FIELDS] = RequestFields()
        note_request(fields, scope["headers"])
    return fields


def note_request(fields: RequestFields, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Add the fields, and the trace of a request with these headers, to the log lines of the current task."""
    log_fields.set_request(fields)
    trace_context.set_current(trace_context.from_headers(headers))


class _Answer(AnswerStatus):
    """The answer to a request whose log fields get the request id of the answer: not every layer adds it there."""

    def __init__(self, fields: RequestFields) -> None:
        super().__init__()
        self._fields = fields

    @override
    def note_sent(self, message: Message) -> None:
        super().note_sent(message)
        if message["type"] == "http.response.start":
            for name, value in message.get("headers", ()):
                if name == b"x-request-id":
                    self._fields.request_id = value.decode("latin-1")


class RequestTelemetry:
    """Middleware that writes one line for each request when it ends, and records it as a span if spans are exported."""

    def __init__(self, app: ASGIApp, *, access_log: bool) -> None:
        self._app = app
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        fields = begin_request(scope)
        answer = _Answer(fields)
        began = time.perf_counter()

        is_probe = scope["path"] in _PROBES
        with _server_span(scope) if tracing.is_on() and not is_probe else nullcontext() as span:
            error: Exception | None = None
            try:
                await self._app(scope, answer.received_by(receive), answer.sent_by(send))
            except Exception as raised:
                error = raised
                raise
            finally:
                status = answer.ended(error)
                if span is not None:
                    _complete(span, scope, status)
                if self._access_log and (not is_probe or status >= 400):
                    _write_line(scope, answer, status, time.perf_counter() - began)


def _write_line(scope: Scope, answer: _Answer, status: int, seconds: float) -> None:
    client = scope.get("client")
    write_line(
        method=_method(scope),
        route=_route(scope),
        path=scope["path"],
        status=status,
        seconds=seconds,
        size=0 if is_head(scope) else answer.size,
        client=client[0] if client else None,
        is_complete=answer.is_complete,
    )


def write_line(
    *,
    method: str,
    route: str | None,
    path: str,
    status: int,
    seconds: float,
    size: int,
    client: str | None,
    is_complete: bool = True,
) -> None:
    """Write the line of a request to the access log. `size` is the length of the body that was sent."""
    # The query is left out: clients put tokens there.
    more: dict[str, Any] = {} if is_complete else {"incomplete": True}
    log.info(
        "http.request",
        method=method,
        route=route,
        path=path[:_MAX_PATH],
        status=status,
        duration=round(seconds, 6),
        bytes=size,
        client=client,
        **more,
    )


def _method(scope: Scope) -> str:
    return "HEAD" if is_head(scope) else str(scope["method"])


def _route(scope: Scope) -> str | None:
    return getattr(scope.get("route"), "path", None)


def _server_span(scope: Scope) -> AbstractContextManager[Span]:
    method = _method(scope) if _method(scope) in _KNOWN_METHODS else "_OTHER"
    client, server = scope.get("client"), scope.get("server")
    attributes = {
        "http.request.method": method,
        "url.path": scope["path"][:_MAX_PATH],
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }
    if client:
        attributes["client.address"] = client[0]
    if server:
        attributes["server.address"] = server[0]
    return tracing.span(method, SpanKind.SERVER, parent=trace_context.current(), attributes=attributes)


def _complete(span: Span, scope: Scope, status: int) -> None:
    """Note the route and the status, which are known only now."""
    route = _route(scope)
    if route is not None:
        span.rename(f"{_method(scope)} {route}")  # a route has only known methods
        span.note({"http.route": route})
    span.note({"http.response.status_code": status})
    if status >= 500:
        span.fail(str(status))
