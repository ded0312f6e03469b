"""The statements that pages and counts of lists share: which rows an index finds, and the rows along a sorted index."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.db.lists.access_path import MAX_RANGES, ListAccess, choose
from app.db.lists.conditions import ListCondition, Parameters, about, conditions, searches
from app.db.objects.resources import Stored
from app.db.postgres.engine import Connection
from app.domain.listing import Criteria

EXAMINED: Final = 10_000
"""The most rows that are examined in the order of lists. A large installation has this number of jobs in progress."""
FOUND: Final = 4_000
"""The most rows that an index on the attribute of a filter may find. Each may be on another page of the table."""
EXAMINED_FIRST: Final = 1_000
"""The most rows that are examined before other indexes are tried."""
SELECTIVE: Final = ("uid", "name", "set_name", "still_running")
"""A filter by one of these attributes usually selects few rows, so that no other step is needed."""
OTHER_INDEXED: Final = ("finished_at", "prefix")
SAMPLED: Final = 300
"""The number of rows that tell whether a label is rare among all rows."""
# A GIN index yields no row before it has found all of them. So a label that more of the first rows or of a sample have
# is not looked up: the index would probably find more than FOUND rows.
_RARE: Final = 0.01
# Only a bitmap scan reads a GIN index. It reads all entries before the first row, so it serves nothing else.
_ALLOW_GIN: Final = "SET LOCAL enable_bitmapscan = on"

# The uid orders rows of the same time, so that no page repeats or skips one.
ORDER: Final = "ORDER BY created_at DESC, uid DESC"


class ListReading:
    """Reads rows of a list on a connection, in a snapshot by indexes.

    `start` are conditions for the place where the read begins.
    """

    def __init__(
        self, connection: Connection, stored: Stored[Any], where: Criteria, start: Sequence[ListCondition] = ()
    ) -> None:
        self._connection = connection
        self._stored = stored
        self._where = where
        self._start = start
        self._conditions = conditions(where, deleted=stored.deleted)

    async def _kinds(self) -> list[str]:
        return [row["kind"] for row in await self._connection.fetch(self._stored.kinds)]

    def _choose(self, kinds: Sequence[str], max_ranges: int = MAX_RANGES) -> ListAccess:
        return choose(self._stored, self._where, self._conditions, kinds, max_ranges=max_ranges)

    async def _few(self, attributes: Sequence[str]) -> Sequence[ListCondition] | None:
        """Return the conditions on the first attribute whose index finds at most FOUND rows, or None if none does."""
        for attribute in attributes:
            finding = searches(self._conditions, attribute) if attribute in self._stored.indexed else []
            if finding and await self._are_few(finding):
                return finding
        return None

    async def _few_with_labels(self, access: ListAccess) -> Sequence[ListCondition] | None:
        """Return the conditions on labels if their index finds at most FOUND rows, otherwise None.

        `access` reads the same list along a sorted index.
        """
        asked = about(self._conditions, "labels") if "labels" in self._stored.indexed else []
        if not (asked and await self._are_rare_first(asked, access) and await self._are_rare_in_sample(asked)):
            return None
        await self._connection.execute(_ALLOW_GIN)
        return await self._few(["labels"])

    async def _are_few(self, finding: Sequence[ListCondition]) -> bool:
        parameters = Parameters()
        found = f"SELECT FROM {self._table} WHERE {parameters.bind(finding, self._at)} AND {self._stored.only}"
        count = f"SELECT count(*) FROM ({found} LIMIT {FOUND + 1}) AS found"  # noqa: S608
        return bool(await self._connection.fetchval(count, *parameters.arguments) <= FOUND)

    async def _are_rare_first(self, asked: Sequence[ListCondition], access: ListAccess) -> bool:
        """Return whether few of the first rows of a long list fulfil the conditions."""
        parameters, at = Parameters(), self._at
        first = self._entries(access, parameters, f"LIMIT {EXAMINED_FIRST}")
        fulfilled = parameters.bind(asked, at)
        row = await self._connection.fetchrow(
            f"SELECT count(*) AS rows, count(*) FILTER (WHERE {fulfilled}) AS found FROM ({first}) AS {at}",  # noqa: S608
            *parameters.arguments,
        )
        return bool(row["rows"] == EXAMINED_FIRST and row["found"] <= EXAMINED_FIRST * _RARE)

    async def _are_rare_in_sample(self, asked: Sequence[ListCondition]) -> bool:
        """Return whether few of all rows fulfil the conditions, judged by a sample of them.

        Uids are random, so the rows with the lowest ones are a sample. It hardly changes, so that it stays in memory.
        """
        parameters, at = Parameters(), self._at
        sample = f"SELECT * FROM {self._table} WHERE {self._stored.only} ORDER BY uid LIMIT {SAMPLED}"  # noqa: S608
        found = await self._connection.fetchval(
            f"SELECT count(*) FROM ({sample}) AS {at} WHERE {parameters.bind(asked, at)}",  # noqa: S608
            *parameters.arguments,
        )
        return bool(found <= SAMPLED * _RARE)

    def _matching(self, finding: Sequence[ListCondition], parameters: Parameters) -> str:
        """Return the FROM clause for the rows that match, of those that the conditions find by their index."""
        at = self._at
        # OFFSET 0 keeps the planner from using another index for this part.
        source = f"SELECT * FROM {self._table} WHERE {parameters.bind(finding, at)} AND {self._stored.only} OFFSET 0"  # noqa: S608
        return f"({source}) AS {at} WHERE {parameters.bind([*self._conditions, *self._start], at)}"

    def _entries(self, access: ListAccess, parameters: Parameters, bound: str) -> str:
        """Return the statement for rows of all ranges, in the order of lists, that `bound` selects.

        PostgreSQL merges the ranges, and reads of each only what the bound needs.
        """
        ranges = " UNION ALL ".join([self._bound_range(access, parameters, values) for values in access.ranges])
        return f"SELECT * FROM ({ranges}) AS merged {ORDER} {bound}"  # noqa: S608

    def _bound_range(self, access: ListAccess, parameters: Parameters, values: Sequence[str]) -> str:
        of_column = {column: parameters.add(value) for column, value in zip(access.index.columns, values, strict=True)}
        return f"({self._range(access, parameters, of_column)})"

    def _range(
        self, access: ListAccess, parameters: Parameters, of_column: Mapping[str, str], columns: str = "*"
    ) -> str:
        """Return the statement for the rows with these values in the columns of the index, as SQL expressions."""
        at = self._at
        equal = [f"{at}.{column} = {value}" for column, value in of_column.items()]
        bounds = parameters.bind([*access.within, *self._start], at)
        selected = " AND ".join([*equal, access.index.condition.format(at=at), self._stored.only, bounds])
        # The order of the ranges lets PostgreSQL merge them.
        return f"SELECT {columns} FROM {self._table} WHERE {selected} {ORDER}"  # noqa: S608

    @property
    def _at(self) -> str:
        return self._stored.alias

    @property
    def _table(self) -> str:
        return f"{self._stored.table.name} AS {self._at}"
