"""Pages of lists: every filter shows what matches it, and no page examines more than a bounded number of rows."""

from dataclasses import replace
from datetime import timedelta
from itertools import combinations, product
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.db.jobs.rows import STORED_JOBS
from app.db.lists import pages
from app.db.lists.access_path import ENDED, NOT_ENDED
from app.db.objects.resources import Stored
from app.db.postgres.engine import Database
from app.db.postgres.queries import Cursor
from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import Criteria
from app.domain.vocabulary import TERMINAL_PHASES, JobPhase
from tests.db.factories import NOW
from tests.db.lists.rows import FILL_JOBS, FILTERS, TEAMS, Explained, filled, stored_items
from tests.db.samples.factories import JOBS as SAMPLE_JOBS
from tests.db.samples.factories import SETS
from tests.support.lists import examine_few

# Few rows are enough if the bound is low.
EXAMINED = 100
ROWS = 4000


@pytest.fixture(autouse=True)
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    examine_few(monkeypatch, EXAMINED, first=EXAMINED // 5)


async def examined(db: Database, stored: Stored[Any], where: Criteria, after: Cursor | None) -> tuple[int, str]:
    async with db.snapshot(by_index=True) as connection:
        explained = Explained(connection)
        await pages._Reading(explained, stored, where, after, 10, stored.columns).page()
    return explained.examined, "\n".join(explained.plans)


@pytest.mark.parametrize("statistics", ["right", "wrong"])
async def test_no_page_examines_more_rows_than_the_bound(db: Database, database_url: str, statistics: str) -> None:
    """For each filter and each pair, with statistics of the present rows, and with those of a few other ones."""
    pairs = [(one, one) for one in FILTERS] + list(combinations(FILTERS, 2))
    middle = Cursor(NOW + timedelta(seconds=ROWS // 4), UUID(int=0))
    if statistics == "wrong":
        async with filled(database_url, 4) as connection:
            await connection.execute("TRUNCATE jobs, samples")
    async with filled(database_url, ROWS, analyze=statistics == "right"):
        for (one, other), after in product(pairs, (None, middle)):
            where = Criteria(**FILTERS[one] | FILTERS[other])
            count, plan = await examined(db, STORED_JOBS, where, after)
            # Up to two other indexes are tried, each for a count and for the rows, and one along the order of lists.
            assert count <= 8 * EXAMINED, (one, other, after, plan)


async def pages_of(db: Database, where: Criteria, limit: int) -> list[pages.Page[Any]]:
    found = [await pages.page(db, STORED_JOBS, where, limit=limit)]
    while found[-1].next is not None:
        found.append(await pages.page(db, STORED_JOBS, where, after=found[-1].next, limit=limit))
    return found


@pytest.mark.parametrize(
    "where",
    [
        Criteria(),
        Criteria(namespaces=TEAMS, kinds=["GenericJob", "MxJob"]),
        Criteria(phases=["Succeeded", "Failed"]),
        # Fewer jobs than EXAMINED have not ended.
        Criteria(phases=["Running", "Pending"]),
        Criteria(kinds=["GenericJob"], phases=["Running"], namespaces=TEAMS),
        Criteria(labels=parse_selector("team=vision")),
        Criteria(labels=parse_selector("rare=yes")),
        Criteria(prefix="rare-"),
        Criteria(finished_before=NOW + timedelta(seconds=10)),
    ],
)
async def test_pages_are_full_as_documented(db: Database, database_url: str, where: Criteria) -> None:
    async with filled(database_url, ROWS):
        *full, last = await pages_of(db, where, 50)
        assert {len(page.rows) for page in full} <= {50}
        assert last.rows


@pytest.mark.parametrize("kinds", [[], ["GenericJob"], ["GenericJob", "MxJob"]])
async def test_a_page_examines_as_many_rows_however_many_ranges_they_are_in(
    db: Database, database_url: str, kinds: list[str]
) -> None:
    async with filled(database_url, ROWS):
        listed = Criteria(kinds=kinds, namespaces=TEAMS)
        rows = sum(len(page.rows) for page in await pages_of(db, listed, 500))
        empty = await pages_of(db, replace(listed, search="nothing"), 50)
        assert len(empty) == rows // EXAMINED + 1


async def test_a_label_that_many_jobs_have_is_not_looked_up(db: Database, database_url: str) -> None:
    """The GIN index would find all of them before the first could be read, whatever the number of ranges."""
    async with filled(database_url, ROWS):
        where = Criteria(kinds=["MxJob", "GenericJob"], labels=parse_selector("team=vision"), search="nothing")
        _, plan = await examined(db, STORED_JOBS, where, None)
        assert "jobs_by_label" not in plan
        _, plan = await examined(db, STORED_JOBS, replace(where, labels=parse_selector("rare=yes")), None)
        assert "jobs_by_label" in plan


async def test_a_label_that_many_jobs_have_is_not_looked_up_though_new_ones_lack_it(
    db: Database, database_url: str
) -> None:
    async with filled(database_url, ROWS) as connection:
        new = NOW + timedelta(seconds=ROWS // 2 - EXAMINED)
        await connection.execute("UPDATE jobs SET labels = labels - 'team' WHERE created_at > $1", new)
        _, plan = await examined(db, STORED_JOBS, Criteria(labels=parse_selector("team=vision")), None)
        assert "jobs_by_label" not in plan
        await connection.execute("UPDATE jobs SET labels = labels - 'team' WHERE labels ->> 'rare' IS NULL")
        _, plan = await examined(db, STORED_JOBS, Criteria(labels=parse_selector("team=vision")), None)
        assert "jobs_by_label" in plan


async def test_labels_are_found_in_order_at_once(database_url: str) -> None:
    """A list of new entries without order would be read by every query."""
    async with filled(database_url, ROWS) as connection:
        for index in ("jobs_by_label", "jobs_by_label_key"):
            assert await connection.fetchval("SELECT gin_clean_pending_list($1::text::regclass)", index) == 0


@pytest.mark.parametrize("labels", ["null", "[1]", '"a"', '{"a": {"b": 1}}'])
async def test_the_indexes_on_labels_refuse_no_job(database_url: str, labels: str) -> None:
    async with filled(database_url, 1) as connection:
        assert await connection.execute("UPDATE jobs SET labels = $1::text::jsonb", labels) == "UPDATE 1"


async def test_pages_of_all_sizes_share_their_statements(db: Database, database_url: str) -> None:
    async with filled(database_url, ROWS):
        for where in (Criteria(), Criteria(search="a"), Criteria(labels=parse_selector("rare"))):
            of_sizes = []
            for limit in (10, 11):
                async with db.snapshot(by_index=True) as connection:
                    explained = Explained(connection)
                    await pages._Reading(explained, STORED_JOBS, where, None, limit, STORED_JOBS.columns).page()
                of_sizes.append(explained.statements)
            assert of_sizes[0] == of_sizes[1]


async def test_a_selector_with_many_values_is_one_search(db: Database, database_url: str) -> None:
    values = ",".join(f"v{number}" for number in range(600))
    async with filled(database_url, ROWS):
        where = Criteria(labels=parse_selector(f"rare in ({values},yes)"))
        _, plan = await examined(db, STORED_JOBS, where, None)
        assert plan.count("BitmapOr") == 0
        assert '"jobs_by_label_key"' in plan
        assert len((await pages.page(db, STORED_JOBS, where, limit=50)).rows) > 1


async def test_the_bound_is_below_what_a_scan_reads(db: Database, database_url: str) -> None:
    """The test before would find a list without an index."""
    async with filled(database_url, ROWS), db.begin() as connection:
        explained = Explained(connection)
        await explained.fetch("SELECT * FROM jobs WHERE strpos(name, 'nothing') > 0")
    assert explained.examined == ROWS > 8 * EXAMINED


@pytest.mark.parametrize(
    ("stored", "where"),
    [
        (SAMPLE_JOBS, Criteria(set_name="s7")),
        (SAMPLE_JOBS, Criteria(set_name="s7", namespaces=NamespaceSet.of("team-1"))),
        (SAMPLE_JOBS, Criteria(prefix="job-c4ca")),
        (SETS, Criteria(name="job-c4ca4238a0b923820dcc509a6f75849b")),
        (SAMPLE_JOBS, Criteria(finished_before=NOW + timedelta(seconds=3))),
        (SETS, Criteria(namespaces=NamespaceSet.of("team-1"))),
    ],
)
async def test_a_filter_of_samples_has_an_index(
    db: Database, database_url: str, stored: Stored[Any], where: Criteria
) -> None:
    async with filled(database_url, ROWS):
        count, plan = await examined(db, stored, where, None)
        assert count <= 2 * EXAMINED, plan


async def everything(db: Database, stored: Stored[Any], where: Criteria, limit: int) -> list[UUID]:
    """Follow the pages to the end of the list."""
    found: list[UUID] = []
    after = None
    while True:
        page = await pages.page(db, stored, where, after=after, limit=limit)
        assert len(page.rows) <= limit
        found += [row.uid for row in page.rows]
        if page.next is None:
            return found
        assert after is None or page.next < after, "every page makes progress"
        after = page.next


async def test_pages_together_show_what_the_filter_matches(db: Database, database_url: str) -> None:
    """Each filter alone, and random groups of two to four, in the order of lists, without gaps and repetitions."""
    random = Random(5)
    groups = [[name] for name in FILTERS] + [random.sample(sorted(FILTERS), random.randint(2, 4)) for _ in range(150)]
    async with filled(database_url, 1200) as connection:
        items = await stored_items(connection)
        for group in groups:
            where = Criteria(**{name: value for one in group for name, value in FILTERS[one].items()})
            expected = [item.uid for item in items if where.matches(item)]
            assert await everything(db, STORED_JOBS, where, random.choice([7, 60, 500])) == expected, group
    every = replace(Criteria(), set_name="s7")
    assert len(await everything(db, SAMPLE_JOBS, every, 2)) == len(await everything(db, SAMPLE_JOBS, every, 500)) > 2


async def test_the_column_ended_has_every_terminal_phase(database_url: str) -> None:
    connection = await asyncpg.connect(database_url, timeout=60)
    await connection.execute(FILL_JOBS, NOW, 4)
    for phase in JobPhase:
        await connection.execute("UPDATE jobs SET phase = $1", phase)
        (ended,) = {row["ended"] for row in await connection.fetch("SELECT ended FROM jobs")}
        assert ended == (phase if phase in TERMINAL_PHASES else NOT_ENDED)
        assert ended in ENDED
    await connection.close()
