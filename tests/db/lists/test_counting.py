"""Counts of lists: each is right or a lower bound, and none examines more than a bounded number of rows."""

from collections import Counter
from itertools import combinations, product
from typing import Any

import pytest

from app.db.jobs.rows import STORED_JOBS
from app.db.lists import counting
from app.db.lists.counting import facets
from app.db.lists.facets import Count, CountedPart, Facets
from app.db.objects.resources import Stored
from app.db.postgres.engine import Database
from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import Criteria
from app.domain.vocabulary import JobPhase
from tests.db.lists.rows import FILTERS, TEAMS, Explained, filled, stored_items
from tests.db.samples.factories import JOBS as SAMPLE_JOBS
from tests.db.samples.factories import SETS
from tests.support.lists import examine_few

ROWS = 4000
EXAMINED = 100


def count_few(monkeypatch: pytest.MonkeyPatch) -> None:
    examine_few(monkeypatch, EXAMINED, first=EXAMINED // 5)
    monkeypatch.setattr(counting, "COUNTED", EXAMINED // 10)
    monkeypatch.setattr(counting, "EXAMINED_ENDED", EXAMINED // 4)


async def examined(db: Database, stored: Stored[Any], where: Criteria) -> tuple[int, str]:
    async with db.snapshot(by_index=True) as connection:
        explained = Explained(connection)
        await counting._Counting(explained, stored, where).facets()
    return explained.examined, "\n".join(explained.plans)


def without_facets(filters: dict[str, Any]) -> Criteria:
    return Criteria(**{name: value for name, value in filters.items() if name not in ("kinds", "phases")})


@pytest.mark.parametrize("statistics", ["right", "wrong"])
async def test_no_count_examines_more_rows_than_the_bound(
    db: Database, database_url: str, statistics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each filter and each pair, with statistics of the present rows, and with those of a few other ones."""
    count_few(monkeypatch)
    if statistics == "wrong":
        async with filled(database_url, 4) as connection:
            await connection.execute("TRUNCATE jobs, samples")
    async with filled(database_url, ROWS, analyze=statistics == "right"):
        for one, other in [(one, one) for one in FILTERS] + list(combinations(FILTERS, 2)):
            rows, plan = await examined(db, STORED_JOBS, without_facets(FILTERS[one] | FILTERS[other]))
            # Two kinds have a part for each of the four terminal phases, and one for the jobs that have not ended. An
            # index entry and its row count as one. Up to two other indexes are tried, each for a count and the rows.
            assert rows <= 2 * (4 * (EXAMINED // 4 + 1) + EXAMINED + 1) + 6 * EXAMINED, (one, other, plan)


async def test_counts_are_right_within_the_bounds(db: Database, database_url: str) -> None:
    async with filled(database_url, ROWS) as connection:
        items = await stored_items(connection)
        for one, other in [(one, one) for one in FILTERS] + list(combinations(FILTERS, 2)):
            where = without_facets(FILTERS[one] | FILTERS[other])
            expected = Counter((item.kind, item.phase) for item in items if where.matches(item))
            found = await facets(db, STORED_JOBS, where)
            for kind, phase in product(["DIJob", "GenericJob", "MxJob"], JobPhase):
                count = found.count(kinds=[kind], phases=[phase])
                # There are more than COUNTED of these.
                if phase == JobPhase.SUCCEEDED and not count.is_complete:
                    assert count.count <= expected[kind, phase], (one, other)
                else:
                    assert count == Count(count=expected[kind, phase], is_complete=True), (one, other, kind, phase)


async def test_a_count_beyond_its_bound_is_a_lower_bound(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_few(monkeypatch)
    async with filled(database_url, ROWS):
        every = await facets(db, STORED_JOBS, Criteria())
        assert every.count(kinds=["GenericJob"], phases=["Succeeded"]) == Count(count=10, is_complete=False)
        assert every.count(phases=["Failed", "Running"]) == Count(count=8 + 7, is_complete=True)
        assert every.count(phases=["TimedOut"]) == Count(count=0, is_complete=True)
        assert every.count(kinds=["GenericJob"]) == Count(count=10 + 8 + 7, is_complete=False)
        assert every.count(kinds=["DIJob"]) == Count(count=0, is_complete=True)
        # No row matches, but most are not examined.
        nothing = await facets(db, STORED_JOBS, Criteria(search="nothing"))
        assert nothing.count(phases=["Succeeded"]) == Count(count=0, is_complete=False)
        assert nothing.count(phases=["TimedOut"]) == Count(count=0, is_complete=True)
        # An index finds all of them.
        rare = await facets(db, STORED_JOBS, Criteria(labels=parse_selector("rare=yes")))
        assert rare.count(phases=["Succeeded"]).is_complete


async def test_namespaces_are_bounded_together(
    db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_few(monkeypatch)
    async with filled(database_url, ROWS):
        both = (await facets(db, STORED_JOBS, Criteria(namespaces=TEAMS))).count(kinds=["GenericJob"])
        one = (await facets(db, STORED_JOBS, Criteria(namespaces=NamespaceSet.of("team-a")))).count(
            kinds=["GenericJob"]
        )
        assert both.count <= one.count + EXAMINED // 10
        none = await facets(db, STORED_JOBS, Criteria(namespaces=NamespaceSet.of("kube-system")))
        assert none.count() == Count(count=0, is_complete=True)


@pytest.mark.parametrize("stored", [SETS, SAMPLE_JOBS])
@pytest.mark.parametrize("where", [Criteria(), Criteria(namespaces=NamespaceSet.of("team-1")), Criteria(set_name="s7")])
async def test_samples_are_counted(db: Database, database_url: str, stored: Stored[Any], where: Criteria) -> None:
    async with filled(database_url, ROWS) as connection:
        found = (await facets(db, stored, where)).count(phases=[""])
        namespaces, name = where.namespaces.names, where.set_name
        expected = await connection.fetchval(
            "SELECT count(*) FROM samples WHERE kind = $1 AND delete_requested_at IS NULL "
            "AND ($2::text[] IS NULL OR namespace = ANY($2)) AND ($3::text IS NULL OR set_name = $3)",
            "SampleSet" if stored is SETS else "SampleJob",
            namespaces,
            name,
        )
        assert found == Count(count=expected, is_complete=True)


def part(kind: str | None, ended: str | None, number: int, *, is_complete: bool = True) -> CountedPart:
    found = {(kind or "GenericJob", ended or "Running"): number} if number else {}
    return CountedPart(kind=kind, ended=ended, found=found, is_complete=is_complete)


@pytest.mark.parametrize(
    ("kinds", "phases", "expected"),
    [
        ([], [], Count(count=17, is_complete=False)),
        (["GenericJob"], [], Count(count=12, is_complete=False)),
        (["MxJob"], [], Count(count=5, is_complete=True)),
        (["MxJob"], ["Failed"], Count(count=5, is_complete=True)),
        ([], ["Failed"], Count(count=12, is_complete=False)),
        ([], ["Running"], Count(count=5, is_complete=True)),
        ([], ["Pending"], Count(count=0, is_complete=True)),
        (["DIJob"], [], Count(count=0, is_complete=True)),
    ],
)
def test_counts_are_sums_of_parts(kinds: list[str], phases: list[str], expected: Count) -> None:
    parts = [
        part("GenericJob", "Failed", 7, is_complete=False),
        part("GenericJob", "", 5),
        part("MxJob", "Failed", 5),
    ]
    assert Facets(parts).count(kinds=kinds, phases=phases) == expected


@pytest.mark.parametrize(("kinds", "phases"), [([], []), (["MxJob"], []), ([], ["Failed"])])
def test_a_part_of_everything_concerns_every_count(kinds: list[str], phases: list[str]) -> None:
    assert not Facets([part(None, None, 3, is_complete=False)]).count(kinds=kinds, phases=phases).is_complete
