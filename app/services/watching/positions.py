"""Positions in the feed, and the events that a reader wants from there. Without I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from typing_extensions import override

from app.db.feed.entries import FeedEvent
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.kinds.base import JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the feed. Positions with different epochs belong to different feeds."""

    epoch: int
    seq: int

    @override
    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"


def parse_position(text: str) -> Position | None:
    """Parse the `str` of a position; None if the text is not one."""
    epoch, _, seq = text.strip().partition(".")
    if not (epoch.isascii() and epoch.isdecimal() and seq.isascii() and seq.isdecimal()):
        return None
    # 18 digits always fit into a bigint of PostgreSQL.
    if len(epoch) > 18 or len(seq) > 18:
        return None
    return Position(epoch=int(epoch), seq=int(seq))


# What an event is indexed by: the uid of an object, or its resource with its namespace or with None for all namespaces.
EventKey: TypeAlias = UUID | tuple[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """The events that a waiter or follower wants.

    Args:
        job_uid: the job, sample set or sample job; None means all of them in `namespaces`.
        namespaces: applies if `job_uid` is None.
        resources: the resources of the API.
    """

    job_uid: UUID | None = None
    namespaces: NamespaceSet = EVERY_NAMESPACE
    resources: frozenset[str] = frozenset({JOBS})

    def covers(self, event: FeedEvent) -> bool:
        if event.resource not in self.resources:
            return False
        if self.job_uid is not None:
            return event.job_uid == self.job_uid
        return event.namespace in self.namespaces

    def index_keys(self) -> list[EventKey]:
        """Return the keys of this interest: each event that it covers has one of them."""
        if self.job_uid is not None:
            return [self.job_uid]
        names: Sequence[str | None] | None = self.namespaces.names
        return [(resource, name) for resource in self.resources for name in ((None,) if names is None else names)]


def keys_of(event: FeedEvent) -> tuple[EventKey, ...]:
    """Return the keys under which interests in the event are found."""
    return event.job_uid, (event.resource, event.namespace), (event.resource, None)
