"""Error answers of the server itself, as RFC 9457 problem details. The application does not see these requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import msgspec

_PROBLEM_TYPE: Final = b"application/problem+json"
_TYPE_PREFIX: Final = "urn:jobgate:problem:"


class RefusalReason(StrEnum):
    """Why the server refuses a connection or a request: the label `reason` of jobgate_http_refusals_total."""

    MALFORMED = "malformed"
    VERSION = "version"
    HOST = "host"
    CONNECT = "connect"
    CONNECTIONS = "connections"
    ADDRESS_CONNECTIONS = "address_connections"
    HEADER_BYTES = "header_bytes"
    HEADER_COUNT = "header_count"
    TARGET_BYTES = "target_bytes"
    FRAMING = "framing"
    HEADER_TIME = "header_time"
    BODY_TIME = "body_time"


@dataclass(frozen=True, slots=True)
class _Shape:
    """The answer for one reason. `{limit}` in `accepted` stands for the configured limit.

    `pointer` is a JSON pointer to the wrong part of the request, or None if a whole connection is refused.
    """

    status: HTTPStatus
    code: str
    detail: str
    accepted: str
    pointer: str | None = None


_SHAPES: Final[Mapping[RefusalReason, _Shape]] = {
    RefusalReason.MALFORMED: _Shape(
        HTTPStatus.BAD_REQUEST, "MalformedRequest", "this is not an HTTP/1.1 request", "a valid HTTP/1.1 request", ""
    ),
    RefusalReason.VERSION: _Shape(
        HTTPStatus.BAD_REQUEST,
        "MalformedRequest",
        "the server does not support this version of HTTP",
        "HTTP/1.1 or HTTP/1.0",
        "",
    ),
    RefusalReason.HOST: _Shape(
        HTTPStatus.BAD_REQUEST,
        "MalformedRequest",
        "the Host header is missing, repeated or not valid",
        "one Host header with a host and an optional port",
        "/header/Host",
    ),
    RefusalReason.CONNECT: _Shape(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "this server is not a proxy and does not accept CONNECT",
        "any other method",
        "",
    ),
    RefusalReason.CONNECTIONS: _Shape(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "TooManyConnections",
        "the server has reached its limit of open connections",
        "at most {limit} open connections",
    ),
    RefusalReason.ADDRESS_CONNECTIONS: _Shape(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "TooManyConnections",
        "this client address has reached its limit of open connections",
        "at most {limit} open connections of one client address",
    ),
    RefusalReason.HEADER_BYTES: _Shape(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        "HeadersTooLarge",
        "the headers are too large",
        "at most {limit} bytes of request line and headers",
        "/header",
    ),
    RefusalReason.HEADER_COUNT: _Shape(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        "TooManyHeaders",
        "there are too many header fields",
        "at most {limit} header fields",
        "/header",
    ),
    RefusalReason.TARGET_BYTES: _Shape(
        HTTPStatus.REQUEST_URI_TOO_LONG,
        "TargetTooLong",
        "the request's path and query are too long",
        "at most {limit} bytes of request line and headers",
        "/path",
    ),
    RefusalReason.FRAMING: _Shape(
        HTTPStatus.BAD_REQUEST,
        "MalformedRequest",
        "a chunk extension or the trailers of the body are too large",
        "at most {limit} bytes of framing between two pieces of content",
        "",
    ),
    RefusalReason.HEADER_TIME: _Shape(
        HTTPStatus.REQUEST_TIMEOUT,
        "RequestTimeout",
        "the headers did not arrive in time",
        "the headers within {limit:g} s",
        "/header",
    ),
    RefusalReason.BODY_TIME: _Shape(
        HTTPStatus.REQUEST_TIMEOUT,
        "RequestTimeout",
        "the body did not arrive in time",
        "the body within {limit:g} s",
        "",
    ),
}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The answer to a refused connection or request; it closes the connection.

    `limit` is the configured limit that the client exceeds, for the reasons that have one.
    """

    reason: RefusalReason
    limit: float = 0

    def encode(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """Return the bytes of the answer in HTTP/1.1, with `Connection: close`."""
        status = _SHAPES[self.reason].status
        body = msgspec.json.encode(self._document())
        fields = [
            *headers,
            (b"content-type", _PROBLEM_TYPE),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            fields.append((b"retry-after", b"1"))
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        lines += [name + b": " + value for name, value in fields]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def _document(self) -> dict[str, object]:
        shape = _SHAPES[self.reason]
        accepted = shape.accepted.format(limit=self.limit)
        document: dict[str, object] = {
            "type": _TYPE_PREFIX + shape.code,
            "title": shape.status.phrase,
            "status": shape.status.value,
            "detail": shape.detail,
            "code": shape.code,
        }
        if shape.pointer is None:
            document["detail"] = f"{shape.detail}: {accepted}"
        else:
            error = {"pointer": shape.pointer, "code": shape.code, "detail": shape.detail, "accepted": accepted}
            document["errors"] = [error]
        return document
