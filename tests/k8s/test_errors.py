"""Which error an answer is. The words are those of Kubernetes 1.36."""

import json
from typing import Any

import pytest

from app.k8s.errors import (
    AmbiguousResult,
    BrokenAnswer,
    ClusterNotConfigured,
    KubeAlreadyExists,
    KubeBadRequest,
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeGone,
    KubeInvalid,
    KubeNotFound,
    KubeServerError,
    KubeStatusError,
    KubeTooLarge,
    KubeTooManyRequests,
    KubeUnauthorized,
    SilentStream,
    Unreachable,
    summarize,
)
from app.k8s.session.answers import error_from_answer, error_from_status, warning_text


def answer(status: int, reason: str, message: str, **details: Any) -> KubeStatusError:
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
    return error_from_answer(status, json.dumps(body).encode(), {})


@pytest.mark.parametrize(
    ("status", "reason", "message", "expected"),
    [
        (400, "BadRequest", 'strict decoding error: unknown field "spec.hostNetwrok"', KubeBadRequest),
        (401, "Unauthorized", "Unauthorized", KubeUnauthorized),
        (403, "Forbidden", "no", KubeForbidden),
        (404, "NotFound", 'pods "nope" not found', KubeNotFound),
        (409, "AlreadyExists", 'pods "a" already exists', KubeAlreadyExists),
        (409, "Conflict", "Operation cannot be fulfilled on resourcequotas", KubeConflict),
        (410, "Expired", "The provided continue parameter is too old", KubeGone),
        (410, "Gone", "too old resource version: 1 (5)", KubeGone),
        (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", KubeTooLarge),
        (422, "Invalid", 'Pod "C_" is invalid', KubeInvalid),
        (429, "TooManyRequests", "please try again", KubeTooManyRequests),
        (500, "", "etcdserver: request is too large", KubeTooLarge),
        (500, "InternalError", "Internal error occurred: failed calling webhook", KubeServerError),
        (504, "Timeout", "request did not complete within the allotted timeout", KubeServerError),
        (307, "", "", KubeStatusError),
        (418, "", "", KubeStatusError),
    ],
)
def test_the_class_of_an_error_follows_from_its_status(
    status: int, reason: str, message: str, expected: type[KubeStatusError]
) -> None:
    error = answer(status, reason, message)
    assert type(error) is expected
    assert (error.status, error.message) == (status, message)


@pytest.mark.parametrize(
    ("error", "summary"),
    [
        (KubeForbidden(403, "Forbidden", 'pods is forbidden in "team-b"'), "403 Forbidden"),
        (KubeStatusError(307, "", "team-b"), "307"),
        (BrokenAnswer("team-b"), "an answer of the API server was broken or empty"),
        (SilentStream("team-b"), "a stream of the API server was silent for too long"),
        (Unreachable("team-b"), "a request to the API server was not answered"),
        (AmbiguousResult("team-b"), "a request to the API server was not answered"),
        (ClusterNotConfigured("team-b"), "no cluster is configured"),
    ],
)
def test_a_summary_says_what_an_error_is_and_names_nothing(error: KubeError, summary: str) -> None:
    assert summarize(error) == summary


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
def test_the_error_page_of_a_proxy_is_quoted(body: bytes) -> None:
    error = error_from_answer(502, body, {})
    assert isinstance(error, KubeServerError)
    assert "\0" not in error.message


def test_an_error_event_in_a_watch() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    assert isinstance(error_from_status(status), KubeGone)
    assert isinstance(error_from_status({}), KubeServerError)


def test_a_version_ahead_of_the_server() -> None:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer(504, "Timeout", "Timeout", causes=[cause]).is_version_too_large
    assert not answer(504, "Timeout", "Timeout").is_version_too_large


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('299 - "spec.x: \\"a\\" is deprecated"', 'spec.x: "a" is deprecated'),
        ('299 - "dated" "Sun, 22 Nov 2026 08:00:00 GMT"', "dated"),
        ("not in this form", "not in this form"),
        ('299 - "bytes \udcff that are no text"', "bytes \ufffd that are no text"),
    ],
)
def test_the_text_of_a_warning(header: str, text: str) -> None:
    assert warning_text(header) == text
