"""The access log and the spans of requests."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import structlog
from starlette.types import Scope

from app.api.layers.answer import OutgoingAnswer
from app.http_server.draining import PROBES
from app.telemetry import trace_context, tracing
from app.telemetry.tracing import Span, SpanKind

# Characters. A request line may have 64 KiB.
_MAX_PATH: Final = 1024
# Those of OpenTelemetry. A client may send any method, and the name of a span must not repeat what a client sends.
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})

log = structlog.get_logger(__name__)


def write_line(scope: Scope, method: str, answer: OutgoingAnswer, status: int, seconds: float) -> None:
    """Write the line of a request to the access log; of a probe only if it fails. `method` is that of the client."""
    if scope["path"] in PROBES and status < 400:
        return
    client = scope.get("client")
    more: dict[str, Any] = {} if answer.is_complete else {"incomplete": True}
    # The query is left out: clients put tokens there.
    log.info(
        "http.request",
        method=method,
        route=route_of(scope),
        path=scope["path"][:_MAX_PATH],
        status=status,
        duration=round(seconds, 6),
        bytes=0 if method == "HEAD" else answer.size,
        client=client[0] if client else None,
        **more,
    )


def route_of(scope: Scope) -> str | None:
    """Return the template of the path of a request, once a route has been found for it."""
    return getattr(scope.get("route"), "path", None)


def server_span(scope: Scope, method: str) -> AbstractContextManager[Span | None]:
    """Return the span of a request, which is the current trace context in the block; None for a probe."""
    if scope["path"] in PROBES:
        return nullcontext()
    client, server = scope.get("client"), scope.get("server")
    known = method if method in _KNOWN_METHODS else "_OTHER"
    attributes = {
        "http.request.method": known,
        "url.path": scope["path"][:_MAX_PATH],
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }
    if client:
        attributes["client.address"] = client[0]
    if server:
        attributes["server.address"] = server[0]
    return tracing.span(known, SpanKind.SERVER, parent=trace_context.current(), attributes=attributes)


def complete(span: Span, scope: Scope, method: str, status: int) -> None:
    """Note the route and the status, which are known only at the end of the request."""
    route = route_of(scope)
    if route is not None:
        span.rename(f"{method} {route}")  # a route has only known methods
        span.note({"http.route": route})
    span.note({"http.response.status_code": status})
    if status >= 500:
        span.fail(str(status))
