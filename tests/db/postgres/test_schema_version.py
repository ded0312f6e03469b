"""Whether a database has the schema of this version. The other cases are with the migrations, in test_migrations.py."""

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.bundled import bundled
from app.db.postgres import schema_version
from tests.support.postgres import execute


def test_the_files_have_the_revisions_that_alembic_finds() -> None:
    configuration = Config()
    configuration.set_main_option("script_location", str(bundled("migrations")))
    configuration.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(configuration)
    found = schema_version.revisions()
    assert found.heads == set(scripts.get_heads())
    assert found.known == {script.revision for script in scripts.walk_revisions()}


def test_quotes_of_both_kinds_are_read() -> None:
    """The formatter prefers one, and the template of new migrations has the other."""
    scripts = [
        "revision: str = 'a1'\ndown_revision: str | None = None\n",
        'revision: str = "b2"\ndown_revision: str | None = "a1"\n',
        '"""A package."""\n',
    ]
    found = schema_version.revisions_in(scripts)
    assert found == schema_version.Revisions(known=frozenset({"a1", "b2"}), heads=frozenset({"b2"}))


async def test_the_schema_of_this_version_is_current(database_url: str) -> None:
    assert await schema_version.check_database(database_url) == []


async def test_an_empty_database_has_no_schema(empty_database_url: str) -> None:
    (found,) = await schema_version.check_database(empty_database_url)
    assert found.startswith("the database has no schema of jobgate and this version needs ")
    assert found.endswith(": run `jobgate migrate`")


@pytest.mark.parametrize(
    ("present", "expected"),
    [("0001", "the database has 0001 and this version needs"), ("9999", "the database has 9999, which this version")],
)
async def test_another_schema_is_named(database_url: str, present: str, expected: str) -> None:
    await execute(database_url, f"UPDATE alembic_version SET version_num = '{present}'")
    (found,) = await schema_version.check_database(database_url)
    assert found.startswith(expected)
