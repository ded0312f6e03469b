"""Reads error answers: a Status of the API server, or the error page of a proxy."""

import re
from collections.abc import Mapping
from typing import Any

from app.k8s.codec import load_object
from app.k8s.errors import BrokenAnswer, KubeStatusError, StatusCause, error_class
from app.k8s.text import clean_text

_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")
MAX_WORDS = 2_000  # characters of an answer that is not a Status; enough to recognize the page of a proxy


def error_from_answer(status: int, body: bytes, headers: Mapping[str, str]) -> KubeStatusError:
    """Return the error for an HTTP answer with this status code."""
    try:
        answer = load_object(body)
    except BrokenAnswer:
        answer = {}
    if answer.get("kind") != "Status":
        answer = {"message": clean_text(body[:MAX_WORDS]).strip()}
    # The status of the HTTP answer counts, because a Status may lack its code.
    return error_from_status({**answer, "code": status}, _seconds(headers.get("Retry-After")))


def error_from_status(answer: Mapping[str, Any], retry_after: float | None = None) -> KubeStatusError:
    """Return the error for a Status, which is also the object of an ERROR event of a watch."""
    details = _mapping(answer.get("details"))
    code = answer.get("code")
    status = code if isinstance(code, int) else 500
    reason, message = _text(answer.get("reason")), _text(answer.get("message"))
    requested = retry_after if retry_after is not None else _seconds(details.get("retryAfterSeconds"))
    return error_class(status, reason, message)(
        status,
        reason or "Unknown",
        message,
        causes=_causes(details.get("causes")),
        kind=_text(details.get("kind")),
        name=_text(details.get("name")),
        retry_after=requested,
    )


def warning_text(header: str) -> str:
    """Return the text of a Warning header (RFC 7234, section 5.5): `299 - "text"`."""
    match = _WARNING.fullmatch(header.strip())
    return clean_text(_ESCAPED.sub(r"\1", match[1]) if match else header)


def _causes(value: Any) -> tuple[StatusCause, ...]:
    causes = [_mapping(item) for item in value] if isinstance(value, list) else []
    return tuple(
        StatusCause(reason=_text(c.get("reason")), message=_text(c.get("message")), field=_text(c.get("field")))
        for c in causes
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: Any) -> float | None:
    """Return the seconds of a Retry-After. A date is ignored; Kubernetes never sends one."""
    try:
        return max(0.0, float(value)) if value else None
    except (TypeError, ValueError):
        return None
