"""Page tokens: where the next page begins, bound to the question that the first page answered.

Opaque to clients. A token that was made up leads to no more than what its filter shows anyway; a broken one, or one of
another question, is refused.
"""

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from app.api.errors import InvalidParameter, refuse_parameter

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 500
_MAX_TOKEN: Final = 512

_T = TypeVar("_T", bound="_Place")


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: str


class JobPlace(_Place, frozen=True, forbid_unknown_fields=True):
    """After this job, in the order of lists."""

    created_at: datetime
    uid: UUID


class SequencePlace(_Place, frozen=True, forbid_unknown_fields=True):
    """After this number, or this many items."""

    seq: int


def question(parts: Sequence[object]) -> str:
    """A short digest of what was asked, without size and token."""
    return hashlib.blake2b(repr(tuple(parts)).encode(), digest_size=9).hexdigest()


def encode(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def decode(token: str, into: type[_T], asked: str) -> _T:
    """The place that a token names.

    Raises:
        InvalidParameter: it is not one of ours, or belongs to another question.
    """
    if len(token) > _MAX_TOKEN or not token.isascii():
        raise _refused("is not a page token")
    try:
        place = msgspec.json.decode(base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True), type=into)
    except (ValueError, msgspec.MsgspecError) as error:
        raise _refused("is not a page token") from error
    if place.question != asked:
        raise _refused("belongs to a list with other parameters")
    if isinstance(place, JobPlace) and place.created_at.tzinfo is None:
        raise _refused("is not a page token")
    if isinstance(place, SequencePlace) and not 0 <= place.seq < 2**62:
        raise _refused("is not a page token")
    return place


def start_of(token: str | None, asked: str) -> int:
    """The number after which a page of numbered items begins."""
    return decode(token, SequencePlace, asked).seq if token else 0


def after_seq(asked: str, seq: int) -> str:
    """The token of the page that follows this number."""
    return encode(SequencePlace(question=asked, seq=seq))


def page_size(asked: int | None) -> int:
    """Sizes over the maximum are cut, not refused."""
    return DEFAULT_PAGE if asked is None else min(asked, MAX_PAGE)


def _refused(detail: str) -> InvalidParameter:
    accepted = "a nextPageToken of the same list with the same parameters"
    return refuse_parameter("query", "pageToken", "InvalidPageToken", detail, accepted)
