"""A dump that is written while a migration runs has all rows, and `jobgate migrate` completes its schema.

This needs migrations that rewrite no table: `pg_dump` that waits for one which does writes a table without rows, and
reports no error. `test_migration_rules.py` proves that no migration since 0023 does.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from app.db.postgres import migrations, schema_version
from tests.support.page_commands import run_commands
from tests.support.postgres import fresh_database
from tests.support.schemas import contents, fill, restricted
from tests.support.waiting import until

WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'pg_dump' AND wait_event_type = 'Lock' AND datname = current_database()
"""
SECONDS = 120


class Pause:
    """A place at which a migration waits until the test lets it go on."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.is_over = threading.Event()


@contextmanager
def paused_before(statement: str) -> Iterator[Pause]:
    """Let a migration wait before the first statement that begins with this text."""
    pause = Pause()

    def wait(_: object, __: object, text: str, *___: object) -> None:
        if text.lstrip().startswith(statement):
            pause.is_reached.set()
            pause.is_over.wait(SECONDS)

    event.listen(Engine, "before_cursor_execute", wait)
    try:
        yield pause
    finally:
        pause.is_over.set()
        event.remove(Engine, "before_cursor_execute", wait)


async def run(heading: str, directory: Path, url: str) -> None:
    """Run the commands of the documentation on a database."""
    await asyncio.to_thread(run_commands, "recovery.md", heading, directory, JOBGATE_DATABASE_URL=url)


def in_order(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Return the rows in an order that does not depend on when they were written."""
    return {table: sorted(map(repr, found)) for table, found in rows.items()}


@pytest.mark.parametrize(
    ("statement", "dumped"),
    [
        pytest.param("INSERT INTO usage_months", "at once", id="between two transactions of a migration"),
        pytest.param("ALTER TABLE kept_logs", "afterwards", id="it waits for a table that the migration has changed"),
    ],
)
async def test_a_dump_that_is_written_while_a_migration_runs(
    statement: str, dumped: str, empty_database_url: str, postgres_server_url: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(migrations.migrate, empty_database_url, "0028")
    connection: Any = await asyncpg.connect(empty_database_url, timeout=60)
    await fill(connection, first=1, rows=3)
    before = await contents(connection)
    with paused_before(statement) as pause:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(migrations.migrate, empty_database_url))
            assert await asyncio.to_thread(pause.is_reached.wait, SECONDS)
            dump = group.create_task(run("Dump", tmp_path, empty_database_url))

            async def state() -> str | None:
                if await connection.fetchval(WAITS):
                    return "afterwards"
                return "at once" if dump.done() else None

            assert await until(state, what="the dump waits, or is written") == dumped
            pause.is_over.set()
    complete = await contents(connection)
    await connection.close()
    async with fresh_database(postgres_server_url) as restored:
        await run("Restore a dump", tmp_path, restored)
        assert await schema_version.check_database(restored) == [], "a process starts on it"
        assert await asyncio.to_thread(migrations.drift, restored) == []
        connection = await asyncpg.connect(restored, timeout=60)
        found = await contents(connection)
        await connection.close()
    assert in_order(restricted(found, before)) == in_order(before)
    assert in_order(found) == in_order(complete)
