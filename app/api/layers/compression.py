"""Compresses complete answers with gzip for clients that accept it.

    complete answer ─▶ text of at least `min_bytes` ─▶ compressed before? ─▶ the stored bytes
                                                       └ no: compress it, in a thread if it is long

Streams and logs pass unchanged: a compressor would hold back their events. A compressed answer has another ETag
(RFC 9110, section 8.8.3), which `app.api.answers.conditional` accepts in place of the original one.

Compression reveals how much the parts of an answer have in common (the BREACH attack). That requires a page of an
attacker whose requests carry the credentials of the victim. Browsers add none to requests of jobgate, which reads no
cookies.
"""

import gzip
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from app.api.answers.conditional import gzip_tag
from app.base.caches import ENTRY_BYTES, BoundedCache
from app.base.offload import offload

# A list of 44 KB has 6.5 KB after 0.36 ms at level 1, and 5.7 KB after 0.67 ms at level 6.
_LEVEL: Final = 1
# Bytes that are compressed in less than a millisecond. Longer bodies would delay other requests.
_SHORT: Final = 64 * 1024
_CACHE_BYTES: Final = 16 * 1024 * 1024
_TEXT: Final = (b"application/json", b"application/problem+json", b"application/yaml", b"text/")


class Compressor:
    """Compresses bodies of at least `min_bytes`, and keeps those that are likely to be sent again."""

    def __init__(self, min_bytes: int) -> None:
        self.min_bytes = min_bytes
        # Compressed forms by body. Each counts as the body, which is longer.
        self._cache: BoundedCache[bytes, bytes] = BoundedCache(_CACHE_BYTES)

    def applies(self, headers: MutableHeaders) -> bool:
        """Return whether a complete answer with these headers is compressed."""
        length = headers.get("content-length")
        return (
            length is not None
            and int(length) >= self.min_bytes
            and "content-encoding" not in headers
            and headers.get("content-type", "").encode("latin-1").startswith(_TEXT)
        )

    async def compress(self, body: bytes, *, keeps: bool) -> bytes:
        """Return the compressed body. `keeps` says that it is likely to be sent again."""
        found = self._cache.get(body) if keeps else None
        if found is not None:
            return found
        compressed = _compress_body(body) if len(body) <= _SHORT else await offload(_compress_body, body)
        if keeps:
            self._cache.put(body, compressed, len(body) + ENTRY_BYTES)
        return compressed


class CompressedAnswer:
    """Compresses one answer if it is complete, long enough and text."""

    def __init__(self, compressor: Compressor, if_none_match: bytes, send: Send) -> None:
        self._compressor = compressor
        self._if_none_match = if_none_match
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._start is None:
            await self._send(message)
        else:
            start, self._start = self._start, None
            if not message.get("more_body", False):
                message = {**message, "body": await self._compress(start, message.get("body", b""))}
            await self._send(start)
            await self._send(message)

    async def _begin(self, start: Message) -> None:
        headers = MutableHeaders(raw=list(start["headers"]))
        if self._compressor.applies(headers):
            self._start = start
            return
        tag = headers.get("etag")
        if start["status"] == 304 and tag is not None and knows_gzip_tag(tag, self._if_none_match):
            headers["etag"] = gzip_tag(tag)
            start = {**start, "headers": headers.raw}
        await self._send(start)

    async def _compress(self, start: Message, body: bytes) -> bytes:
        headers = MutableHeaders(raw=list(start["headers"]))
        tag = headers.get("etag")
        compressed = await self._compressor.compress(body, keeps=tag is not None)
        headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(compressed))
        if "Accept-Encoding" not in headers.get("vary", ""):
            headers.add_vary_header("Accept-Encoding")
        if tag is not None:
            headers["etag"] = gzip_tag(tag)
        start["headers"] = headers.raw
        return compressed


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether Accept-Encoding (RFC 9110, section 12.5.3) lists gzip with a weight other than 0."""
    for part in accept_encoding.lower().split(b","):
        name, _, weight = part.partition(b";")
        if name.strip() == b"gzip":
            return weight.replace(b" ", b"").strip() not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _compress_body(body: bytes) -> bytes:
    # Without the time, equal bodies have equal compressed forms, as a strong ETag requires.
    return gzip.compress(body, _LEVEL, mtime=0)


def knows_gzip_tag(tag: str, if_none_match: bytes) -> bool:
    """Return whether a 304 needs the tag of the compressed form: the 200 in its place would have it."""
    return gzip_tag(tag).encode("latin-1") in if_none_match


def field_value(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    """Return the value of a header field that may be repeated; empty without the field."""
    return b", ".join([value for name, value in headers if name == wanted])
