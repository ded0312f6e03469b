"""A migration holds up no writes, suits the processes of the version before, can be taken back, and is documented."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from app.db.postgres import migrations, schema_version
from app.db.postgres.concurrent_indexes import create_index, drop_index
from app.db.postgres.errors import DatabaseContended
from app.db.postgres.schema_version import Migration
from tests.support.migration_rules import find_blocks
from tests.support.schemas import contents, fill, restricted, revision
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
KNOWN = schema_version.read_migrations()
(HEAD,) = schema_version.revisions_of(KNOWN).heads
PATH = schema_version.path_to(KNOWN, HEAD)
# The last revision of the version before. Up to this revision, an upgrade needs all processes to be stopped.
STOPPED = "0023"
SINCE = PATH[[step.revision for step in PATH].index(STOPPED) + 1 :]
WAITS = "SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'jobgate migrate' AND datname = $1"
INSERT_JOB = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet)
VALUES ($1, 'a', 'job', 'GenericJob', 'v1', '{}', now(), 'somebody', '', '', '', false)
"""
LARGE_TABLES = """
SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'
GROUP BY table_name HAVING bool_and(column_name <> 'singleton')
"""
FEW_ROWS = frozenset({"alembic_version", "schema_revision", "leases", "api_tokens", "queues"})
# Each of these locks ends with a transaction of its own, as tests/db/usage/test_months.py proves.
SHORT_LOCKS = {"0029": ("LOCK TABLE usage_days IN SHARE ROW EXCLUSIVE MODE",)}
FILES = "SELECT relname, pg_relation_filenode(oid) AS file FROM pg_class WHERE relkind = 'r' AND relname = ANY($1)"


def of_revision(step: Migration) -> str:
    return step.revision


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Collect the statements of migrations."""
    statements: list[str] = []

    def record(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", record)


async def large_tables(connection: Any) -> dict[str, int]:
    """Return the tables that can have many rows, and the files that hold them: a rewrite of a table makes another."""
    names = {row["table_name"] for row in await connection.fetch(LARGE_TABLES)} - FEW_ROWS
    return {row["relname"]: row["file"] for row in await connection.fetch(FILES, list(names))}


def test_every_migration_says_what_it_does() -> None:
    for step in PATH:
        assert step.blocks_writes, step
        assert step.undoing_loses, step


def test_every_migration_has_its_line_in_the_documentation() -> None:
    text = (ROOT / "docs/migration.md").read_text()
    for step in PATH:
        oldest = step.compatible_with if step in SINCE else "stop them"
        line = f"| {step.revision} | {step.subject} | {step.blocks_writes} | {step.undoing_loses} | {oldest} |"
        assert line in text, line


@pytest.mark.parametrize("step", SINCE, ids=of_revision)
def test_a_migration_suits_the_processes_of_the_version_before(step: Migration) -> None:
    """An older version can be compatible with an earlier migration and not with a later one, but not the reverse."""
    names = [known.revision for known in PATH]
    before = KNOWN[str(step.follows)].compatible_with
    assert names.index(before) <= names.index(step.compatible_with) <= names.index(STOPPED)


@pytest.mark.parametrize("step", SINCE, ids=of_revision)
async def test_a_migration_holds_up_no_writes(step: Migration, empty_database_url: str) -> None:
    migrations.migrate(empty_database_url, str(step.follows))
    connection: Any = await asyncpg.connect(empty_database_url, timeout=60)
    await fill(connection, first=1, rows=3)
    before = await large_tables(connection)
    for to in (step.revision, str(step.follows)):
        with recorded() as statements:
            (migrations.migrate if to == step.revision else migrations.downgrade)(empty_database_url, to)
        assert statements
        allowed = SHORT_LOCKS.get(step.revision, ())
        assert find_blocks([each for each in statements if each not in allowed], before) == []
        after = await large_tables(connection)
        assert {table: file for table, file in after.items() if table in before} == before
    await connection.close()


async def test_a_rewrite_is_found(empty_database_url: str) -> None:
    """The column of this migration is computed for all rows."""
    migrations.migrate(empty_database_url, "0008")
    connection: Any = await asyncpg.connect(empty_database_url, timeout=60)
    before = await large_tables(connection)
    with recorded() as statements:
        migrations.migrate(empty_database_url, "0009")
    assert (await large_tables(connection))["jobs"] != before["jobs"]
    assert any("an index of jobs under a lock" in found for found in find_blocks(statements, before))
    await connection.close()


@pytest.mark.parametrize(
    ("statement", "holds_up"),
    [
        ("CREATE INDEX x ON jobs (a)", True),
        ("CREATE UNIQUE INDEX x\nON jobs USING gin (a)", True),
        ("CREATE INDEX CONCURRENTLY IF NOT EXISTS x ON jobs (a)", False),
        ("CREATE INDEX x ON other (a)", False),
        ("ALTER TABLE jobs ADD COLUMN a TEXT", False),
        ("ALTER TABLE jobs ADD COLUMN a BIGINT DEFAULT 0 NOT NULL", False),
        ("ALTER TABLE jobs ALTER COLUMN a SET NOT NULL", True),
        ("ALTER TABLE jobs ADD CONSTRAINT c CHECK (a > 0)", True),
        ("ALTER TABLE jobs ADD CONSTRAINT c CHECK (a > 0) NOT VALID", False),
        ("ALTER TABLE jobs SET (fillfactor = 80)", False),
        ("UPDATE jobs SET a = 1", True),
        ("WITH b AS (SELECT 1) UPDATE jobs SET a = 1", True),
        ("DELETE FROM jobs WHERE a", True),
        ("UPDATE other SET a = 1", False),
        ("LOCK TABLE jobs IN SHARE MODE", True),
    ],
)
def test_statements_that_hold_up_writes_are_found(statement: str, *, holds_up: bool) -> None:
    assert bool(find_blocks([statement], {"jobs"})) is holds_up


# The downgrade of 0023 gives room to the jobs that wait for it, so it changes rows of other tables.
@pytest.mark.parametrize("step", [step for step in PATH[20:] if step.revision != "0023"], ids=of_revision)
async def test_a_migration_can_be_taken_back_and_repeated(step: Migration, empty_database_url: str) -> None:
    """The rows of all tables keep the values of the columns that both schemas have."""
    migrations.migrate(empty_database_url, step.revision)
    connection: Any = await asyncpg.connect(empty_database_url, timeout=60)
    await fill(connection, first=1, rows=3)
    full = await contents(connection)
    migrations.downgrade(empty_database_url, str(step.follows))
    assert await revision(empty_database_url) == (step.follows, KNOWN[str(step.follows)].compatible_with)
    reduced = await contents(connection)
    assert reduced == restricted(full, reduced)
    await fill(connection, first=11, rows=2)
    older = await contents(connection)
    migrations.migrate(empty_database_url, step.revision)
    assert await revision(empty_database_url) == (step.revision, step.compatible_with)
    assert restricted(await contents(connection), older) == older
    await connection.close()


async def test_a_migration_that_waits_for_a_table_lets_writes_pass(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up, and begins again, for as long as another client has the table."""
    monkeypatch.setattr(migrations, "_LOCK_PAUSE", 0.1)
    migrations.migrate(empty_database_url, "0019")
    reader, writer = [await asyncpg.connect(empty_database_url, timeout=60) for _ in range(2)]
    database = await writer.fetchval("SELECT current_database()")
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("SELECT FROM jobs")
    async with asyncio.TaskGroup() as group:
        migration = group.create_task(asyncio.to_thread(migrations.migrate, empty_database_url))
        for _ in range(2):
            await until(lambda: writer.fetchval(WAITS, database), lambda found: found == "Lock", what="it waits")
            await writer.execute(INSERT_JOB, uuid4())
        assert not migration.done()
        await transaction.rollback()
    assert (await revision(empty_database_url))[0] == HEAD
    await reader.close()
    await writer.close()


async def test_a_migration_gives_up_in_the_end(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "_LOCK_PAUSE", 0.0)
    monkeypatch.setattr(migrations, "_LOCK_TRIES", 2)
    migrations.migrate(empty_database_url, "0019")
    reader = await asyncpg.connect(empty_database_url, timeout=60)
    async with reader.transaction():
        await reader.fetch("SELECT FROM jobs")
        with pytest.raises(DatabaseContended):
            await asyncio.to_thread(migrations.migrate, empty_database_url)
    assert (await revision(empty_database_url))[0] == "0019"
    await reader.close()


def in_migration(url: str, work: Any) -> None:
    """Do the work as a migration does."""

    def run(_: object, connection: Connection) -> None:
        context = MigrationContext.configure(connection, opts={"transaction_per_migration": True})
        with Operations.context(context), context.begin_transaction(_per_migration=True):
            work()

    migrations._run(url, run)


async def test_an_index_is_built_while_others_write(database_url: str) -> None:
    writer, other = [await asyncpg.connect(database_url, timeout=60) for _ in range(2)]
    database = await writer.fetchval("SELECT current_database()")
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute(INSERT_JOB, uuid4())
    building = threading.Thread(
        target=in_migration, args=(database_url, lambda: create_index("jobs_by_x", "ON jobs (reason)"))
    )
    building.start()
    await until(lambda: other.fetchval(WAITS, database), lambda found: found == "Lock", what="the build waits")
    await other.execute(INSERT_JOB.replace("'job'", "'another'"), uuid4())
    await transaction.commit()
    await asyncio.to_thread(building.join)
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('jobs_by_x')"
    assert await other.fetchval(valid)
    # As an interrupted build leaves it.
    await other.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'jobs_by_x'::regclass")
    in_migration(database_url, lambda: create_index("jobs_by_x", "ON jobs (reason)"))
    assert await other.fetchval(valid)
    in_migration(database_url, lambda: drop_index("jobs_by_x"))
    in_migration(database_url, lambda: drop_index("jobs_by_x"))
    assert await other.fetchval(valid) is None
    await writer.close()
    await other.close()
