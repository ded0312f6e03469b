"""Page tokens: an opaque text that names the start of the next page and the query that it belongs to.

A token grants no access: a made-up token shows nothing that the caller could not list anyway. A malformed token, or one
of another query, is refused.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta

from app.api.answers.errors import InvalidParameter, parameter_error
from app.db.objects.events import EventPlace

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 500
# Every valid token is shorter; the bound limits what is decoded of an invalid one.
MAX_TOKEN: Final = 4096

_Start = TypeVar("_Start", bound="_PageStart")
_Item = TypeVar("_Item")


# Gateways of two versions read each other's tokens during an upgrade, and refuse fields that they do not know. So the
# encoded name stays `question`, and no field is added or removed.
class _PageStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    query: str


class ObjectStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """The page begins after this object, in the order of lists: newest first, then by uid."""

    created_at: datetime
    uid: UUID


class SequenceStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """The page begins after the item with this sequence number, or after this many items."""

    seq: int


class EventStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """The page begins after the event at this place."""

    attempt: Annotated[int, Meta(ge=0, lt=2**31)]
    task: Annotated[str, Meta(max_length=253, pattern=r"^[^\x00]*$")]
    rank: Annotated[int, Meta(ge=0, lt=2**31)]
    number: Annotated[int, Meta(ge=0, lt=2**62)]


class QueueStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """The page begins after the queue with this name."""

    namespace: Annotated[str, Meta(max_length=253, pattern=r"^[^\x00]*$")]
    name: Annotated[str, Meta(max_length=253, pattern=r"^[^\x00]*$")]


class UsageStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """The page begins after the group at the cursor. All pages show the days of the first one, also on a later day."""

    first: date
    last: date
    cursor: tuple[Annotated[str, Meta(max_length=300, pattern=r"^[^\x00]*$")], ...]


class RecordStart(_PageStart, frozen=True, forbid_unknown_fields=True, rename={"query": "question"}):
    """A redaction continues after the row with this key, in the table with this number."""

    table: Annotated[int, Meta(ge=0, lt=100)]
    key: tuple[Annotated[int, Meta(ge=0, lt=2**31)] | Annotated[str, Meta(max_length=253, pattern=r"^[^\x00]*$")], ...]


def query_digest(parts: Sequence[object]) -> str:
    """Return a short digest of what a list shows, to which its page tokens are bound; page size and token excluded."""
    return hashlib.blake2b(repr(tuple(parts)).encode(), digest_size=9).hexdigest()


def encode(start: _PageStart) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(start)).rstrip(b"=").decode()


def decode(token: str, into: type[_Start], query: str) -> _Start:
    """Return the start of the page that a token names; `query` is the digest of the present query.

    Raises:
        InvalidParameter: the token is malformed, or belongs to another query.
    """
    if len(token) > MAX_TOKEN or not token.isascii():
        raise invalid_token()
    try:
        start = msgspec.json.decode(base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True), type=into)
    except (ValueError, msgspec.MsgspecError) as error:
        raise invalid_token() from error
    if start.query != query:
        raise invalid_token("belongs to a list with other parameters")
    if isinstance(start, ObjectStart) and utc(start.created_at) is None:
        raise invalid_token()
    if isinstance(start, SequenceStart) and not 0 <= start.seq < 2**62:  # PostgreSQL's bigint, with room to add a size
        raise invalid_token()
    return start


def utc(timestamp: datetime) -> datetime | None:
    """Return the timestamp in UTC, or None if it has no offset or is in no year from 1 to 9999 in UTC."""
    if timestamp.tzinfo is None:
        return None
    try:
        return timestamp.astimezone(UTC)
    except OverflowError:
        return None


def page_size(requested: int | None, default: int = DEFAULT_PAGE) -> int:
    """Return the size of a page. A size over the maximum is reduced to it, as Google's API guidelines recommend."""
    return default if requested is None else min(requested, MAX_PAGE)


@dataclass(frozen=True, slots=True)
class SequencePage:
    """A request for one page of items that are numbered; `start` is the number after which it begins, 0 at first."""

    query: str
    start: int
    size: int

    @classmethod
    def of(
        cls, parts: Sequence[object], size: int | None, token: str | None, default: int = DEFAULT_PAGE
    ) -> "SequencePage":
        """Return the page that `pageSize` and `pageToken` request; `parts` distinguish the query from others.

        Raises:
            InvalidParameter: the token is malformed, or belongs to another query.
        """
        query = query_digest(parts)
        start = decode(token, SequenceStart, query).seq if token else 0
        return cls(query, start, page_size(size, default))

    @property
    def limit(self) -> int:
        """The number of items to read: one more than are shown, which tells whether another page follows."""
        return self.size + 1

    def cut(
        self, found: Sequence[_Item], number_of: Callable[[_Item], int] | None = None
    ) -> tuple[Sequence[_Item], str | None]:
        """Return the items of this page and the token of the next page, None on the last page.

        Args:
            found: at most `limit` items.
            number_of: returns the number of an item. Without it, items are numbered by their index in the whole list.
        """
        if len(found) <= self.size:
            return found, None
        items = found[: self.size]
        return items, self.token_after(number_of(items[-1]) if number_of else self.start + self.size)

    def token_after(self, seq: int) -> str:
        return encode(SequenceStart(query=self.query, seq=seq))


def event_after(token: str | None, query: str) -> EventPlace | None:
    """Return the place after which a page of events begins, or None for the first page."""
    if not token:
        return None
    start = decode(token, EventStart, query)
    return EventPlace(start.attempt, start.task, start.rank, start.number)


def token_after_event(place: EventPlace, query: str) -> str:
    return encode(EventStart(query=query, **place._asdict()))


def invalid_token(detail: str = "is not a page token") -> InvalidParameter:
    accepted = "a nextPageToken of the same list with the same parameters"
    return parameter_error("query", "pageToken", "InvalidPageToken", detail, accepted)
