"""`python -m bench keeping`: polls and submissions beside the deletion of expired jobs, and the sizes of tables.

A database has the ended jobs of 90 days, with what is recorded about a job of one pod. Requests with a constant rate
are measured alone, and beside the sweeper at two speeds, in many short rounds that alternate. Then days pass, by the
clock of the sweeper: each one brings as many jobs as it makes expire. The goals are that the p99 beside the sweeper is
at most 20 % above that without it, and that tables stop growing.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncpg

from app.base.clock import InstallationClock
from app.db.postgres.engine import Database
from app.domain.retention import KEEPING
from app.embedded_postgres.server import EmbeddedPostgres
from app.loops.maintenance.sweeper import Sweeper
from bench.comparison import throughput
from bench.keeping.beside import BACKLOG_DAYS, DAY_SECONDS, Backlog, measure, works
from bench.keeping.rows import TABLES, Rows
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.report import table
from tests.support.waiting import until

DAYS: Final = 90
_JOB_BYTES: Final = 10_000  # on the disk, with what is free in tables and the files in which indexes are sorted
_WAL_GIB: Final = 6.0
_VACUUM_SECONDS: Final = 300.0
# Vacuums begin soon after a table has reached its threshold, as they do within a day.
_SETTINGS: Final = {"autovacuum_naptime": "1s", "max_wal_size": "4GB", "shared_buffers": "1GB"}

_SIZES: Final = """
SELECT relname, pg_total_relation_size(relid) AS bytes FROM pg_stat_user_tables WHERE relname = ANY($1)
"""
# The thresholds at which autovacuum begins, by the settings of the schema.
_DEAD: Final = """
SELECT count(*) FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid
WHERE s.relname = ANY($1) AND s.n_dead_tup > 50 + 0.02 * c.reltuples
"""


@dataclass(kw_only=True)
class Installation:
    """A database with ended jobs, and a gateway on it."""

    url: str
    connection: Any
    db: Database
    target: Target
    rows: Rows
    clock: InstallationClock = field(default_factory=InstallationClock)

    def sweeper(self) -> Sweeper:
        return Sweeper(self.db, self.clock, KEEPING)

    async def count_left(self, *, days_ago: float) -> int:
        """Count the jobs that ended longer ago."""
        found: int = await self.connection.fetchval(
            "SELECT count(*) FROM jobs WHERE finished_at < now() - $1::float * interval '1 day'", days_ago, timeout=600
        )
        return found

    async def sizes(self) -> Mapping[str, int]:
        """Return the bytes of each table with its indexes, once autovacuum has nothing to do."""
        await asyncio.sleep(3)  # PostgreSQL counts dead rows with a delay
        await until(
            lambda: self.connection.fetchval(_DEAD, TABLES),
            lambda tables: not tables,
            what="autovacuum has nothing to do",
            within=_VACUUM_SECONDS,
            every=1,
        )
        return dict(await self.connection.fetch(_SIZES, TABLES))


@asynccontextmanager
async def installation(arguments: argparse.Namespace, folder: Path) -> AsyncIterator[Installation]:
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres", settings=_SETTINGS))
        url = await new_database(postgres, "keeping")
        target = await stack.enter_async_context(gateway(url, folder, postgres, role="api", token=await new_token(url)))
        connection: Any = await asyncpg.connect(url, timeout=60)
        stack.push_async_callback(connection.close)
        db = await Database.open(url, pool_size=2)
        stack.push_async_callback(db.close)
        await throughput.prepare_poll(target, None)
        rows = await Rows.like(url, throughput.POLLED, arguments.namespaces)
        yield Installation(url=url, connection=connection, db=db, target=target, rows=rows)


async def days(here: Installation, number: int, of_day: int) -> list[str]:
    """Let days pass, and return the sizes of the tables in MiB after each."""
    await here.sweeper().sweep()
    await here.connection.execute("VACUUM ANALYZE", timeout=3600)
    sizes = [await here.sizes()]
    for day in range(1, number + 1):
        here.clock.shift(DAY_SECONDS)
        await here.rows.add(of_day, days_ago=-day)
        stored, began = await here.count_left(days_ago=-day - 1), time.monotonic()
        await here.sweeper().sweep()
        seconds, deleted = time.monotonic() - began, stored - await here.count_left(days_ago=-day - 1)
        left = await here.count_left(days_ago=DAYS - day + 0.05)  # others have expired since
        if left:
            raise MeasurementFailed(f"{left} expired jobs are left after day {day}")
        sizes.append(await here.sizes())
        print(f"day {day}: {of_day} jobs stored, {deleted} deleted in {seconds:.1f} s", flush=True)
    rows = [(name, *(f"{size[name] / 2**20:.1f}" for size in sizes)) for name in TABLES]
    rows.append(("all", *(f"{sum(size.values()) / 2**20:.1f}" for size in sizes)))
    half = sum(sizes[number // 2].values())
    grown = sum(sizes[-1].values()) / half - 1
    return [
        *table(("MiB after day", *map(str, range(number + 1))), rows),
        f"in the second half of the days the tables grew by {grown:.1%}",
    ]


def require_disk(folder: Path, stored: int, most: float) -> None:
    """Check that the rows fit.

    Raises:
        MeasurementFailed: they need more than `most` GiB, or than is free.
    """
    needed = stored * _JOB_BYTES / 2**30 + _WAL_GIB
    if needed > most:
        raise MeasurementFailed(f"{stored} jobs need {needed:.0f} GiB of disk: more than --disk {most:g}")
    if shutil.disk_usage(folder).free < needed * 2**30:
        raise MeasurementFailed(f"{stored} jobs need {needed:.0f} GiB of free disk in {folder}")


async def store(here: Installation, arguments: argparse.Namespace, expired: int) -> None:
    """Store the ended jobs, and so many that have expired long ago."""
    began = time.monotonic()
    await here.rows.add(expired, days_ago=BACKLOG_DAYS)
    await here.rows.add_days(arguments.jobs // DAYS, DAYS)
    size = await here.connection.fetchval("SELECT pg_database_size(current_database())")
    print(
        f"{arguments.jobs} jobs of {DAYS} days in {arguments.namespaces} namespaces and {expired} "
        f"expired ones, {size / 2**30:.2f} GiB, stored in {time.monotonic() - began:.0f} s",
        flush=True,
    )


async def run(arguments: argparse.Namespace) -> None:
    of_day, last_round = arguments.jobs // DAYS, time.monotonic() + arguments.within
    with tempfile.TemporaryDirectory(
        prefix="jobgate-bench-", ignore_cleanup_errors=True, dir=arguments.directory
    ) as directory:
        folder = Path(directory)
        require_disk(folder, arguments.jobs + arguments.backlog + arguments.days * of_day, arguments.disk)
        async with installation(arguments, folder) as here:
            await store(here, arguments, arguments.backlog)
            found = await works(here.target, folder, arguments)
            backlog = Backlog(here.db, here.connection, arguments.rate)
            lines = await measure(here.target, found, backlog, arguments, until=last_round)
            print("\n".join(["", *lines, *backlog.report(), ""]), flush=True)
            if arguments.days:
                print("\n".join(["", *await days(here, arguments.days, of_day)]))


def add_options(parser: argparse.ArgumentParser, *, jobs: int, rounds: int) -> None:
    """Add the options of a database with ended jobs, and of the requests that are measured on it."""
    add = parser.add_argument
    add("--jobs", type=int, default=jobs, help=f"ended jobs of the 90 days ({jobs}); 5400000 are 60000 a day")
    add("--namespaces", type=int, default=30, help="namespaces of these jobs (30)")
    add("--rounds", type=int, default=rounds, help=f"rounds alone and beside the other work ({rounds})")
    add("--seconds", type=float, default=3.0, help="duration of each round (3)")
    add("--within", type=float, default=480.0, help="seconds after which no round begins, beside the first three (480)")
    add("--polls", type=float, default=300.0, help="polls per second (300)")
    add("--submissions", type=float, default=60.0, help="submissions per second (60)")
    add("--disk", type=float, default=25.0, help="GiB of disk that the run may take (25)")
    add("--directory", type=Path, help="directory of the database; by default that of temporary files")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench keeping", description=__doc__)
    add_options(parser, jobs=20_000, rounds=20)
    add = parser.add_argument
    add("--days", type=int, default=8, help="days that pass after the measurement (8)")
    add("--backlog", type=int, default=50_000, help="expired jobs beside the measured requests (50000)")
    add("--rate", type=float, default=0.7, help="jobs per second that the slow sweeper deletes (0.7: 60000 a day)")
    asyncio.run(run(parser.parse_args(arguments)))
