"""Which error an answer is. The words are those of Kubernetes 1.36."""

import json
from typing import Any

import pytest

from app.k8s.answers import error_from_answer, error_from_status
from app.k8s.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)


def answer(status: int, reason: str, message: str, **details: Any) -> ApiError:
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
    return error_from_answer(status, json.dumps(body).encode(), {})


@pytest.mark.parametrize(
    ("status", "reason", "message", "expected"),
    [
        (400, "BadRequest", 'strict decoding error: unknown field "spec.hostNetwrok"', BadRequest),
        (401, "Unauthorized", "Unauthorized", Unauthorized),
        (403, "Forbidden", "no", Forbidden),
        (404, "NotFound", 'pods "nope" not found', NotFound),
        (409, "AlreadyExists", 'pods "a" already exists', AlreadyExists),
        (409, "Conflict", "Operation cannot be fulfilled on resourcequotas", Conflict),
        (410, "Expired", "The provided continue parameter is too old", Gone),
        (410, "Gone", "too old resource version: 1 (5)", Gone),
        (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", TooLarge),
        (422, "Invalid", 'Pod "C_" is invalid', Invalid),
        (429, "TooManyRequests", "please try again", TooManyRequests),
        (500, "", "etcdserver: request is too large", TooLarge),
        (500, "InternalError", "Internal error occurred: failed calling webhook", ServerError),
        (504, "Timeout", "request did not complete within the allotted timeout", ServerError),
        (307, "", "", ApiError),
        (418, "", "", ApiError),
    ],
)
def test_the_family(status: int, reason: str, message: str, expected: type[ApiError]) -> None:
    error = answer(status, reason, message)
    assert type(error) is expected
    assert (error.status, error.message) == (status, message)


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        ("3", {}, 3.0),
        (None, {"retryAfterSeconds": 2}, 2.0),
        ("1", {"retryAfterSeconds": 9}, 1.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
        ("-5", {}, 0.0),
        (None, {}, None),
    ],
)
def test_retry_after(header: str | None, details: dict[str, Any], expected: float | None) -> None:
    body = json.dumps({"kind": "Status", "details": details}).encode()
    error = error_from_answer(429, body, {"Retry-After": header} if header else {})
    assert error.retry_after == expected


@pytest.mark.parametrize(
    "body", [b"", b"<html>502 Bad Gateway</html>", b'"x"', b"\xff\x00", b'{"kind":"Status","code":"x"}']
)
def test_a_strangers_error_page(body: bytes) -> None:
    error = error_from_answer(502, body, {})
    assert isinstance(error, ServerError)
    assert "\0" not in error.message


def test_an_error_event_in_a_watch() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    assert isinstance(error_from_status(status), Gone)
    assert isinstance(error_from_status({}), ServerError)


def test_a_version_ahead_of_the_server() -> None:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer(504, "Timeout", "Timeout", causes=[cause]).is_version_too_large
    assert not answer(504, "Timeout", "Timeout").is_version_too_large
