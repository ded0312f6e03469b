"""Reads usage: the sums of what has ended, and what goes on, in one snapshot.

A page is read in sections of the groups, from the cursor of the page before it (`app/domain/usage/pages.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final
from uuid import UUID

from app.base.offload import offload
from app.db.postgres.engine import Connection, Database
from app.db.usage.statements import blocks_statement, ended_statement, rates_statement
from app.domain.usage.pages import (
    LONGEST_MONTH,
    Block,
    Cursor,
    Key,
    Section,
    behind_all,
    choose,
    cursor_of,
    prefix_length,
    section_of,
    value_of,
)
from app.domain.usage.query import Dimension, UsageQuery, UsageRow, collect, date_of, day_number
from app.domain.usage.sums import DAY, Cell, Rate, sum_rates
from app.domain.vocabulary import Use

MOST_SUMS: Final = 12_000
"""Sums that a page examines, and so the most that it returns, unless one group has more."""
_LABEL_KEYS: Final = "SELECT DISTINCT jsonb_object_keys(labels) FROM usage_groups"
_HELD: Final = """
SELECT g.namespace, r.resource, r.use, sum(r.amount) FROM usage_rates AS r JOIN usage_groups AS g ON g.id = r.group_id
GROUP BY 1, 2, 3 HAVING sum(r.amount) <> 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePart:
    """Groups that follow each other; `end` is the cursor after them; None after the last group."""

    rows: list[UsageRow]
    end: Cursor | None


async def read_page(db: Database, query: UsageQuery, behind: Cursor, size: int, now: int) -> UsagePart:
    """Return so many groups behind a cursor, or less if much must be examined for them."""
    async with db.snapshot(by_hash=True) as connection:
        return await _read_part(connection, query, behind, size, now)


async def _read_part(connection: Connection, query: UsageQuery, behind: Cursor, size: int, now: int) -> UsagePart:
    limit, room, today = size + 1, MOST_SUMS, date_of(now // DAY)
    rows: list[UsageRow] = []
    left = await _read_blocks(connection, query, behind, limit, today)
    further = len(left) == limit
    while left and len(rows) <= size and (left[0].sums <= room or not rows):
        count = choose(left, limit - len(rows), room)
        section = section_of(left[:count], behind, query, MOST_SUMS)
        until, found = await _read_section(connection, query, section, now)
        rows += found
        if until != section.until:
            behind = until
            break
        room -= sum(block.sums for block in left[:count])
        # A block with very many sums is read in parts.
        done = count if section.until == behind_all(left[count - 1], query) else count - 1
        left, behind = left[done:], section.until
        if further and not left:
            left = await _read_blocks(connection, query, behind, limit, today)
            further = len(left) == limit
    if len(rows) > size:
        return UsagePart(rows=rows[:size], end=cursor_of(rows[size - 1].key, query))
    return UsagePart(rows=rows, end=behind if left else None)


async def _read_blocks(
    connection: Connection, query: UsageQuery, behind: Cursor, limit: int, today: date
) -> list[Block]:
    if not query.by:
        return [Block((), None, 0, 1)]
    statement, arguments = blocks_statement(query, behind, limit, today)
    length, days = prefix_length(query), LONGEST_MONTH if Dimension.DAY in query.by else 1
    return [
        Block(tuple(row)[:length], row["month"], row["sums"] * days, row["groups"] * days)
        for row in await connection.fetch(statement, *arguments)
    ]


async def _read_section(
    connection: Connection, query: UsageQuery, section: Section, now: int
) -> tuple[Cursor, list[UsageRow]]:
    """Return the groups of a section, and the cursor after them: of one day with very many sums, the first groups."""
    until, ended = await _read_ended(connection, query, section)
    section = replace(section, until=until)
    going = await _read_rates(connection, query, section)
    # With 20 000 sums it takes some 300 ms.
    return until, await offload(_rows_of, query, section, ended, going, now)


def _rows_of(
    query: UsageQuery,
    section: Section,
    ended: list[tuple[Key, Cell, int]],
    going: Mapping[Key, list[tuple[Cell, Rate]]],
    now: int,
) -> list[UsageRow]:
    days, by_day = (day_number(section.first), day_number(section.last)), Dimension.DAY in query.by
    grown = (
        (key, cell, total)
        for key, rates in going.items()
        for cell, total in sum_rates(rates, *days, now, by_day=by_day).items()
    )
    rows = collect(query.by, _both(ended, grown))
    # The rates of a group concern all days, also those that other sections have.
    return [row for row in rows if section.has(cursor_of(row.key, query))] if by_day else rows


def _both(
    ended: Iterable[tuple[Key, Cell, int]], grown: Iterable[tuple[Key, Cell, int]]
) -> Iterable[tuple[Key, Cell, int]]:
    yield from ended
    yield from grown


async def _read_ended(
    connection: Connection, query: UsageQuery, section: Section
) -> tuple[Cursor, list[tuple[Key, Cell, int]]]:
    until, rows = await _ended_rows(connection, query, section)
    first = day_number(query.first)
    return until, [
        (
            _key(row, query),
            Cell(first if row["day"] is None else day_number(row["day"]), row["resource"], use),
            int(row[use]),
        )
        for row in rows
        for use in Use
        if row[use]
    ]


async def _ended_rows(connection: Connection, query: UsageQuery, section: Section) -> tuple[Cursor, list[Any]]:
    if Dimension.DAY in query.by and section.first == section.last:
        statement, arguments = ended_statement(query, section, MOST_SUMS + 1)
        rows = await connection.fetch(statement, *arguments)
        if len(rows) <= MOST_SUMS:
            return section.until, rows
        # The last group may have more sums.
        behind = _row_cursor(rows[-1], query)
        whole = [row for row in rows if _row_cursor(row, query) != behind]
        if whole:
            return _row_cursor(whole[-1], query), whole
    statement, arguments = ended_statement(query, section)
    return section.until, await connection.fetch(statement, *arguments)


def _row_cursor(row: Any, query: UsageQuery) -> Cursor:
    index = query.by.index(Dimension.DAY)
    keys = tuple(row)[: len(query.by) - 1]
    return (*keys[:index], row["day"].isoformat(), *keys[index:])


async def _read_rates(
    connection: Connection, query: UsageQuery, section: Section
) -> dict[Key, list[tuple[Cell, Rate]]]:
    statement, arguments = rates_statement(query, section)
    found: dict[Key, list[tuple[Cell, Rate]]] = {}
    for row in await connection.fetch(statement, *arguments):
        found.setdefault(_key(row, query), []).append((_cell(row), _rate(row)))
    return found


def _key(row: Any, query: UsageQuery) -> Key:
    """Return the values of the dimensions except the day."""
    return tuple(map(value_of, tuple(row)[: len(query.by) - (Dimension.DAY in query.by)]))


async def read_label_keys(db: Database) -> set[str]:
    """Return the keys of all labels by which usage is stored. They are few, and none disappears."""
    async with db.read() as connection:
        return {key for (key,) in await connection.fetch(_LABEL_KEYS)}


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
