"""Maps errors to RFC 9457 problem details. `STATUSES` is the only place that assigns HTTP statuses to domain errors."""

# ruff: noqa: N818 - an error that a client causes is named after its code

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.db.postgres.errors import DatabaseUnavailable, LeaseLost, NotStorable
from app.domain import errors
from app.domain.errors import DomainError, FieldError, Problems, pointer_to
from app.http_server.accepting import LogThrottle

PROBLEM_TYPE: Final = "application/problem+json"
TIMESTAMP_FORMAT: Final = "RFC 3339, for example 2026-01-31T12:00:00Z"
# The URIs identify problem types and cannot be dereferenced.
_TYPE_PREFIX: Final = "urn:jobgate:problem:"
# Seconds. One second spreads retries without making an interactive client wait noticeably.
_RETRY_AFTER: Final = {HTTPStatus.SERVICE_UNAVAILABLE: "1", HTTPStatus.TOO_MANY_REQUESTS: "1"}


class InvalidParameter(DomainError):
    """A query parameter, header or path segment is not valid."""

    default_code = "InvalidParameter"


STATUSES: Final[Mapping[type[DomainError], HTTPStatus]] = {
    errors.MalformedDocument: HTTPStatus.BAD_REQUEST,
    errors.InvalidManifest: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Purged: HTTPStatus.GONE,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    errors.PreconditionRequired: HTTPStatus.PRECONDITION_REQUIRED,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    DatabaseUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    NotStorable: HTTPStatus.UNPROCESSABLE_ENTITY,
    LeaseLost: HTTPStatus.SERVICE_UNAVAILABLE,
    InvalidParameter: HTTPStatus.BAD_REQUEST,
}

# Codes for the types of pydantic's errors; all other types are InvalidParameter.
_PARAMETER_CODES: Final = {"missing": "Required", "extra_forbidden": "UnknownParameter"}
# What is accepted, by type of pydantic's error; the fields in braces are those of the error's context.
_ACCEPTED: Final = {
    "missing": "a value",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_too_short": "{min_length} characters or more",
    "string_too_long": "{max_length} characters or fewer",
    "string_pattern_mismatch": "text that matches {pattern}",
    "too_long": "{max_length} values or fewer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer of 64 bits",
    "bool_parsing": "true or false",
    "uuid_parsing": "a UUID",
    "date_parsing": "a date, as 2026-01-31",
    "date_from_datetime_parsing": "a date, as 2026-01-31",
}
# Codes of errors that FastAPI raises itself; the code of any other status is made from its phrase.
HTTP_CODES: Final = {404: "RouteNotFound", 405: "MethodNotAllowed"}

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")

log = structlog.get_logger(__name__)


def parameter_error(location: str, name: str, code: str, detail: str, accepted: str | None = None) -> InvalidParameter:
    """Return the error for one parameter; `location` is query, header or path."""
    error = FieldError(pointer=pointer_to("", location, name), code=code, detail=detail, accepted=accepted)
    return InvalidParameter(f"the {location} parameter {name} is not valid", code=code, errors=[error])


def status_of(kind: type[DomainError]) -> HTTPStatus:
    """Return the status of an error class, or of its nearest base class in the table."""
    for ancestor in kind.__mro__:
        if ancestor in STATUSES:
            return STATUSES[ancestor]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def problem(
    status: HTTPStatus | int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the response with this problem. It has all headers that its status requires."""
    status = HTTPStatus(status)
    body: dict[str, Any] = {
        "type": _TYPE_PREFIX + code,
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "code": code,
    }
    if errors:
        body["errors"] = [_field_error(error) for error in errors]
    # Without this header, a cache may store a 404 and repeat it after the object was created.
    sent = {"Cache-Control": "no-store"} | dict(headers or {})
    if status in _RETRY_AFTER:
        sent.setdefault("Retry-After", _RETRY_AFTER[status])
    if status is HTTPStatus.UNAUTHORIZED:
        sent.setdefault("WWW-Authenticate", 'Bearer realm="jobgate"')
    return Response(msgspec.json.encode(body), status_code=status, headers=sent, media_type=PROBLEM_TYPE)


def problem_of(error: DomainError) -> Response:
    return problem(status_of(type(error)), error.code, error.message, errors=error.errors)


def internal_problem() -> Response:
    """Return the problem for an unexpected exception. It does not contain the exception, which only the log shows."""
    detail = "internal error: the gateway's log describes it under the X-Request-Id of this answer"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", detail)


def shutdown_problem() -> Response:
    """Return the problem for a request that is still in progress when the process ends."""
    detail = (
        "the process ends before it has an answer, and may have carried the request out: send it again, "
        "and a submission with the same Idempotency-Key"
    )
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "ShuttingDown", detail, headers={"Connection": "close"})


def install(app: FastAPI) -> None:
    """Register the handlers that answer every error of the application with a problem."""
    app.add_exception_handler(DomainError, _DomainErrors())
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)


async def response_to(error: Exception, request: Request) -> Response:
    """Return the answer of the application's handler for this error. It is for routes without FastAPI's layers."""
    handlers = request.app.exception_handlers
    handler = next(handlers[kind] for kind in type(error).__mro__ if kind in handlers)
    response: Response = await handler(request, error)
    return response


def _field_error(error: FieldError) -> dict[str, str]:
    shown = {"pointer": error.pointer, "code": error.code, "detail": error.detail}
    return shown if error.accepted is None else shown | {"accepted": error.accepted}


class _DomainErrors:
    """Answers domain errors with their problems, and logs each code of status 500 and above once per minute.

    Without this limit, clients without a valid token could fill the log while PostgreSQL does not answer.
    """

    def __init__(self) -> None:
        self._lines: defaultdict[str, LogThrottle] = defaultdict(LogThrottle)

    async def __call__(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, DomainError)
        response = problem_of(error)
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            dropped = self._lines[error.code].admit(asyncio.get_running_loop().time())
            if dropped is not None:
                log.warning(
                    "request.not_served",
                    method=request.method,
                    path=request.url.path,
                    code=error.code,
                    error=str(error),
                    dropped=dropped,
                )
        return response


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed_methods(request))
    detail = {404: "there is no such route", 405: "this route does not support this method"}.get(
        error.status_code, status.description or status.phrase
    )
    code = HTTP_CODES.get(error.status_code, "".join(word.capitalize() for word in status.phrase.split()))
    return problem(status, code, detail, headers=headers)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes that match the path. Starlette knows only those of the first such route."""
    found = [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    # A layer passes HEAD to the routes as GET.
    return ["GET", "HEAD", *found[1:]] if "GET" in found else found


def _accepted_value(item: Mapping[str, Any]) -> str | None:
    kind = item["type"]
    if kind.startswith(("datetime_", "timezone_")):
        return TIMESTAMP_FORMAT
    return _ACCEPTED[kind].format(**item.get("ctx", {})) if kind in _ACCEPTED else None


async def _on_validation_error(_: Request, error: Exception) -> Response:
    """Answer pydantic's errors about parameters. The problem never repeats the values that the client sent."""
    assert isinstance(error, RequestValidationError)
    found = Problems()
    for item in error.errors():
        code = _PARAMETER_CODES.get(item["type"], "InvalidParameter")
        found.add(pointer_to("", *item["loc"]), code, item["msg"], _accepted_value(item))
    detail = "a parameter of the request is not valid"
    return problem(HTTPStatus.BAD_REQUEST, "InvalidParameter", detail, errors=found.errors)
