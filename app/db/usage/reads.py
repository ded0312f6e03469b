"""Reads usage: the sums of what has ended, and what goes on, in one snapshot."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from app.base.offload import offload
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import namespace_arguments
from app.domain.usage.holds import JOBS
from app.domain.usage.query import (
    LABEL,
    Dimension,
    Stretch,
    UsageQuery,
    UsageRow,
    collect,
    day_number,
    stretches,
)
from app.domain.usage.sums import Cell, Rate, sum_rates
from app.domain.vocabulary import Use

MOST_SUMS: Final = 20_000
"""The sums that one read returns, of all groups and resources."""

_COLUMNS: Final = {
    Dimension.NAMESPACE: "g.namespace",
    Dimension.USER: "g.user_name",
    Dimension.QUEUE: "NULLIF(g.queue, '')",
    Dimension.KIND: "g.kind",
}
_HELD: Final = """
SELECT g.namespace, r.resource, r.use, sum(r.amount) FROM usage_rates AS r JOIN usage_groups AS g ON g.id = r.group_id
GROUP BY 1, 2, 3 HAVING sum(r.amount) <> 0
"""
_KEYS_FROM: Final = 9  # the first parameter that is the key of a label
# Callers may see a namespace, and not the former one of its name, as in lists.
_SELECTED: Final = """($1::text[] IS NULL OR g.namespace = ANY($1)) AND g.namespace <> ALL($2::text[])
    AND NOT starts_with(g.namespace, 'kube-')
    AND (cardinality($3::text[]) = 0 OR g.user_name = ANY($3)) AND (cardinality($4::text[]) = 0 OR g.queue = ANY($4))
    AND (cardinality($5::text[]) = 0 OR g.kind = ANY($5))"""
_WANTED: Final = "(cardinality($8::text[]) = 0 OR {at}.resource = ANY($8))"
_IN_RANGE: Final = f"d.day BETWEEN $6 AND $7 AND {_WANTED.format(at='d')}"
_TYPED: Final = "$6::date <= $7::date AND cardinality($8::text[]) >= 0"  # where no column gives them a type
_TOTALS: Final = ", ".join(f"sum(d.{use})::numeric AS {use}" for use in Use)
_NOT_NOTHING: Final = " OR ".join(f"sum(d.{use}) <> 0" for use in Use)


async def read(db: Database, query: UsageQuery, now: int) -> list[UsageRow] | None:
    """Return the usage that a query wants, as it is at a time; None if it has too many groups."""
    async with db.snapshot() as connection:
        ended = await _read_ended(connection, query)
        going = await _read_rates(connection, query)
    if ended is None or sum(map(len, going.values())) > MOST_SUMS:
        return None
    days, by_day = (day_number(query.first), day_number(query.last)), Dimension.DAY in query.by
    grown: list[tuple[tuple[str | None, ...], Cell, int]] = []
    for key, rates in going.items():
        grown += [(key, cell, total) for cell, total in sum_rates(rates, *days, now, by_day=by_day).items()]
        # A rate has a sum for each day.
        if len(grown) > MOST_SUMS:
            return None
    # With 20 000 sums it takes some 300 ms.
    return await offload(collect, query.by, ended + grown)


async def _read_ended(
    connection: Connection, query: UsageQuery
) -> list[tuple[tuple[str | None, ...], Cell, int]] | None:
    keys, arguments = _keys_of(query)
    groups = ", ".join(map(str, range(1, len(keys) + 3)))
    source, condition = ("usage_days", _IN_RANGE) if Dimension.DAY in query.by else (_sums_of_groups(query), _TYPED)
    statement = f"""
WITH chosen AS MATERIALIZED (
    SELECT * FROM usage_groups AS g WHERE {_SELECTED} AND (g.kind = '') = {_is_whole(query)}
)
SELECT {"".join(f"{key}, " for key in keys)} d.day, d.resource, {_TOTALS}
FROM {source} AS d JOIN chosen AS g ON g.id = d.group_id WHERE {condition}
GROUP BY {groups} HAVING {_NOT_NOTHING} LIMIT {MOST_SUMS + 1}
"""  # noqa: S608  fragments and parameters
    rows = await connection.fetch(statement, *arguments)
    if len(rows) > MOST_SUMS:
        return None
    first = day_number(query.first)
    return [
        (
            tuple(row)[: len(keys)],
            Cell(first if row["day"] is None else day_number(row["day"]), row["resource"], use),
            int(row[use]),
        )
        for row in rows
        for use in Use
        if row[use]
    ]


def _sums_of_groups(query: UsageQuery) -> str:
    """Return a subquery with one sum for each group and resource, from whole months as far as possible.

    The sums of each group come first: then few rows are joined with the texts of their groups.
    """
    months, days = stretches(query.first, query.last)
    parts = [_part("usage_days", "day", each) for each in days]
    if months is not None:
        parts.append(_part("usage_months", "month", months))
    return f"""(
    SELECT group_id, NULL::date AS day, resource, {_TOTALS} FROM ({" UNION ALL ".join(parts)}) AS d
    GROUP BY group_id, resource
)"""  # noqa: S608  fragments


def _part(table: str, period: str, stretch: Stretch) -> str:
    sign = "-" if stretch.taken_back else ""
    return f"""
    SELECT group_id, resource, {", ".join(f"{sign}{use} AS {use}" for use in Use)} FROM {table} AS p
    WHERE {period} BETWEEN '{stretch.first}' AND '{stretch.last}' AND {_WANTED.format(at="p")}
      AND group_id = ANY(ARRAY(SELECT id FROM chosen))"""  # noqa: S608  fragments and dates


def _is_whole(query: UsageQuery) -> bool:
    """Return whether the sums of whole namespaces suffice."""
    return {*query.by} <= {Dimension.NAMESPACE, Dimension.DAY} and not (query.users or query.queues or query.kinds)


async def _read_rates(
    connection: Connection, query: UsageQuery
) -> dict[tuple[str | None, ...], list[tuple[Cell, Rate]]]:
    keys, arguments = _keys_of(query)
    groups = ", ".join(map(str, range(1, len(keys) + 4)))
    # No rate that began after the last day. Those that began before the first one go on.
    statement = f"""
SELECT {"".join(f"{key}, " for key in keys)} r.day, r.resource, r.use, sum(r.amount) AS amount, sum(r.behind) AS behind
FROM usage_rates AS r JOIN usage_groups AS g ON g.id = r.group_id
WHERE {_SELECTED} AND r.day <= $7 AND $6::date IS NOT NULL AND {_WANTED.format(at="r")}
GROUP BY {groups} LIMIT {MOST_SUMS + 1}
"""  # noqa: S608  fragments and parameters
    found: dict[tuple[str | None, ...], list[tuple[Cell, Rate]]] = {}
    for row in await connection.fetch(statement, *arguments):
        found.setdefault(tuple(row)[: len(keys)], []).append((_cell(row), _rate(row)))
    return found


async def read_held(db: Database) -> dict[tuple[str, str, str], int]:
    """Return how much grows now of each namespace, resource and use: what pods hold, and how many jobs wait."""
    async with db.read() as connection:
        rows = await connection.fetch(_HELD)
    return {(namespace, resource, use): int(amount) for namespace, resource, use, amount in rows}


async def rates_of(db: Database, uid: UUID) -> list[tuple[Cell, Rate]]:
    """Return the rates of one job."""
    async with db.read() as connection:
        rows = await connection.fetch("SELECT * FROM usage_rates WHERE job_uid = $1", uid)
    return [(_cell(row), _rate(row)) for row in rows]


def _cell(row: Mapping[str, Any]) -> Cell:
    return Cell(day_number(row["day"]), row["resource"], Use(row["use"]))


def _rate(row: Mapping[str, Any]) -> Rate:
    return Rate(int(row["amount"]), int(row["behind"]))


def _keys_of(query: UsageQuery) -> tuple[list[str], tuple[Any, ...]]:
    """Return the expressions of the dimensions except the day, and the parameters of both statements."""
    keys: list[str] = []
    labels: list[str] = []
    for name in query.by:
        if name.startswith(LABEL):
            keys.append(f"g.labels ->> ${_KEYS_FROM + len(labels)}")
            labels.append(name.removeprefix(LABEL))
        elif name != Dimension.DAY:
            keys.append(_COLUMNS[Dimension(name)])
    # A query of some resources still returns how long jobs have waited.
    resources = [*query.resources, JOBS] if query.resources else []
    filters = (list(query.users), list(query.queues), list(query.kinds))
    return keys, (*namespace_arguments(query.namespaces), *filters, query.first, query.last, resources, *labels)
