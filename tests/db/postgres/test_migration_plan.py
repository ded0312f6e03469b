"""Which steps `jobgate migrate` takes, and what it says of them."""

import pytest

from app.db.postgres.migration_plan import MigrationPlan, plan
from app.db.postgres.schema_version import Migration

KNOWN = {
    name: Migration(
        revision=name,
        follows=before,
        subject=f"Step {name}.",
        compatible_with=oldest,
        blocks_writes="of jobs: a second",
        undoing_loses="the rows",
    )
    for name, before, oldest in (("a1", None, "a1"), ("b2", "a1", "a1"), ("c3", "b2", "b2"))
}


@pytest.mark.parametrize(
    ("present", "target", "added", "undone"),
    [
        (None, None, ["a1", "b2", "c3"], []),
        ("a1", None, ["b2", "c3"], []),
        ("a1", "b2", ["b2"], []),
        ("c3", None, [], []),
        ("c3", "b2", [], ["c3"]),
        ("c3", "a1", [], ["c3", "b2"]),
        ("d4", None, [], []),
        ("d4", "a1", [], []),
    ],
)
def test_the_steps(present: str | None, target: str | None, added: list[str], undone: list[str]) -> None:
    found = plan(KNOWN, present=present, target=target, fault="")
    assert [step.revision for step in found.added] == added
    assert [step.revision for step in found.undone] == undone
    assert found.is_due is bool(added or undone)
    assert ("newer" in found.result) is (present == "d4")


def test_a_schema_that_cannot_be_used_is_due() -> None:
    assert plan(KNOWN, present="d4", target=None, fault="it is newer").is_due


def test_steps_are_described() -> None:
    assert plan(KNOWN, present="b2", target=None, fault="").lines() == [
        "c3  Step c3.",
        "      stops writes: of jobs: a second",
        "      can be taken back; that loses data: the rows",
        "      programs that know b2 run on it",
    ]
    assert plan(KNOWN, present="c3", target="b2", fault="").lines() == [
        "c3  is taken back: Step c3.",
        "      loses data: the rows",
    ]


def test_the_first_schema_of_a_database_is_not_described() -> None:
    found: MigrationPlan = plan(KNOWN, present=None, target=None, fault="")
    assert (found.lines(), found.result) == ([], "the schema is current")
