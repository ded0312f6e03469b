"""Conditional requests (RFC 9110, section 13), and the preference `wait` of long polls (RFC 7240)."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from app.api.answers.errors import parameter_error
from app.domain.errors import PreconditionFailed

# Seconds. Proxies commonly close a connection after 60 s without data.
MAX_WAIT: Final = 60
# entity-tag of RFC 9110, section 8.8.3.
_TAG: Final = re.compile(r'\s*(?:(?P<weak>W/)?"(?P<tag>[\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$))')
# The same as _TAG in the OpenAPI document: * or a list of entity tags, which can be empty but has no empty elements.
_ENTITY_TAG: Final = '(W/)?"[!#-~]*"'
TAGS_PATTERN: Final = rf"^(\*|{_ENTITY_TAG}( *, *{_ENTITY_TAG})*)?$"
# The tag of a status view ends with this.
_STATUS: Final = '-s"'
# The tag of the form of a representation that is compressed with gzip ends with this.
_GZIP: Final = '--gzip"'
_WAIT: Final = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])', re.IGNORECASE)


def whole_tag(uid: UUID, version: int) -> str:
    """Return the strong ETag of an object's whole view: every change of the object increases its version."""
    return f'"{uid.hex}-{version}"'


def status_tag(uid: UUID, version: int) -> str:
    """Return the ETag of an object's status view, which differs from that of its whole view."""
    return f'"{uid.hex}-{version}{_STATUS}'


def list_tag(items: Iterable[tuple[UUID, int]], query: str) -> str:
    """Return the ETag of a list; `items` are the uids and versions of its objects, `query` selects them."""
    digest = hashlib.blake2b(query.encode(), digest_size=16)
    for uid, version in items:
        digest.update(uid.bytes + version.to_bytes(8, "big"))
    return f'"{digest.hexdigest()}"'


def body_tag(body: bytes) -> str:
    """Return the ETag of an answer that consists of these bytes."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def gzip_tag(tag: str) -> str:
    """Return the ETag of a representation in the form that is compressed with gzip."""
    return tag.removesuffix('"') + _GZIP


def matches_tag(if_none_match: str | None, tag: str) -> bool:
    """Return whether If-None-Match contains the tag. The comparison is weak: a prefix W/ makes no difference."""
    if if_none_match is None:
        return False
    # The usual case, without the parser.
    if if_none_match == tag:
        return True
    if if_none_match.strip() == "*":
        return True
    return any(known.removeprefix("W/") == tag for known in _tags(if_none_match, "If-None-Match"))


def check_if_match(if_match: str | None, tag: str, noun: str) -> None:
    """Check the precondition of an edit. The comparison is strong: a weak tag never matches.

    Raises:
        PreconditionFailed: If-Match does not contain the current tag of the object, which is a `noun`.
    """
    if if_match is None or if_match.strip() == "*":
        return
    sent = _tags(if_match, "If-Match")
    if tag in sent:
        return
    raise PreconditionFailed(_mismatch(sent, tag, noun))


def _mismatch(sent: list[str], tag: str, noun: str) -> str:
    """Return why none of these tags is the current one. Reading again helps only if the object has changed."""
    if f"W/{tag}" in sent:
        return (
            f"the {noun} has not changed, but a weak ETag (W/…) never matches If-Match: a proxy that compresses answers"
            " makes ETags weak; send this one without W/"
        )
    if tag.removesuffix('"') + _STATUS in {known.removeprefix("W/") for known in sent}:
        return f"the ETag in If-Match is that of the status: send that of the {noun} itself"
    return f"the {noun} has changed since you read it: read it again and send If-Match with its current ETag"


def _tags(header: str, name: str) -> list[str]:
    tags, at = [], 0
    text = header.strip()
    while at < len(text):
        match = _TAG.match(text, at)
        if match is None:
            raise parameter_error(
                "header", name, "InvalidEntityTag", "is not a list of entity tags", '* or "tag", "tag"'
            )
        # Both forms of a representation have the same content, so the tag of either proves what the client knows.
        tag = f'"{match["tag"]}"'
        tags.append((match["weak"] or "") + (f'{tag.removesuffix(_GZIP)}"' if tag.endswith(_GZIP) else tag))
        at = match.end()
    return tags


def wait_seconds(prefer: Iterable[str]) -> int:
    """Return the seconds of the preference `wait`, at most MAX_WAIT; 0 if the client has no such preference."""
    for header in prefer:
        if match := _WAIT.search(header):
            return min(int(match[1]), MAX_WAIT)
    return 0
