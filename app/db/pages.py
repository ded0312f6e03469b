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
from typing import Any, Final, Generic

from app.db.engine import Connection, Database
from app.db.list_access import ListAccess, choose, needs_kinds
from app.db.list_conditions import ListCondition, Parameters, about, conditions, searches
from app.db.queries import Cursor
from app.db.resources import Row, Stored
from app.domain.listing import Criteria

EXAMINED: Final = 10_000
"""The rows that a page examines in the order of lists: as many jobs as a large installation has that have not ended."""
FOUND: Final = 4_000
"""The rows that an index on the attribute of a filter may find. In no order, they are on more pages of the table."""
_EXAMINED_FIRST: Final = 1_000
# A filter by one of these usually selects few rows, so that no other step is needed.
_SELECTIVE: Final = ("uid", "name", "set_name")
_OTHER_INDEXED: Final = ("finished_at", "prefix")
# A GIN index yields no row before it has found all of them. So a label that more of the first rows have is not looked
# up: the index would probably find more than FOUND rows.
_RARE: Final = 0.01
# One snapshot for all steps. The indexes are chosen here, so that statistics that are wrong or old cannot make the
# planner read and sort a table. A plan for unknown values would not use the index for a prefix.
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; "
    "SET LOCAL enable_bitmapscan = off; SET LOCAL plan_cache_mode = force_custom_plan"
)
# Only a bitmap scan reads a GIN index. It reads all entries before the first row, so it serves nothing else.
_ALLOW_GIN: Final = "SET LOCAL enable_bitmapscan = on"


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
    async with db.begin(_BEGIN) as connection:
        reading = _Reading(connection, stored, where, after, limit, columns)
        rows, following = await reading.page()
    return Page(rows=[read(row) for row in rows], next=following)


class _Reading:
    """Reads one page on a connection, in the transaction of the caller."""

    def __init__(
        self,
        connection: Connection,
        stored: Stored[Any],
        where: Criteria,
        after: Cursor | None,
        limit: int,
        columns: str,
    ) -> None:
        self._connection = connection
        self._stored = stored
        self._where = where
        self._limit = limit
        self._columns = columns
        self._after = [] if after is None else [_after(after)]
        self._conditions = conditions(where, deleted=stored.deleted)

    async def page(self) -> tuple[Sequence[Any], Cursor | None]:
        """Return the rows of the page, and the place after which the next one begins."""
        selected = await self._by_indexes(_SELECTIVE)
        if selected is not None:
            return selected
        kinds = await self._kinds() if needs_kinds(self._stored, self._where) else []
        access = choose(self._stored, self._where, kinds)
        if not access.remaining:
            return self._cut(await self._along(access, f"LIMIT {self._limit + 1}"))
        first, end = await self._examine(access, _EXAMINED_FIRST)
        if end is None or len(first) > self._limit:
            return self._cut(first)
        found = await self._by_indexes(_OTHER_INDEXED)
        if found is None and await self._is_rare("labels", access):
            await self._connection.execute(_ALLOW_GIN)
            found = await self._by_indexes(["labels"])
        if found is not None:
            return found
        more, end = await self._examine(access, EXAMINED)
        return self._cut(more) if end is None or len(more) > self._limit else (more, end)

    def _cut(self, rows: Sequence[Any]) -> tuple[Sequence[Any], Cursor | None]:
        """Return the page, given one row more than it has, if there is one."""
        if len(rows) <= self._limit:
            return rows, None
        return rows[: self._limit], _place(rows[self._limit - 1])

    async def _kinds(self) -> list[str]:
        return [row["kind"] for row in await self._connection.fetch(self._stored.kinds)]

    async def _by_indexes(self, attributes: Sequence[str]) -> tuple[Sequence[Any], Cursor | None] | None:
        """Return the page by means of the first attribute that finds at most FOUND rows, or None if none does."""
        for attribute in attributes:
            finding = searches(self._conditions, attribute) if attribute in self._stored.indexed else []
            if finding and await self._are_few(finding):
                return self._cut(await self._among(finding))
        return None

    async def _are_few(self, finding: Sequence[ListCondition]) -> bool:
        parameters = Parameters()
        found = f"SELECT FROM {self._table} WHERE {parameters.bind(finding, self._at)} AND {self._stored.only}"
        count = f"SELECT count(*) FROM ({found} LIMIT {FOUND + 1}) AS found"  # noqa: S608
        return bool(await self._connection.fetchval(count, *parameters.arguments) <= FOUND)

    async def _is_rare(self, attribute: str, access: ListAccess) -> bool:
        """Return whether there are conditions on the attribute that few of the first rows of the list fulfil."""
        asked = about(self._conditions, attribute)
        if not asked:
            return False
        parameters, at = Parameters(), self._at
        first = self._entries(access, parameters, f"LIMIT {_EXAMINED_FIRST}")
        count = f"SELECT count(*) FROM ({first}) AS {at} WHERE {parameters.bind(asked, at)}"  # noqa: S608
        return bool(await self._connection.fetchval(count, *parameters.arguments) <= _EXAMINED_FIRST * _RARE)

    async def _among(self, finding: Sequence[ListCondition]) -> Sequence[Any]:
        """Return the first rows that match, one more than the page has, of those that the conditions find."""
        parameters, at = Parameters(), self._at
        # OFFSET 0 keeps the planner from using another index for this part.
        source = f"SELECT * FROM {self._table} WHERE {parameters.bind(finding, at)} AND {self._stored.only} OFFSET 0"  # noqa: S608
        matching = parameters.bind([*self._conditions, *self._after], at)
        return await self._rows(f"({source}) AS {at} WHERE {matching}", parameters)

    async def _examine(self, access: ListAccess, examined: int) -> tuple[Sequence[Any], Cursor | None]:
        """Examine this number of rows.

        Return those that match, at most one more than the page has, and the place of the last one that was examined,
        or None if the list ends before.
        """
        found = await self._along(access, f"LIMIT {examined}")
        if len(found) > self._limit:
            return found, _place(found[-1])
        parameters = Parameters()
        last = self._entries(access, parameters, f"LIMIT 1 OFFSET {examined - 1}")
        row = await self._connection.fetchrow(f"SELECT created_at, uid FROM ({last}) AS last", *parameters.arguments)  # noqa: S608
        return found, None if row is None else _place(row)

    async def _along(self, access: ListAccess, bound: str) -> Sequence[Any]:
        """Return the first matching rows, one more than the page has, of those that `bound` selects."""
        parameters, at = Parameters(), self._at
        entries = self._entries(access, parameters, bound)
        return await self._rows(f"({entries}) AS {at} WHERE {parameters.bind(access.remaining, at)}", parameters)

    def _entries(self, access: ListAccess, parameters: Parameters, bound: str) -> str:
        """Return the statement for rows of all ranges, in the order of lists, that `bound` selects.

        PostgreSQL merges the ranges, and reads of each only what the bound needs.
        """
        ranges = " UNION ALL ".join([self._range(access, parameters, values) for values in access.ranges])
        return f"SELECT * FROM ({ranges}) AS merged {_ORDER} {bound}"  # noqa: S608

    def _range(self, access: ListAccess, parameters: Parameters, values: Sequence[str]) -> str:
        at, index = self._at, access.index
        equal = [
            f"{at}.{column} = {parameters.add(value)}" for column, value in zip(index.columns, values, strict=True)
        ]
        bounds = parameters.bind([*access.within, *self._after], at)
        selected = " AND ".join([*equal, index.condition.format(at=at), self._stored.only, bounds])
        # The order of the ranges lets PostgreSQL merge them.
        return f"(SELECT * FROM {self._table} WHERE {selected} {_ORDER})"  # noqa: S608

    async def _rows(self, source: str, parameters: Parameters) -> Sequence[Any]:
        """Return the first rows of a source of `uid` and `created_at`, one more than the page has."""
        at = self._at
        statement = f"""SELECT {self._columns}
            FROM (SELECT uid, created_at FROM {source} {_ORDER} LIMIT {self._limit + 1}) AS chosen
            JOIN {self._table} ON {at}.uid = chosen.uid
            ORDER BY chosen.created_at DESC, chosen.uid DESC"""  # noqa: S608
        rows: Sequence[Any] = await self._connection.fetch(statement, *parameters.arguments)
        return rows

    @property
    def _at(self) -> str:
        return self._stored.alias

    @property
    def _table(self) -> str:
        return f"{self._stored.table.name} AS {self._at}"


# The uid orders rows of the same time, so that no page repeats or skips one.
_ORDER: Final = "ORDER BY created_at DESC, uid DESC"


def _after(cursor: Cursor) -> ListCondition:
    # A comparison of rows follows the index, so that a page reads none of the earlier ones.
    return ListCondition("place", "({at}.created_at, {at}.uid) < ({}, {})", tuple(cursor))


def _place(row: Any) -> Cursor:
    return Cursor(row["created_at"], row["uid"])
