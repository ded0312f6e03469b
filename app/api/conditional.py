"""Conditional requests and long polls: RFC 9110 section 13, and RFC 7240's `Prefer: wait`."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from app.api.errors import refuse_parameter
from app.domain.errors import PreconditionFailed

MAX_WAIT: Final = 60
_TAG: Final = re.compile(r'\s*(?:(?P<weak>W/)?"(?P<tag>[\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$))')
_WAIT: Final = re.compile(r'(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])', re.IGNORECASE)


def whole_tag(uid: UUID, version: int) -> str:
    """Every change of an object, whatever it concerns, makes another version, so the tag is strong."""
    return f'"{uid.hex}-{version}"'


def status_tag(uid: UUID, version: int) -> str:
    return f'"{uid.hex}-{version}-s"'


def list_tag(items: Iterable[tuple[UUID, int]], request: str) -> str:
    """The tag of a list: which versions of which objects it shows, and what was asked for."""
    digest = hashlib.blake2b(request.encode(), digest_size=16)
    for uid, version in items:
        digest.update(uid.bytes + version.to_bytes(8, "big"))
    return f'"{digest.hexdigest()}"'


def unchanged(if_none_match: str | None, tag: str) -> bool:
    """Whether the caller has this already. If-None-Match compares weakly: W/ makes no difference."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(known.removeprefix("W/") == tag for known in _tags(if_none_match, "If-None-Match"))


def check_if_match(if_match: str | None, tag: str, what: str) -> None:
    """Hold an edit to the version that it was decided on. If-Match compares strongly: a weak tag never matches.

    Raises:
        PreconditionFailed: it has changed since.
    """
    if if_match is None or if_match.strip() == "*":
        return
    if tag in _tags(if_match, "If-Match"):
        return
    raise PreconditionFailed(f"the {what} has changed since you read it: read it again and decide on that version")


def _tags(header: str, name: str) -> list[str]:
    found, at = [], 0
    text = header.strip()
    while at < len(text):
        match = _TAG.match(text, at)
        if match is None:
            raise refuse_parameter(
                "header", name, "InvalidEntityTag", "is not a list of entity tags", '* or "tag", "tag"'
            )
        found.append(f'{match["weak"] or ""}"{match["tag"]}"')
        at = match.end()
    return found


def wait_seconds(prefer: Iterable[str]) -> int:
    """How long the caller likes to wait for news; 0 when it does not. More than we grant is cut."""
    for header in prefer:
        if match := _WAIT.search(header):
            return min(int(match[1]), MAX_WAIT)
    return 0
