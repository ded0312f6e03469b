"""Responses that several routes share: views as JSON, with the headers of polled answers."""

from functools import lru_cache
from typing import Final

from fastapi import Response
from pydantic import BaseModel

from app.api.answers.conditional import matches_tag
from app.services.reading.freshness import Freshness

JSON: Final = "application/json"
PRIVATE: Final = {"Cache-Control": "private, no-cache"}
NO_STORE: Final = {"Cache-Control": "no-store"}


def json_bytes(view: BaseModel) -> bytes:
    """Return the JSON of a view with the field names of the wire format."""
    return view.model_dump_json(by_alias=True).encode()


def polled_response(body: bytes, tag: str | None, freshness: Freshness, if_none_match: str | None = None) -> Response:
    """Return 200 with the body, or 304 without it if If-None-Match contains the tag. Both have the same headers."""
    headers = {} if tag is None else {"ETag": tag}
    if tag is not None and matches_tag(if_none_match, tag):
        response = Response(status_code=304, headers=headers)
    else:
        response = Response(body, headers=headers, media_type=JSON)
    response.raw_headers[:0] = polled_headers(freshness)
    return response


# All answers between two heartbeats of the controller have the same headers.
@lru_cache(maxsize=4)
def polled_headers(freshness: Freshness) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields that all polled answers have: freshness and caching."""
    headers = {"Jobgate-Stale": "true" if freshness.stale else "false"}
    if freshness.observed_at is not None:
        headers["Jobgate-Observed-At"] = freshness.observed_at.isoformat().replace("+00:00", "Z")
    headers |= PRIVATE | {"Vary": "Authorization, Accept, Accept-Encoding"}
    return tuple(Response(headers=headers).raw_headers[: len(headers)])
