"""Whether a database has the schema of this version. The other cases are with the migrations, in test_migrations.py."""

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.bundled import bundled_directory
from app.db.postgres import schema_version
from app.db.postgres.schema_version import Migration, Revisions
from tests.support.postgres import execute
from tests.support.schemas import set_revision


def test_the_files_have_the_revisions_that_alembic_finds() -> None:
    configuration = Config()
    configuration.set_main_option("script_location", str(bundled_directory("migrations")))
    configuration.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(configuration)
    found = schema_version.revisions()
    assert found.heads == set(scripts.get_heads())
    assert found.known == {script.revision for script in scripts.walk_revisions()}


SECOND = '''"""Second.

More.
"""
revision: str = "b2"
down_revision: str | None = "a1"
compatible_with = "a1"
blocks_writes = "of jobs"
undoing_loses = "all of a job's life"
'''


def test_migrations_are_read_from_their_text() -> None:
    """The formatter prefers one kind of quotes, and the template of new migrations has the other."""
    scripts = [
        '"""First."""\nrevision: str = \'a1\'\ndown_revision: str | None = None\n',
        SECOND,
        '"""A package."""\n',
    ]
    found = schema_version.migrations_in(scripts)
    assert schema_version.revisions_of(found) == Revisions(known=frozenset({"a1", "b2"}), heads=frozenset({"b2"}))
    assert schema_version.path_to(found, "b2") == [
        Migration(
            revision="a1", follows=None, subject="First.", compatible_with="a1", blocks_writes="", undoing_loses=""
        ),
        Migration(
            revision="b2",
            follows="a1",
            subject="Second.",
            compatible_with="a1",
            blocks_writes="of jobs",
            undoing_loses="all of a job's life",
        ),
    ]
    assert schema_version.path_to(found, "c3") == []


async def test_the_schema_of_this_version_is_current(database_url: str) -> None:
    assert await schema_version.check_database(database_url) == []


async def test_an_empty_database_has_no_schema(empty_database_url: str) -> None:
    (found,) = await schema_version.check_database(empty_database_url)
    assert found.startswith("the database has no schema of jobgate and this version needs ")
    assert found.endswith(": run `jobgate migrate`")


@pytest.mark.parametrize(
    ("present", "compatible", "expected"),
    [
        ("0001", "0001", "the database has 0001 and this version needs"),
        ("9999", "9998", "the database has 9999, which this version does not know: a newer version of jobgate has"),
    ],
)
async def test_another_schema_is_named(database_url: str, present: str, compatible: str, expected: str) -> None:
    await set_revision(database_url, present, compatible_with=compatible)
    (found,) = await schema_version.check_database(database_url)
    assert found.startswith(expected)


async def test_a_database_that_an_earlier_version_has_migrated_has_its_revision_in_the_other_table(
    database_url: str,
) -> None:
    (head,) = schema_version.revisions().heads
    await execute(database_url, f"DROP TABLE schema_revision; UPDATE alembic_version SET version_num = '{head}'")
    assert await schema_version.check_database(database_url) == []
