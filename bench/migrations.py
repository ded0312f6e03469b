"""`python -m bench migrations`: how long writes wait while the schema of a database with a million jobs is migrated.

Clients write jobs and rows about them without a pause. Each migration runs, and is then taken back, beside them.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import asyncpg

from app.db.postgres import migrations, schema_version
from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.report import table
from tests.support.schemas import fill

# The last revision of the version before: an upgrade from an earlier one stops all processes.
_BEFORE: Final = "0023"
_TABLES: Final = ("jobs", "status_history", "conditions", "replicas", "attempts", "samples", "job_events")
_WRITERS: Final = 4
_WRITE: Final = (
    """
    INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                      quiet)
    VALUES ($1, 'bench', 'job', 'GenericJob', 'v1', '{}', now(), 'me', 'Queued', '', '', false)
    """,
    """
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    VALUES ($1, 1, now(), 'Queued', '', '', 'me')
    """,
    "UPDATE jobs SET version = version + 1, phase = 'Running' WHERE uid = $1",
    "INSERT INTO job_events (at, type, namespace, job_uid, version) VALUES (now(), 'status', 'bench', $1, 2)",
)
# Tables that a migration has made, and that later ones read: they are filled after it.
_MADE: Final = {"0026": ("usage_groups", "usage_days")}
_WRITE_USAGE: Final = """
INSERT INTO usage_days AS d (group_id, day, resource, useful) VALUES ($1, '2026-11-27', 'cpu', 1)
ON CONFLICT (group_id, day, resource) DO UPDATE SET useful = d.useful + excluded.useful
"""
_HEAD: Final = ("step", "seconds", "writes", "longest write ms", "goal ms")
_GOAL: Final = "2000"


class Writers:
    """Clients that write, and the longest time that a write has taken since the last reset."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.writes = 0
        self.usage = False

    async def write(self, url: str) -> None:
        """Write until cancelled."""
        connection: Any = await asyncpg.connect(url, timeout=60)
        while True:
            uid, began = uuid4(), time.perf_counter()
            async with connection.transaction():
                for statement in _WRITE:
                    await connection.execute(statement, uid, timeout=600)
                if self.usage:
                    await connection.execute(_WRITE_USAGE, uid.int % 1_000_000, timeout=600)
            self.longest = max(self.longest, time.perf_counter() - began)
            self.writes += 1

    async def beside(self, name: str, work: Callable[[], None]) -> tuple[str, ...]:
        """Return the row of the report about this work, which runs in a thread."""
        self.longest, self.writes = 0.0, 0
        began = time.perf_counter()
        await asyncio.to_thread(work)
        seconds = time.perf_counter() - began
        # A write that waits for the work ends after it.
        await asyncio.sleep(1)
        return (name, f"{seconds:.1f}", str(self.writes), f"{self.longest * 1000:.0f}", _GOAL)


async def run(rows: int, after: str) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        async with EmbeddedPostgres(Path(directory) / "postgres") as postgres:
            await asyncio.to_thread(migrations.migrate, postgres.url, after)
            connection: Any = await asyncpg.connect(postgres.url, timeout=60, command_timeout=3600)
            for name in _TABLES:
                await fill(connection, first=1, rows=rows, only=name)
            await connection.execute("VACUUM ANALYZE")
            await connection.close()
            print("\n".join(table(_HEAD, await _measure(postgres.url, rows, after))))


async def _measure(url: str, rows: int, after: str) -> list[tuple[str, ...]]:
    known = schema_version.read_migrations()
    (head,) = schema_version.revisions_of(known).heads
    steps = [step for step in schema_version.path_to(known, head) if step not in schema_version.path_to(known, after)]
    writers = Writers()
    async with asyncio.TaskGroup() as group:
        writing = [group.create_task(writers.write(url)) for _ in range(_WRITERS)]
        found = [await writers.beside("no migration", lambda: time.sleep(5))]
        for step in steps:
            work = lambda step=step: migrations.migrate(url, step.revision)  # noqa: E731
            found.append(await writers.beside(f"{step.revision} {step.subject}"[:60], work))
            for name in _MADE.get(step.revision, ()):
                await _fill(url, name, rows)
                writers.usage = True
        for step in reversed(steps):
            # Its table is no more.
            writers.usage &= step.revision not in _MADE
            work = lambda step=step: migrations.downgrade(url, step.follows)  # noqa: E731
            found.append(await writers.beside(f"{step.revision} taken back", work))
        for task in writing:
            task.cancel()
    return found


async def _fill(url: str, name: str, rows: int) -> None:
    connection: Any = await asyncpg.connect(url, timeout=60, command_timeout=3600)
    await fill(connection, first=1, rows=rows, only=name)
    await connection.execute(f"VACUUM ANALYZE {name}")
    await connection.close()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench migrations", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="jobs, and rows of each table about them (1000000)")
    parser.add_argument("--after", default=_BEFORE, help=f"the schema before the first step ({_BEFORE})")
    given = parser.parse_args(arguments)
    asyncio.run(run(given.rows, given.after))
