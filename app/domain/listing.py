"""Determines whether a change of one job or sample can change a page of a list.

    filter, page as it was read, changed resource ─▶ may this page differ now?

Invariant: the answer is never a false no. A false yes costs one query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.kubernetes.selectors import Requirement, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    """What the filters of lists look at. A thing that was deleted is shown only to those who ask for deleted ones."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    phase: str
    labels: Mapping[str, str]
    created_at: datetime
    finished_at: datetime | None = None
    set_name: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """The filter of a list. Empty and None restrict nothing. `…_after` is inclusive, `…_before` exclusive."""

    namespaces: NamespaceSet = EVERY_NAMESPACE
    kinds: Sequence[str] = ()
    uids: Sequence[UUID] = ()
    name: str | None = None
    prefix: str | None = None
    search: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    phases: Sequence[str] = ()
    labels: Sequence[Requirement] = ()
    set_name: str | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    deleted: bool = False

    def can_match(self, thing: ListItem) -> bool:
        """Whether the item matches in every field that never changes."""
        return (
            thing.namespace in self.namespaces
            and (not self.kinds or thing.kind in self.kinds)
            and (not self.uids or thing.uid in self.uids)
            and (self.name is None or thing.name == self.name)
            and thing.name.startswith(self.prefix or "")
            and (self.search or "") in thing.name
            and _within(thing.created_at, self.created_after, self.created_before)
        )

    def matches(self, thing: ListItem) -> bool:
        return (
            self.can_match(thing)
            and (self.deleted or bool(self.uids) or not thing.deleted)
            and (not self.phases or thing.phase in self.phases)
            and (self.set_name is None or thing.set_name == self.set_name)
            and _within(thing.finished_at, self.finished_after, self.finished_before)
            and matches(self.labels, thing.labels)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A page as it was read: its items, the place behind which it begins, and its last place if there is another page.

    A place is the creation time and the uid of an item; lists are ordered from the newest to the oldest.
    """

    uids: frozenset[UUID] = field(default_factory=frozenset)
    begins_after: tuple[datetime, UUID] | None = None
    ends_at: tuple[datetime, UUID] | None = None


def concerns(criteria: Criteria, extent: Extent, thing: ListItem) -> bool:
    """Whether the page may have changed now that `thing` has changed."""
    if thing.uid in extent.uids:
        return True
    place = (thing.created_at, thing.uid)
    if not criteria.can_match(thing) or (extent.begins_after is not None and place >= extent.begins_after):
        return False
    if extent.ends_at is not None and place < extent.ends_at:
        # Behind the page, it may have become, or have been, the only reason that there is another page.
        return not criteria.matches(thing)
    return criteria.matches(thing)


def _within(moment: datetime | None, after: datetime | None, before: datetime | None) -> bool:
    if after is None and before is None:
        return True
    return moment is not None and (after is None or moment >= after) and (before is None or moment < before)
