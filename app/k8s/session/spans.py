"""The spans of requests to the API server, named by verb and resource as in its audit log: `create pods`."""

import re
from contextlib import AbstractContextManager
from typing import Final
from urllib.parse import urlsplit

from app.telemetry import trace_context, tracing
from app.telemetry.tracing import Attributes, Span, SpanKind

_PATH: Final = re.compile(
    r"/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>.+))?)?"
)
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def request_name(method: str, path: str) -> str:
    """Return verb and resource of a request, or the method if the path is that of no resource."""
    match = _PATH.fullmatch(path)
    if match is None:
        return method
    verb = _VERBS.get(method, "get" if match["name"] else "list")
    # The path after `proxy` belongs to the pod.
    subresource = f"/{match['subresource'].partition('/')[0]}" if match["subresource"] else ""
    return f"{verb} {match['resource']}{subresource}"


def request_span(method: str, base: str, path: str) -> AbstractContextManager[Span]:
    """Return the span of a request within the current trace."""
    server = urlsplit(base)
    attributes: Attributes = {
        "http.request.method": method,
        "url.full": f"{base}{path}",
        "server.address": server.hostname or "",
        "server.port": server.port or (443 if server.scheme == "https" else 80),
    }
    return tracing.span(
        request_name(method, path), SpanKind.CLIENT, parent=trace_context.current(), attributes=attributes
    )
