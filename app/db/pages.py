"""Pages of lists. A page examines a bounded number of rows, however many objects are stored.

    index on uid or name ─▶ first rows of a sorted index ─▶ index on another attribute ─▶ more rows ─▶ short page

Each step either yields the page, or leaves it to the next one:

- An index on the attribute of a filter finds all rows that can match, if they are at most FOUND.
- A sorted index (`app/db/list_access.py`) yields the rows in the order of lists, and those that match are the page.
  After EXAMINED rows, the page ends with what was found. It has a successor, which continues behind these rows.

docs/decisions/0033-lists-examine-a-bounded-number-of-rows.md has the reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from app.db import list_reading
from app.db.engine import Connection, Database
from app.db.list_access import ListAccess, choose, needs_kinds
from app.db.list_conditions import ListCondition, Parameters
from app.db.list_reading import ORDER, OTHER_INDEXED, SELECTIVE, ListReading
from app.db.queries import Cursor
from app.db.resources import Row, Stored
from app.domain.listing import Criteria


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """`next` is the place after which the next page begins, or None at the end of the list.

    A page with fewer rows than requested, even none, may have a successor.
    """

    rows: list[Row]
    next: Cursor | None


async def page(
    db: Database, stored: Stored[Row], where: Criteria, *, after: Cursor | None = None, limit: int
) -> Page[Row]:
    """Return at most `limit` rows after the cursor, the newest first."""
    return await _page(db, stored, where, after, limit, columns=stored.columns, read=stored.row)


async def summary_page(
    db: Database, stored: Stored[Row], where: Criteria, *, after: Cursor | None = None, limit: int
) -> Page[Any]:
    """Return the page that `page` returns, with summaries in place of rows."""
    return await _page(db, stored, where, after, limit, columns=stored.summary_columns, read=stored.summary)


async def _page(
    db: Database,
    stored: Stored[Any],
    where: Criteria,
    after: Cursor | None,
    limit: int,
    *,
    columns: str,
    read: Callable[[Mapping[str, Any]], Any],
) -> Page[Any]:
    # The token reaches no served namespace.
    if where.namespaces.names == []:
        return Page(rows=[], next=None)
    async with db.begin(list_reading.BEGIN) as connection:
        reading = _Reading(connection, stored, where, after, limit, columns)
        rows, following = await reading.page()
    return Page(rows=[read(row) for row in rows], next=following)


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
        access = choose(self._stored, self._where, kinds)
        if not access.remaining:
            return self._cut(await self._along(access))
        first, end = await self._examine(access, list_reading.EXAMINED_FIRST)
        if end is None or len(first) > self._limit:
            return self._cut(first)
        finding = await self._few(OTHER_INDEXED)
        if finding is None:
            finding = await self._few_with_labels(access)
        if finding is not None:
            return await self._among(finding)
        more, end = await self._examine(access, list_reading.EXAMINED)
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
