"""Counts the objects of a list by kind and phase. A count examines a bounded number of rows, as a page does.

    index on an attribute of the filter ─▶ exact counts        each part of a sorted index ─▶ counts up to a bound

- If the index on an attribute of the filter finds few rows, they are counted.
- Otherwise the list is read in parts, one for each kind and terminal phase, and one for each kind with the objects that
  have not ended. One statement reads the first rows of all parts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from app.db.lists import statements
from app.db.lists.access_path import NOT_ENDED, ListAccess
from app.db.lists.conditions import ListCondition, Parameters, about
from app.db.lists.facets import CountedPart, Facets
from app.db.lists.statements import OTHER_INDEXED, SELECTIVE, ListReading
from app.db.objects.resources import Stored
from app.db.postgres.engine import Database
from app.domain.listing import Criteria, ListItem

COUNTED: Final = 1_000
"""The most objects of a kind that are counted in one terminal phase."""
EXAMINED_ENDED: Final = 2_500
"""The most rows that are examined of a kind in one terminal phase: for four kinds, as many as for a page."""
_MAX_RANGES: Final = 2_000
"""The most ranges of an index that are read. They are planned as one, and each takes a few microseconds."""
# The columns by which a list is counted. Those of an index divide the list into parts.
_BY: Final = ("kind", "ended")
# What a filter takes from the column `status`.
_IN_STATUS: Final = ("queue", "still_running")


async def facets(db: Database, stored: Stored[Any], where: Criteria) -> Facets:
    """Count the objects that match the filter without its kinds and phases, which select among the counts."""
    if where.namespaces.names == []:
        return Facets(())
    async with db.snapshot(by_index=True) as connection:
        return await _Counting(connection, stored, replace(where, kinds=(), phases=())).facets()


class _Counting(ListReading):
    """Counts one list."""

    async def facets(self) -> Facets:
        finding = await self._few([*SELECTIVE, *OTHER_INDEXED])
        if finding is None:
            finding = await self._few_with_labels(self._choose(()))
        if finding is not None:
            return Facets([await self._all(finding)])
        kinds = await self._kinds() if self._stored.kinds else []
        return Facets(await self._parts(self._choose(kinds, _MAX_RANGES)))

    async def _all(self, finding: Sequence[ListCondition]) -> CountedPart:
        """Count the rows that match, of those that the conditions find."""
        parameters = Parameters()
        source = self._matching(finding, parameters)
        rows = await self._connection.fetch(
            f"SELECT kind, phase, count(*) AS number FROM {source} GROUP BY kind, phase",  # noqa: S608
            *parameters.arguments,
        )
        return CountedPart(found={(row["kind"], row["phase"]): row["number"] for row in rows}, is_complete=True)

    async def _parts(self, access: ListAccess) -> list[CountedPart]:
        """Count the first rows of each part of the list."""
        parts = _distinct(access, [column for column in access.index.columns if column in _BY])
        bounds = [_bounds(part) for part in parts]
        parameters = Parameters()
        rows = await self._connection.fetch(self._statement(access, parts, bounds, parameters), *parameters.arguments)
        found: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
        beyond = set()
        for row in rows:
            if row["is_beyond"]:
                beyond.add(row["part"])
            else:
                found[row["part"]][row["kind"], row["phase"]] = row["number"]
        return [
            CountedPart(
                kind=part.get("kind"),
                ended=part.get("ended"),
                found=found[number],
                is_complete=number not in beyond and sum(found[number].values()) < most,
            )
            for number, (part, (_, most)) in enumerate(zip(parts, bounds, strict=True))
        ]

    def _statement(
        self,
        access: ListAccess,
        parts: Sequence[Mapping[str, str]],
        bounds: Sequence[tuple[int, int]],
        parameters: Parameters,
    ) -> str:
        """Return the statement for the numbers of rows by part, kind and phase.

        A row beyond the examined ones is in the result, so that it shows whether the part ends within them.
        """
        at = self._at
        examined, most = zip(*bounds, strict=True)
        each_part = _table("part", {"examined": examined, "most": most}, parts, parameters)
        entries = self._first_entries(access, parameters)
        # A join with LATERAL is planned once for all parts.
        return f"""SELECT part.number AS part, counted.*
            FROM {each_part} CROSS JOIN LATERAL (
                SELECT kind, phase, nth > part.examined AS is_beyond, count(*) AS number
                FROM (
                    SELECT kind, phase, nth FROM ({entries}) AS {at}
                    WHERE nth > part.examined OR {parameters.bind(access.remaining, at)}
                    LIMIT part.most
                ) AS matching
                GROUP BY 1, 2, 3
            ) AS counted"""  # noqa: S608

    def _first_entries(self, access: ListAccess, parameters: Parameters) -> str:
        """Return the statement for the rows of a part that are examined, and one more, each with its `nth` from 1."""
        others = _distinct(access, [column for column in access.index.columns if column not in _BY])
        each_range = _table("within", {}, others, parameters)
        of_column = {
            column: f"part.{column}" if column in _BY else f"within.{column}" for column in access.index.columns
        }
        # The order within a range makes PostgreSQL read the index.
        one_range = f"{self._range(access, parameters, of_column, self._filter_columns)} LIMIT part.examined + 1"
        return f"""SELECT one.*, row_number() OVER () AS nth
            FROM {each_range} CROSS JOIN LATERAL ({one_range}) AS one LIMIT part.examined + 1"""  # noqa: S608

    @property
    def _filter_columns(self) -> str:
        """The columns that filters use. With all columns, PostgreSQL would need more time for each row."""
        used = {field.name for field in fields(ListItem)} | {self._stored.deleted}
        if about(self._conditions, *_IN_STATUS):
            used.add("status")
        return ", ".join(column.name for column in self._stored.table.c if column.name in used)


def _distinct(access: ListAccess, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the combinations of values that the ranges have in these columns; without columns, one empty one."""
    ranges = [dict(zip(access.index.columns, values, strict=True)) for values in access.ranges]
    found = dict.fromkeys(tuple(values[column] for column in columns) for values in ranges)
    return [dict(zip(columns, combination, strict=True)) for combination in found]


def _bounds(part: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of rows of a part that are examined, and that are counted."""
    if part.get("ended", NOT_ENDED) == NOT_ENDED:
        # Clients need exact numbers of the jobs that have not ended, and these are few.
        return statements.EXAMINED, statements.EXAMINED
    return EXAMINED_ENDED, COUNTED


def _table(
    name: str, numbers: Mapping[str, Iterable[int]], rows: Sequence[Mapping[str, str]], parameters: Parameters
) -> str:
    """Return the SQL for a table of the rows, which have a `number` from 0, and further columns of numbers."""
    of_type = {"number": "int", **dict.fromkeys(numbers, "int"), **dict.fromkeys(rows[0], "text")}
    values = {"number": range(len(rows)), **numbers, **{column: [row[column] for row in rows] for column in rows[0]}}
    arrays = [f"{parameters.add(list(values[column]))}::{kind}[]" for column, kind in of_type.items()]
    return f"unnest({', '.join(arrays)}) AS {name}({', '.join(of_type)})"
