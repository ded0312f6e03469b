"""Responses that several routes share: views as JSON, with the headers of polled answers."""

from functools import lru_cache
from typing import Final

from fastapi import Response
from pydantic import BaseModel

from app.services.reading.freshness import Freshness

JSON: Final = "application/json"
PRIVATE: Final = {"Cache-Control": "private, no-cache"}
NO_STORE: Final = {"Cache-Control": "no-store"}
_JSON: Final = (b"content-type", JSON.encode())


def json_bytes(view: BaseModel) -> bytes:
    """Return the JSON of a view with the field names of the wire format."""
    return view.model_dump_json(by_alias=True).encode()


def polled_response(body: bytes | None, tag: str | None, freshness: Freshness) -> Response:
    """Return 200 with the body. Without a body, return 304: the client already has the version that the tag names."""
    fields = list(_polled_headers(freshness))
    if tag is not None:
        fields.append((b"etag", tag.encode()))
    if body is None:
        return _EncodedResponse(304, fields, b"")
    fields += ((b"content-length", b"%d" % len(body)), _JSON)
    return _EncodedResponse(200, fields, body)


class _EncodedResponse(Response):
    """A response whose header fields are encoded already."""

    def __init__(self, status: int, fields: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status_code, self.raw_headers, self.body = status, fields, body
        self.background = None


# All answers between two heartbeats of the controller have the same headers.
@lru_cache(maxsize=4)
def _polled_headers(freshness: Freshness) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields that all polled answers have: freshness and caching."""
    headers = {"Jobgate-Stale": "true" if freshness.stale else "false"}
    if freshness.observed_at is not None:
        headers["Jobgate-Observed-At"] = freshness.observed_at.isoformat().replace("+00:00", "Z")
    headers |= PRIVATE | {"Vary": "Authorization, Accept, Accept-Encoding"}
    return tuple(Response(headers=headers).raw_headers[: len(headers)])
