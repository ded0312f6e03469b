"""The statements that read usage, and their arguments."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final, TypeAlias

from app.db.postgres.queries import namespace_arguments
from app.domain.usage.holds import JOBS
from app.domain.usage.pages import Cursor, Section, day_index, first_day, prefix_length
from app.domain.usage.query import LABEL, Dimension, Stretch, UsageQuery, stretches
from app.domain.vocabulary import Use

Statement: TypeAlias = tuple[str, list[Any]]

_COLUMNS: Final = {
    Dimension.NAMESPACE: "g.namespace",
    Dimension.USER: "g.user_name",
    Dimension.QUEUE: "NULLIF(g.queue, '')",
    Dimension.KIND: "g.kind",
}
_TOTALS: Final = ", ".join(f"sum(d.{use})::numeric AS {use}" for use in Use)
_NOT_NOTHING: Final = " OR ".join(f"sum(d.{use}) <> 0" for use in Use)


class _Builder:
    """Builds a statement of a query. `keys` are the columns of the dimensions except the day, as `Cursor` has them."""

    def __init__(self, query: UsageQuery) -> None:
        self.query = query
        self.arguments: list[Any] = []
        self.keys = [f"key_{number}" for number, name in enumerate(query.by) if name != Dimension.DAY]
        # A query of some resources still returns how long jobs have waited.
        self._resources = self.parameter([*query.resources, JOBS], "text[]") if query.resources else None

    def parameter(self, value: object, kind: str) -> str:
        self.arguments.append(value)
        return f"${len(self.arguments)}::{kind}"

    def resource_filter(self, table: str) -> str:
        return f" AND {table}.resource = ANY({self._resources})" if self._resources is not None else ""

    def cursor_condition(self, columns: Sequence[str], operator: str, cursor: Sequence[str]) -> str:
        """Return the condition that these columns lie before or behind a cursor, which has as many texts."""
        if not columns:
            return "true"
        values = [
            self.parameter(date.fromisoformat(text), "date") if column in _DATES else self.parameter(text, "text")
            for column, text in zip(columns, cursor, strict=True)
        ]
        return f"({', '.join(columns)}) {operator} ({', '.join(values)})"

    def groups_cte(self, behind: Cursor, until: Cursor | None = None) -> str:
        """Return a CTE of the groups that a section can have, with their keys, and whether one is a whole namespace."""
        length = prefix_length(self.query)
        columns = self.keys[:length]
        bounds = [self.cursor_condition(columns, ">=" if length < len(self.query.by) else ">", behind[:length])]
        if until is not None:
            bounds.append(self.cursor_condition(columns, "<=", until[:length]))
        return f"""chosen AS MATERIALIZED (
    SELECT * FROM (SELECT {", ".join(["g.id", "g.kind = '' AS whole", *self._expressions()])}
    FROM usage_groups AS g WHERE {self._group_condition()}) AS g WHERE {" AND ".join(bounds)}
)"""  # noqa: S608  fragments and parameters

    def _expressions(self) -> list[str]:
        return [
            f"""COALESCE('0' || {self._value(name)}, '1') COLLATE "C" AS key_{number}"""
            for number, name in enumerate(self.query.by)
            if name != Dimension.DAY
        ]

    def _value(self, name: str) -> str:
        if name.startswith(LABEL):
            return f"(g.labels ->> {self.parameter(name.removeprefix(LABEL), 'text')})"
        return _COLUMNS[Dimension(name)]

    def _group_condition(self) -> str:
        # Callers may see a namespace, and not the former one of its name, as in lists.
        query = self.query
        only, never = namespace_arguments(query.namespaces)
        conditions = [
            f"g.namespace <> ALL({self.parameter(never, 'text[]')})",
            "NOT starts_with(g.namespace, 'kube-')",
        ]
        given = {"namespace": only, "user_name": query.users or None, "queue": query.queues or None}
        for column, values in {**given, "kind": query.kinds or None}.items():
            if values is not None:
                conditions.append(f"g.{column} = ANY({self.parameter(list(values), 'text[]')})")
        return " AND ".join(conditions)


_DATES: Final = frozenset({"d.day", "month"})


def blocks_statement(query: UsageQuery, behind: Cursor, limit: int, today: date) -> Statement:
    """Return the statement that finds the blocks that have groups behind a cursor."""
    build = _Builder(query)
    first, last = build.parameter(query.first, "date"), build.parameter(query.last, "date")
    chosen = build.groups_cte(behind)
    index, length = day_index(query), prefix_length(query)
    prefix, rest = build.keys[:length], build.keys[length:]
    if index is None:
        month, months, condition = "NULL::date", "NULL::date", "true"
    else:
        end = build.parameter(min(query.last, today), "date")
        month, months = "month", f"{_months_since(f'GREATEST(r.day, {first})', end)}"
        begin = first_day(behind, query).replace(day=1).isoformat()
        condition = build.cursor_condition([*prefix, "month"], ">=", [*behind[:length], begin])
    groups = f"count(DISTINCT ({', '.join(rest)}))" if rest else "1"
    columns = ", ".join([*prefix, *(["month"] if index is not None else [])])
    return (
        f"""
WITH {chosen}, spans AS (
    SELECT m.group_id, {month} AS month, count(*) AS sums FROM usage_months AS m
    WHERE m.month BETWEEN date_trunc('month', {first}::timestamp)::date AND {last}{build.resource_filter("m")}
      AND m.group_id = ANY(ARRAY(SELECT id FROM chosen WHERE whole = {_is_whole(query)})) GROUP BY 1, 2
    UNION ALL
    SELECT r.group_id, {months}, count(*) FROM usage_rates AS r
    WHERE r.day <= {last}{build.resource_filter("r")} AND r.group_id = ANY(ARRAY(SELECT id FROM chosen)) GROUP BY 1, 2
)
SELECT {", ".join([*prefix, f"{month} AS month"])}, sum(sums)::bigint AS sums, {groups} AS groups
FROM spans JOIN chosen ON id = group_id WHERE {condition}
GROUP BY {columns} ORDER BY {columns} LIMIT {build.parameter(limit, "bigint")}
""",  # noqa: S608  fragments and parameters
        build.arguments,
    )


def _months_since(begin: str, end: str) -> str:
    return f"generate_series(date_trunc('month', {begin}::timestamp), {end}::timestamp, interval '1 month')::date"


def ended_statement(query: UsageQuery, section: Section, limit: int | None = None) -> Statement:
    """Return the statement that reads what has ended of a section, by key, day and resource: with a limit, in order.

    Only a section of one day may have a limit.
    """
    build = _Builder(query)
    chosen = build.groups_cte(section.behind, section.until)
    index = day_index(query)
    if index is None:
        source, condition = _sums_of_groups(build), "true"
    else:
        columns = [*build.keys[:index], "d.day", *build.keys[index:]]
        first, last = build.parameter(section.first, "date"), build.parameter(section.last, "date")
        conditions = [
            f"d.day BETWEEN {first} AND {last}{build.resource_filter('d')}",
            f"d.group_id = ANY(ARRAY(SELECT id FROM chosen WHERE whole = {_is_whole(query)}))",  # noqa: S608
            build.cursor_condition(columns, ">", section.behind),
            build.cursor_condition(columns, "<=", section.until),
        ]
        source, condition = "usage_days", " AND ".join(conditions)
    keys = "".join(f"{key}, " for key in build.keys)
    first_ones = "" if limit is None else f"ORDER BY {keys}d.day LIMIT {build.parameter(limit, 'bigint')}"
    return (
        f"""
WITH {chosen}
SELECT {keys}d.day, d.resource, {_TOTALS} FROM {source} AS d JOIN chosen AS g ON g.id = d.group_id
WHERE {condition} GROUP BY {keys}d.day, d.resource HAVING {_NOT_NOTHING} {first_ones}
""",  # noqa: S608  fragments and parameters
        build.arguments,
    )


def _sums_of_groups(build: _Builder) -> str:
    """Return a subquery with one sum for each group and resource, from whole months as far as possible.

    The sums of each group come first: then few rows are joined with the texts of their groups.
    """
    months, days = stretches(build.query.first, build.query.last)
    parts = [_part(build, "usage_days", "day", each) for each in days]
    if months is not None:
        parts.append(_part(build, "usage_months", "month", months))
    return f"""(
    SELECT group_id, NULL::date AS day, resource, {_TOTALS} FROM ({" UNION ALL ".join(parts)}) AS d
    GROUP BY group_id, resource
)"""  # noqa: S608  fragments


def _part(build: _Builder, table: str, period: str, stretch: Stretch) -> str:
    sign = "-" if stretch.is_subtracted else ""
    first, last = build.parameter(stretch.first, "date"), build.parameter(stretch.last, "date")
    return f"""
    SELECT group_id, resource, {", ".join(f"{sign}{use} AS {use}" for use in Use)} FROM {table} AS p
    WHERE {period} BETWEEN {first} AND {last}{build.resource_filter("p")}
      AND group_id = ANY(ARRAY(SELECT id FROM chosen WHERE whole = {_is_whole(build.query)}))"""  # noqa: S608  fragments


def _is_whole(query: UsageQuery) -> bool:
    """Return whether the sums of whole namespaces suffice."""
    return {*query.by} <= {Dimension.NAMESPACE, Dimension.DAY} and not (query.users or query.queues or query.kinds)


def rates_statement(query: UsageQuery, section: Section) -> Statement:
    """Return the statement that reads the rates of the groups of a section, by key, day, resource and use."""
    build = _Builder(query)
    chosen = build.groups_cte(section.behind, section.until)
    keys = "".join(f"{key}, " for key in build.keys)
    # No rate that began after the last day. Those that began before the first one go on.
    return (
        f"""
WITH {chosen}
SELECT {keys}r.day, r.resource, r.use, sum(r.amount) AS amount, sum(r.behind) AS behind
FROM usage_rates AS r JOIN chosen AS g ON g.id = r.group_id
WHERE r.day <= {build.parameter(section.last, "date")}{build.resource_filter("r")}
  AND r.group_id = ANY(ARRAY(SELECT id FROM chosen)) GROUP BY {keys}r.day, r.resource, r.use
""",  # noqa: S608  fragments and parameters
        build.arguments,
    )
