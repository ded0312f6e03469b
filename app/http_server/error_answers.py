"""Error answers of the server itself, as RFC 9457 problem details. The application does not see these requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec

_PROBLEM_TYPE: Final = b"application/problem+json"
_TYPE_PREFIX: Final = "urn:jobgate:problem:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """An error answer that closes the connection.

    Args:
        reason: the label `reason` of the metric jobgate_http_refusals_total.
        pointer: JSON pointer to the wrong part of the request.
        accepted: what the server accepts in its place.
    """

    status: HTTPStatus
    reason: str
    code: str
    detail: str
    pointer: str | None = None
    accepted: str | None = None

    def encode(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """Return the bytes of the answer in HTTP/1.1, with `Connection: close`."""
        body = msgspec.json.encode(self._document())
        fields = [
            *headers,
            (b"content-type", _PROBLEM_TYPE),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        if self.status is HTTPStatus.SERVICE_UNAVAILABLE:
            fields.append((b"retry-after", b"1"))
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}".encode()]
        lines += [name + b": " + value for name, value in fields]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def _document(self) -> dict[str, object]:
        document: dict[str, object] = {
            "type": _TYPE_PREFIX + self.code,
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "code": self.code,
        }
        if self.pointer is not None:
            error = {"pointer": self.pointer, "code": self.code, "detail": self.detail, "accepted": self.accepted}
            document["errors"] = [error]
        return document


MALFORMED: Final = ErrorAnswer(
    status=HTTPStatus.BAD_REQUEST,
    reason="malformed",
    code="MalformedRequest",
    detail="this is not an HTTP/1.1 request",
)
CONNECT: Final = ErrorAnswer(
    status=HTTPStatus.METHOD_NOT_ALLOWED,
    reason="connect",
    code="MethodNotAllowed",
    detail="this server is not a proxy and does not accept CONNECT",
)
CONNECTIONS: Final = ErrorAnswer(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    reason="connections",
    code="TooManyConnections",
    detail="the server has reached its limit of open connections",
)
ADDRESS_CONNECTIONS: Final = ErrorAnswer(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    reason="address_connections",
    code="TooManyConnections",
    detail="this client address has reached its limit of open connections",
)


def headers_too_large(limit: int) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        reason="header_bytes",
        code="HeadersTooLarge",
        detail="the headers are too large",
        pointer="/header",
        accepted=f"at most {limit} bytes of request line and headers",
    )


def too_many_headers(limit: int) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        reason="header_count",
        code="TooManyHeaders",
        detail="there are too many header fields",
        pointer="/header",
        accepted=f"at most {limit} header fields",
    )


def target_too_long(limit: int) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.REQUEST_URI_TOO_LONG,
        reason="target_bytes",
        code="TargetTooLong",
        detail="the request's path and query are too long",
        pointer="/path",
        accepted=f"at most {limit} bytes of request line and headers",
    )


def framing_too_large(limit: int) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.BAD_REQUEST,
        reason="framing",
        code="MalformedRequest",
        detail="a chunk extension or the trailers of the body are too large",
        pointer="",
        accepted=f"at most {limit} bytes of framing between two pieces of content",
    )


def headers_too_slow(seconds: float) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.REQUEST_TIMEOUT,
        reason="header_time",
        code="RequestTimeout",
        detail="the headers did not arrive in time",
        pointer="/header",
        accepted=f"the headers within {seconds:g} s",
    )


def body_too_slow(seconds: float) -> ErrorAnswer:
    return ErrorAnswer(
        status=HTTPStatus.REQUEST_TIMEOUT,
        reason="body_time",
        code="RequestTimeout",
        detail="the body did not arrive in time",
        pointer="",
        accepted=f"the body within {seconds:g} s",
    )
