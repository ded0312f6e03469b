"""Reads stored objects of any resource. The caller has checked that the principal may see them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from app.db.lists import counting, pages
from app.db.lists.facets import Facets
from app.db.lists.pages import Page
from app.db.objects import resources
from app.db.objects.events import EventPlace
from app.db.objects.history import HistoryRow
from app.db.objects.resources import FoundRow, Row, RowKey, Stored
from app.db.postgres.engine import Database
from app.db.postgres.group_read import GroupRead
from app.db.postgres.queries import Cursor
from app.db.purge import namespace_of
from app.domain.errors import Purged, no_such
from app.domain.listing import Criteria
from app.domain.plan import Manifest, Rank
from app.fairness.share import caller
from app.services.limits.turns import Turns, room_for

_T = TypeVar("_T")
DECODED: Final = 12
"""Decoded JSON of many short strings takes about twelve times as much memory as its text."""
# Bytes of documents that need no room: their objects take less than a megabyte.
_SMALL_BYTES: Final = 64 * 1024
_LISTS_AT_ONCE: Final = 3
_MAX_WAITING: Final = 10_000
# Seconds after which a client gets the answer that the process is overloaded.
_LIST_WAIT: Final = 10.0
# Bytes of a page of whole objects and of the replicas of one large job on it, as records and as text.
_PAGE_BYTES: Final = 24 * 1024 * 1024
# Bytes of a summary, a row of history or an event with its message, as a record and as text.
_ITEM_BYTES: Final = 4 * 1024


class Address(NamedTuple):
    """Identifies an object by its uid, or by namespace and name.

    A name means the object that has it, or else the newest one that had it.
    """

    uid: UUID | None = None
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEvent:
    """An event of an object, in the view of the API.

    Args:
        source: `pending` for a current pending reason, `evidence` for an Event of an ended pod, `controller` for an
            event that the controller recorded.
        key: the replica, for events of pods.
        attempt: the number of the attempt, for events of pods.
    """

    place: EventPlace
    source: str
    reason: str
    message: str
    type: str = "Normal"
    count: int = 1
    key: Rank | None = None
    attempt: int | None = None
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


def list_turns() -> Turns:
    """Return the turns in which callers read lists, so that most connections of the pool remain for other requests."""
    return Turns("lists", at_once=_LISTS_AT_ONCE, max_waiting=_MAX_WAITING, max_seconds=_LIST_WAIT)


class Reader(ABC, Generic[Row]):
    """Reads objects of one resource. `what` is the word for an object in messages."""

    def __init__(self, db: Database, stored: Stored[Row], what: str, lists: Turns | None = None) -> None:
        self._db = db
        self._stored = stored
        self._what = what
        self._lists = lists or list_turns()
        self._versions = GroupRead[RowKey, FoundRow](
            partial(resources.versions, db, stored), max_wait=db.acquire_timeout
        )

    async def run(self) -> None:
        """Answer the calls of `version` until cancelled. While it does not run, they wait."""
        await self._versions.run()

    async def read_posted(self, uid: UUID) -> Manifest | None:
        """Return the manifest of the object as it was posted. None if that is not known."""
        await _room_for_document(await resources.read_posted_size(self._db, self._stored, uid))
        return await resources.read_posted(self._db, self._stored, uid)

    async def row(self, address: Address) -> Row:
        """Return the object.

        Raises:
            NotFound: there is none.
            Purged: there was one.
        """
        uid = await self._with_room(address)
        return await self._present(await resources.get(self._db, self._stored, uid), uid)

    async def _with_room(self, address: Address) -> UUID:
        """Return the uid of the object, whose documents this request then has the memory for. Raise as `row`."""
        key = address.uid or (address.namespace, address.name)
        version = await self._present((await resources.versions(self._db, self._stored, [key])).get(key), address.uid)
        await _room_for_document((await resources.sizes(self._db, self._stored, [version.uid])).get(version.uid, 0))
        return version.uid

    async def version(self, address: Address) -> FoundRow:
        """Return uid, version and namespace of the object, which is cheaper than its row. Raise as `row`.

        The version is at least as new as everything that was committed before the call.
        """
        found = await self._versions.get(address.uid or (address.namespace, address.name))
        return await self._present(found, address.uid)

    async def page(self, where: Criteria, after: Cursor | None, limit: int) -> Page[Row]:
        """Return at most `limit` objects after the cursor, newest first. A short page may have a successor."""
        await room_for(_PAGE_BYTES)
        async with self._lists.turn(caller()):
            return await pages.page(self._db, self._stored, where, after=after, limit=limit)

    async def newest(self, where: Criteria, limit: int) -> list[Row]:
        """Return the newest objects that match, at most `limit`, however many rows must be examined for them."""
        found = await self.page(where, None, limit)
        rows = found.rows
        while found.next is not None and len(rows) < limit:
            found = await self.page(where, found.next, limit - len(rows))
            rows = [*rows, *found.rows]
        return rows

    async def summary_page(self, where: Criteria, after: Cursor | None, limit: int) -> Page[Any]:
        """Return the page that `page` returns, with summaries in place of rows."""
        await room_for(limit * _ITEM_BYTES)
        async with self._lists.turn(caller()):
            return await pages.summary_page(self._db, self._stored, where, after=after, limit=limit)

    async def facets(self, where: Criteria) -> Facets:
        """Count the objects that match the filter, whatever their kinds and phases."""
        async with self._lists.turn(caller()):
            return await counting.facets(self._db, self._stored, where)

    async def history(self, uid: UUID, after: int, limit: int) -> list[HistoryRow]:
        """Return at most `limit` history rows with a number above `after`, oldest first."""
        await room_for(limit * _ITEM_BYTES)
        return await resources.history(self._db, self._stored, uid, after_seq=after, limit=limit)

    @abstractmethod
    async def events(self, row: Row, after: EventPlace | None, limit: int) -> list[ResourceEvent]:
        """Return at most `limit` events of the object: those after a place, or the first ones."""

    async def _present(self, found: _T | None, uid: UUID | None) -> _T:
        """Return what was found by the uid or, without one, by a name. Raise as `row` if that is nothing."""
        if found is None:
            namespace = None if uid is None else await namespace_of(self._db, uid, self._stored.resource)
            raise no_such(self._what) if namespace is None else Purged(self._what, namespace)
        return found


async def _room_for_document(size: int) -> None:
    if size > _SMALL_BYTES:
        await room_for(size * DECODED)
