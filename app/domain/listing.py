"""Determines whether a change of one object can change a page of a list, so that a long poll must read it again.

    filter, page as it was read, changed object ─▶ may the page differ now?

Invariant: a negative answer is always correct. A wrong positive answer costs one query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.kubernetes.selectors import Requirement, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    """The attributes of an object that filters of lists use. Deleted objects match only a filter with `deleted`."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    phase: str
    labels: Mapping[str, str]
    created_at: datetime
    created_by: str = ""
    created_by_id: str | None = None
    finished_at: datetime | None = None
    set_name: str = ""
    queue: str = ""
    still_running: bool = False
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """The filter of a list. Empty and None restrict nothing. `…_after` is inclusive, `…_before` exclusive.

    `still_running` selects jobs that have ended, and of which replicas still run.
    """

    namespaces: NamespaceSet = EVERY_NAMESPACE
    kinds: Sequence[str] = ()
    uids: Sequence[UUID] = ()
    name: str | None = None
    prefix: str | None = None
    search: str | None = None
    creator_name: str | None = None
    creator_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    phases: Sequence[str] = ()
    labels: Sequence[Requirement] = ()
    set_name: str | None = None
    queue: str | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    still_running: bool = False
    deleted: bool = False

    def can_match(self, item: ListItem) -> bool:
        """Return whether the item matches in all attributes that never change."""
        return (
            item.namespace in self.namespaces
            and (not self.kinds or item.kind in self.kinds)
            and (not self.uids or item.uid in self.uids)
            and (self.name is None or item.name == self.name)
            and item.name.startswith(self.prefix or "")
            and (self.search or "") in item.name
            and self.creator_name in (None, item.created_by)
            and self.creator_id in (None, item.created_by_id)
            and _within(item.created_at, self.created_after, self.created_before)
        )

    @property
    def of_constants(self) -> "Criteria":
        """The filter by those attributes that never change: every object that ever matches this filter matches it."""
        return replace(
            self,
            phases=(),
            labels=(),
            set_name=None,
            queue=None,
            finished_after=None,
            finished_before=None,
            still_running=False,
            deleted=True,
        )

    def matches(self, item: ListItem) -> bool:
        return (
            self.can_match(item)
            # A filter by uid also selects deleted objects, as in the SQL of app/db/lists/conditions.py.
            and (self.deleted or bool(self.uids) or not item.deleted)
            and (not self.phases or item.phase in self.phases)
            and (item.still_running or not self.still_running)
            and (self.set_name is None or item.set_name == self.set_name)
            and (self.queue is None or item.queue == self.queue)
            and _within(item.finished_at, self.finished_after, self.finished_before)
            and matches(self.labels, item.labels)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A page as it was read: its items, the place after which it begins, and its last place if another page follows.

    A place is the creation time and the uid of an item. Lists are ordered from the newest item to the oldest.
    """

    uids: frozenset[UUID] = field(default_factory=frozenset)
    begins_after: tuple[datetime, UUID] | None = None
    ends_at: tuple[datetime, UUID] | None = None


def concerns(criteria: Criteria, extent: Extent, item: ListItem) -> bool:
    """Return whether the change of this item may have changed the page."""
    if item.uid in extent.uids:
        return True
    place = (item.created_at, item.uid)
    # Attributes that never change cannot make an item join or leave the list, so most changes are excluded here.
    if not criteria.can_match(item) or (extent.begins_after is not None and place >= extent.begins_after):
        return False
    if extent.ends_at is not None and place < extent.ends_at:
        # An item after the page matters in one case: as the only one there, it determines whether another page follows.
        return not criteria.matches(item)
    return criteria.matches(item)


def _within(moment: datetime | None, after: datetime | None, before: datetime | None) -> bool:
    if after is None and before is None:
        return True
    # An object without this time, such as a job that has not ended, is in no range.
    return moment is not None and (after is None or moment >= after) and (before is None or moment < before)
