"""Pages of lists. A page examines a bounded number of rows, however many objects are stored.

    index on uid or name ─▶ first rows of a sorted index ─▶ index on another attribute ─▶ more rows ─▶ short page

Each step either yields the page, or leaves it to the next one:

- An index on the attribute of a filter finds all rows that can match, if they are at most FOUND.
- A sorted index (`app/db/lists/access_path.py`) yields the rows in the order of lists; those that match are the page.
  After EXAMINED rows, the page ends with what was found. It has a successor, which continues behind these rows.

docs/decisions/0033-lists-examine-a-bounded-number-of-rows.md has the reasons.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic
from uuid import UUID

from app.db.lists import statements
from app.db.lists.access_path import ListAccess, needs_kinds
from app.db.lists.conditions import ListCondition, Parameters
from app.db.lists.statements import ORDER, OTHER_INDEXED, SELECTIVE, ListReading
from app.db.objects.resources import Row, Stored, sizes_in
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import Cursor
from app.domain.listing import Criteria
from app.fairness.share import next_slice

PAGE_BYTES: Final = 1024 * 1024
"""The most bytes of documents on a page of whole objects, if it has several."""
_SUMMARIES_AT_ONCE: Final = 10
STEP_BYTES: Final = 64 * 1024
"""The most bytes of documents that are read and decoded at once, if they are several: other requests run in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """`next` is the place after which the next page begins, or None at the end of the list.

    A page with fewer rows than requested, even none, may have a successor.
    """

    rows: list[Row]
    next: Cursor | None


_NOTHING: Final[Page[Any]] = Page(rows=[], next=None)


async def page(
    db: Database, stored: Stored[Row], where: Criteria, *, after: Cursor | None = None, limit: int
) -> Page[Row]:
    """Return at most `limit` rows after the cursor, the newest first. Their documents have at most PAGE_BYTES together.

    They are read in steps, because a decoded document takes about twelve times the memory of its text.
    """
    if where.namespaces.names == []:
        return _NOTHING
    entry = f"{stored.alias}.uid, {stored.alias}.created_at, {stored.stored_size} AS size"
    async with db.snapshot(by_index=True) as connection:
        entries, following = await _Reading(connection, stored, where, after, limit, entry).page()
        # First by the sizes as stored, so that PostgreSQL does not read documents that cannot be on the page.
        entries, following = _within_bytes(entries, [entry["size"] for entry in entries], following)
        found = await sizes_in(connection, stored, [entry["uid"] for entry in entries])
        sizes = [found[entry["uid"]] for entry in entries]
        entries, following = _within_bytes(entries, sizes, following)
        rows: dict[UUID, Row] = {}
        for uids in _steps(entries, sizes):
            rows |= {row["uid"]: stored.row(row) for row in await connection.fetch(stored.by_uids, uids)}
            await next_slice()
    return Page(rows=[rows[entry["uid"]] for entry in entries], next=following)


async def summary_page(
    db: Database, stored: Stored[Row], where: Criteria, *, after: Cursor | None = None, limit: int
) -> Page[Any]:
    """Return at most `limit` summaries after the cursor, the newest first."""
    # The token reaches no served namespace.
    if where.namespaces.names == []:
        return _NOTHING
    async with db.snapshot(by_index=True) as connection:
        rows, following = await _Reading(connection, stored, where, after, limit, stored.summary_columns).page()
    summaries = []
    for number, row in enumerate(rows, 1):
        summaries.append(stored.summary(row))
        if number % _SUMMARIES_AT_ONCE == 0:
            await next_slice()
    return Page(rows=summaries, next=following)


def _within_bytes(
    entries: Sequence[Any], sizes: Sequence[int], following: Cursor | None
) -> tuple[Sequence[Any], Cursor | None]:
    """Return the first entries of a page whose sizes fit into PAGE_BYTES, at least one, and what follows them."""
    taken = 0
    for number, size in enumerate(sizes):
        taken += size
        if number and taken > PAGE_BYTES:
            return entries[:number], _place(entries[number - 1])
    return entries, following


def _steps(entries: Sequence[Any], sizes: Sequence[int]) -> Iterator[list[UUID]]:
    """Yield the uids of the rows that are read at once. There can be more sizes than entries."""
    uids: list[UUID] = []
    taken = 0
    for entry, size in zip(entries, sizes, strict=False):
        if uids and taken + size > STEP_BYTES:
            yield uids
            uids, taken = [], 0
        uids.append(entry["uid"])
        taken += size
    if uids:
        yield uids


class _Reading(ListReading):
    """Reads one page."""

    def __init__(
        self,
        connection: Connection,
        stored: Stored[Any],
        where: Criteria,
        after: Cursor | None,
        limit: int,
        columns: str,
    ) -> None:
        super().__init__(connection, stored, where, [] if after is None else [_after(after)])
        self._limit = limit
        self._columns = columns

    async def page(self) -> tuple[Sequence[Any], Cursor | None]:
        """Return the rows of the page, and the place after which the next one begins."""
        finding = await self._few(SELECTIVE)
        if finding is not None:
            return await self._among(finding)
        kinds = await self._kinds() if needs_kinds(self._stored, self._where) else []
        access = self._choose(kinds)
        if not access.remaining:
            return self._cut(await self._along(access))
        first, end = await self._examine(access, statements.EXAMINED_FIRST)
        if end is None or len(first) > self._limit:
            return self._cut(first)
        finding = await self._few(OTHER_INDEXED)
        if finding is None:
            finding = await self._few_with_labels(access)
        if finding is not None:
            return await self._among(finding)
        more, end = await self._examine(access, statements.EXAMINED)
        return self._cut(more) if end is None or len(more) > self._limit else (more, end)

    def _cut(self, rows: Sequence[Any]) -> tuple[Sequence[Any], Cursor | None]:
        """Return the page, given one row more than it has, if there is one."""
        if len(rows) <= self._limit:
            return rows, None
        return rows[: self._limit], _place(rows[self._limit - 1])

    async def _among(self, finding: Sequence[ListCondition]) -> tuple[Sequence[Any], Cursor | None]:
        """Return the page of the rows that match, of those that the conditions find."""
        parameters = Parameters()
        return self._cut(await self._rows(self._matching(finding, parameters), parameters))

    async def _examine(self, access: ListAccess, examined: int) -> tuple[Sequence[Any], Cursor | None]:
        """Examine this number of rows.

        Return those that match, at most one more than the page has, and the place of the last one that was examined,
        or None if the list ends before.
        """
        found = await self._along(access, examined)
        if len(found) > self._limit:
            return found, _place(found[-1])
        # Another statement, because the index alone answers it. To number the rows of the first one takes longer.
        parameters = Parameters()
        last = self._entries(access, parameters, f"LIMIT 1 OFFSET {examined - 1}")
        row = await self._connection.fetchrow(f"SELECT created_at, uid FROM ({last}) AS last", *parameters.arguments)  # noqa: S608
        return found, None if row is None else _place(row)

    async def _along(self, access: ListAccess, examined: int | None = None) -> Sequence[Any]:
        """Return the first matching rows, one more than the page has, of this number of rows or as many as needed."""
        parameters, at = Parameters(), self._at
        bound = parameters.add(self._limit + 1) if examined is None else examined
        entries = self._entries(access, parameters, f"LIMIT {bound}")
        return await self._rows(f"({entries}) AS {at} WHERE {parameters.bind(access.remaining, at)}", parameters)

    async def _rows(self, source: str, parameters: Parameters) -> Sequence[Any]:
        """Return the first rows of a source of `uid` and `created_at`, one more than the page has."""
        at = self._at
        # The limit is a parameter, so that pages of all sizes share one prepared statement.
        statement = f"""SELECT {self._columns}
            FROM (SELECT uid, created_at FROM {source} {ORDER} LIMIT {parameters.add(self._limit + 1)}) AS chosen
            JOIN {self._table} ON {at}.uid = chosen.uid
            ORDER BY chosen.created_at DESC, chosen.uid DESC"""  # noqa: S608
        rows: Sequence[Any] = await self._connection.fetch(statement, *parameters.arguments)
        return rows


def _after(cursor: Cursor) -> ListCondition:
    # A comparison of rows follows the index, so that a page reads none of the earlier ones.
    return ListCondition("place", "({at}.created_at, {at}.uid) < ({}, {})", tuple(cursor))


def _place(row: Any) -> Cursor:
    return Cursor(row["created_at"], row["uid"])
