"""A tenant with very many queues and labels costs neither its own decisions nor the reads of others more."""

import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import pytest_asyncio

from app.db.postgres.engine import Database
from app.db.usage import reads as usage_reads
from app.db.usage import writes as usage_writes
from app.db.usage.statements import blocks_statement, ended_statement, rates_statement
from app.domain.access.namespaces import NamespaceSet
from app.domain.usage.groups import OTHER, UsageGroup
from app.domain.usage.pages import Block, before_all, cursor_of, section_of
from app.domain.usage.query import UsageQuery
from tests.db.usage.test_usage import ALICE, ALL, NOON, add, flat

FILL_GROUPS = """
INSERT INTO usage_groups (namespace, user_id, user_name, queue, kind, labels)
SELECT 'a', 'oidc:1', 'alice', 'q', 'GenericJob', jsonb_build_object('team', 'made-up-' || n)
FROM generate_series(1, $1::bigint) AS n
"""
FILL_DAYS = """
INSERT INTO usage_days (group_id, day, resource, useful)
SELECT id, '2030-01-01'::date + n, 'cpu', 1000 FROM usage_groups, generate_series(0, 1) AS n
"""
FILL_RATES = """
INSERT INTO usage_rates (job_uid, day, resource, use, group_id, amount, behind)
SELECT gen_random_uuid(), '2030-01-01', resource, 'useful', id, 1000, 0
FROM usage_groups, unnest(ARRAY['cpu', 'pods']) AS resource
"""
BY_LABEL = replace(ALL, by=("label:team", "day"))


@pytest_asyncio.fixture
async def hostile(db: Database) -> Database:
    """A database in which the namespace `a` has as many groups as it may, and a live job in each."""
    await fill(db)
    await add(db, replace(ALICE, namespace="b"))
    async with db.begin() as connection:
        for table in ("usage_groups", "usage_days", "usage_months", "usage_rates"):
            await connection.execute(f"ANALYZE {table}")
    return db


async def fill(db: Database) -> None:
    async with db.begin() as connection:
        await connection.execute(FILL_GROUPS, usage_writes.MOST_GROUPS)
        await connection.execute(FILL_DAYS)
        await connection.execute(FILL_RATES)


async def plan_of(db: Database, sql: str, *arguments: Any) -> tuple[str, int]:
    """Return the plan of a statement, and the most rows that one of its nodes has found or discarded."""
    async with db.snapshot(by_hash=True) as connection:
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", *arguments)
    plan = "\n".join(row[0] for row in rows)
    return plan, max(int(found) for found in re.findall(r"(?:actual rows=|Removed by [\w ]+: )(\d+)", plan))


async def test_the_group_of_an_attempt_is_found_by_an_index(hostile: Database) -> None:
    group = UsageGroup(
        namespace="a",
        user_id="oidc:1",
        user_name="alice",
        kind="GenericJob",
        queue="q",
        labels=(("team", "made-up-7"),),
    )
    plan, most = await plan_of(hostile, usage_writes._FIND, *usage_writes._row(group))
    assert "usage_groups_alike" in plan
    assert most == 1, plan
    plan, most = await plan_of(hostile, usage_writes._COUNT, "b", usage_writes.MOST_GROUPS)
    assert "usage_groups_alike" in plan
    assert most == 1, plan
    plan, most = await plan_of(hostile, usage_writes._COUNT, "a", 10)
    assert most == 10, plan


async def test_another_team_reads_nothing_of_it(hostile: Database) -> None:
    query = replace(BY_LABEL, namespaces=NamespaceSet.of("b"))
    block = Block(("0vision",), date(2030, 1, 1), 1, 1)
    section = section_of([block], before_all(query), query, 1)
    for statement, arguments in [
        blocks_statement(query, before_all(query), 100, date(2030, 1, 2)),
        ended_statement(query, section),
        ended_statement(replace(query, by=("user",)), section_of([block._replace(month=None)], ("",), query, 1)),
        rates_statement(query, section),
        rates_statement(replace(query, by=("user",)), section_of([block._replace(month=None)], ("",), query, 1)),
    ]:
        plan, most = await plan_of(hostile, statement, *arguments)
        assert most <= 10, plan


async def test_it_adds_no_further_groups_and_its_pages_are_short(hostile: Database) -> None:
    for number in range(40):
        await add(hostile, replace(ALICE, labels=(("team", f"further-{number}"),)))
    async with hostile.read() as connection:
        count = await connection.fetchval("SELECT count(*) FROM usage_groups WHERE namespace = 'a' AND kind <> ''")
    assert count == usage_writes.MOST_GROUPS + 1
    query = replace(ALL, by=("label:team",), namespaces=NamespaceSet.of("a"))
    part = await usage_reads.read_page(hostile, query, before_all(query), 3, NOON)
    assert [row.key[0] for row in part.rows] == [OTHER, "made-up-1", "made-up-10"]
    found = flat(part.rows)
    assert found[OTHER, "cpu", "useful"] == 40 * (7 + 1000 * 43_200_000)
    assert part.end is not None


async def test_a_caller_of_all_namespaces_reads_it_in_parts(hostile: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query: UsageQuery = replace(ALL, by=("day", "label:team"))
    part = await usage_reads.read_page(hostile, query, before_all(query), 100, NOON)
    assert len(part.rows) == 100
    assert {row.key[0] for row in part.rows} == {"2030-01-01"}
    monkeypatch.setattr(usage_reads, "MOST_SUMS", 50)
    short = await usage_reads.read_page(hostile, query, before_all(query), 100, NOON)
    assert (short.rows, short.end) == (part.rows[:50], cursor_of(part.rows[49].key, query)), "a day has too many sums"


async def test_no_rows_are_compared_with_all_others_where_statistics_are_old(db: Database) -> None:
    await fill(db)
    query = replace(BY_LABEL, namespaces=NamespaceSet.of("a"))
    section = section_of([Block(("0made-up-99",), date(2030, 1, 1), 1, 1)], before_all(query), query, 100)
    for statement, arguments in [
        blocks_statement(query, before_all(query), 100, date(2030, 1, 2)),
        ended_statement(query, section),
        rates_statement(query, section),
    ]:
        plan, most = await plan_of(db, statement, *arguments)
        assert most <= 4 * usage_writes.MOST_GROUPS, plan
