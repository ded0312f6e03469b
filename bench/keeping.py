"""`python -m bench keeping`: polls and submissions beside the deletion of expired jobs, and the sizes of tables.

A database has the ended jobs of 90 days, with what is recorded about a job of one pod. Requests with a constant rate
are measured with and without the sweeper beside them, in turn. Then days pass, by the clock of the sweeper: each one
brings as many jobs as it makes expire. The goals are that the p99 beside the sweeper is at most 20 % above that without
it, and that tables stop growing.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import asyncpg

from app.base.clock import InstallationClock
from app.db.postgres.engine import Database
from app.domain.retention import KEEPING
from app.embedded_postgres.server import EmbeddedPostgres
from app.loops.maintenance.sweeper import Sweeper
from bench import throughput
from bench.measuring.client import LoadClient, MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.report import percentile, table
from tests.support.waiting import until

DAYS: Final = 90
_DAY_SECONDS: Final = 86_400.0
_JOB_BYTES: Final = 20_000  # on the disk, with the log of PostgreSQL and what is free in tables
_CLIENTS: Final = 8
_VACUUM_SECONDS: Final = 300.0
_BACKLOG_DAYS: Final = 1_000  # the age of what is deleted while requests are measured
# Vacuums begin soon after a table has reached its threshold, as they do within a day.
_SETTINGS: Final = {"autovacuum_naptime": "1s", "max_wal_size": "4GB", "shared_buffers": "1GB"}

# One job of one pod that failed: it has six rows of history and three conditions.
_FILL: Final = """
WITH n AS (SELECT n FROM generate_series(1, $1::int) AS n), j AS (
    INSERT INTO jobs ({columns}) SELECT {values} FROM template, n RETURNING uid, finished_at AS at
), h AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    SELECT uid, seq, at, 'Running', 'ReplicasStarted', 'all replicas run', 'controller'
    FROM j, generate_series(1, 6) AS seq
), c AS (
    INSERT INTO conditions (job_uid, type, position, status, reason, message, last_transition_at, observed_generation)
    SELECT uid, 'Condition' || p, p, 'True', 'Failed', 'the replica worker[0] failed', at, 1
    FROM j, generate_series(1, 3) AS p
), r AS (
    INSERT INTO replicas (job_uid, task, rank, pod_name, attempt, phase, evidence, restarts, disruptions)
    SELECT uid, 'worker', 0, 'train-worker-0', 1, 'Failed', 'Captured', 0, 0 FROM j
), a AS (
    INSERT INTO attempts (job_uid, task, rank, attempt, phase, evidence, containers)
    SELECT uid, 'worker', 0, 1, 'Failed', 'Captured', '[{{"name": "main", "exit_code": 1}}]' FROM j
), l AS (
    INSERT INTO attempt_logs (job_uid, task, rank, attempt, container, tail)
    SELECT uid, 'worker', 0, 1, 'main', convert_to(repeat('a line of the log' || chr(10), 20), 'UTF8') FROM j
)
INSERT INTO attempt_events (job_uid, task, rank, attempt, events)
SELECT uid, 'worker', 0, 1, '[{{"reason": "Scheduled", "message": "assigned to a node"}}]' FROM j
"""
_TABLES: Final = (
    *("jobs", "status_history", "conditions", "replicas", "attempts", "attempt_logs", "attempt_events", "purged"),
    "job_events",
)
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

    connection: Any
    db: Database
    target: Target
    namespaces: int
    clock: InstallationClock = field(default_factory=InstallationClock)
    _fill: str = ""

    async def take_template(self) -> None:
        """Keep the row of a submitted job, of which all others are copies."""
        await self.connection.execute(
            f"CREATE UNLOGGED TABLE template AS SELECT * FROM jobs WHERE namespace = '{throughput.POLLED}' LIMIT 1"
        )
        rows = await self.connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'jobs' AND is_generated = 'NEVER'"
        )
        ended_at = "$2::timestamptz + random() * interval '1 day'"
        other = {
            "uid": "gen_random_uuid()",
            "namespace": f"'team-' || n % {self.namespaces}",
            "name": "'job-' || n",
            "phase": "'Failed'",
            "quiet": "true",
            "created_at": "$2::timestamptz",
            "finished_at": ended_at,
            "gone_at": "$2::timestamptz + interval '2 days'",
            "intent_at": "NULL",
        }
        columns = [row["column_name"] for row in rows]
        values = [other.get(column, column) for column in columns]
        self._fill = _FILL.format(columns=", ".join(columns), values=", ".join(values))

    async def fill(self, jobs: int, *, days_ago: float) -> None:
        """Store ended jobs of one day."""
        now = await self.connection.fetchval("SELECT now() - $1::float * interval '1 day'", days_ago)
        for start in range(0, jobs, 10_000):
            await self.connection.execute(self._fill, min(10_000, jobs - start), now, timeout=600)

    def sweeper(self) -> Sweeper:
        return Sweeper(self.db, self.clock, KEEPING)

    async def left(self, *, days_ago: float) -> int:
        """Count the jobs that ended longer ago."""
        found: int = await self.connection.fetchval(
            "SELECT count(*) FROM jobs WHERE finished_at < now() - $1::float * interval '1 day'", days_ago, timeout=600
        )
        return found

    async def sizes(self) -> Mapping[str, int]:
        """Return the bytes of each table with its indexes, once autovacuum has nothing to do."""
        await asyncio.sleep(3)  # PostgreSQL counts dead rows with a delay
        await until(
            lambda: self.connection.fetchval(_DEAD, _TABLES),
            lambda tables: not tables,
            what="autovacuum has nothing to do",
            within=_VACUUM_SECONDS,
            every=1,
        )
        return dict(await self.connection.fetch(_SIZES, _TABLES))


@asynccontextmanager
async def _installation(arguments: argparse.Namespace, place: Path) -> AsyncIterator[Installation]:
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(place / "postgres", settings=_SETTINGS))
        url = await new_database(postgres, "keeping")
        target = await stack.enter_async_context(gateway(url, place, postgres, role="api", token=await new_token(url)))
        connection: Any = await asyncpg.connect(url, timeout=60)
        stack.push_async_callback(connection.close)
        db = await Database.open(url, pool_size=2)
        stack.push_async_callback(db.close)
        await throughput.prepare_poll(target, None)
        yield Installation(connection=connection, db=db, target=target, namespaces=arguments.namespaces)


async def _latencies(
    client: LoadClient, target: Target, requests: Sequence[bytes], rate: float, seconds: float, expect: int
) -> list[float]:
    sent = list(islice(cycle(requests), round(rate * seconds)))
    _, times = await client.paced(target, sent, clients=_CLIENTS, rate=rate, expect=expect)
    return [end - begin for begin, end in times]


@asynccontextmanager
async def _sweeping(here: Installation) -> AsyncIterator[None]:
    """Run the sweeper beside the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(here.sweeper().sweep())
        yield
        task.cancel()


async def requests(here: Installation, client: LoadClient, arguments: argparse.Namespace) -> list[str]:
    """Measure requests without and with the sweeper beside them, in turn."""
    polls, _ = await throughput.poll_requests(here.target)
    submission, _ = throughput.submissions(here.target, None)
    works = {
        "poll": (polls, arguments.polls, 200),
        "submission": ([submission], arguments.submissions, 201),
    }
    found: dict[tuple[str, bool], list[list[float]]] = {(name, on): [] for name in works for on in (False, True)}
    before = await here.left(days_ago=_BACKLOG_DAYS - 1)
    for turn in range(arguments.pairs):
        for on in (False, True) if turn % 2 == 0 else (True, False):
            for name, (sent, rate, expect) in works.items():
                async with _sweeping(here) if on else nullcontext():
                    times = await _latencies(client, here.target, sent, rate, arguments.seconds, expect)
                found[name, on].append(times)
    left = await here.left(days_ago=_BACKLOG_DAYS - 1)
    if not left:
        raise MeasurementFailed("everything was deleted before the end: use a larger --backlog")
    rows = []
    for name, (_, rate, _) in works.items():
        without, beside = ([percentile(times, 99) for times in found[name, on]] for on in (False, True))
        ratios = [b / a for a, b in zip(without, beside, strict=True)]
        middle = [f"{median(median(times) for times in found[name, on]) * 1e3:.2f}" for on in (False, True)]
        rows.append(
            (
                name,
                f"{rate:g}",
                *middle,
                f"{median(without) * 1e3:.2f}",
                f"{median(beside) * 1e3:.2f}",
                f"{median(beside) / median(without):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
            )
        )
    seconds = arguments.pairs * len(works) * arguments.seconds
    head = ("request", "per second", "p50 ms", "beside", "p99 ms", "beside", "ratio of p99", "of pairs")
    return [
        *table(head, rows),
        f"the sweeper deleted {before - left} jobs in {seconds:g} s, {(before - left) / seconds:.0f}/s",
    ]


async def days(here: Installation, rounds: int, of_day: int) -> list[str]:
    """Let days pass, and return the sizes of the tables in MiB after each."""
    await here.sweeper().sweep()
    await here.connection.execute("VACUUM ANALYZE", timeout=3600)
    sizes = [await here.sizes()]
    for day in range(1, rounds + 1):
        here.clock.shift(_DAY_SECONDS)
        await here.fill(of_day, days_ago=-day)
        stored, began = await here.left(days_ago=-day - 1), time.monotonic()
        await here.sweeper().sweep()
        seconds, deleted = time.monotonic() - began, stored - await here.left(days_ago=-day - 1)
        left = await here.left(days_ago=DAYS - day + 0.05)  # others have expired since
        if left:
            raise MeasurementFailed(f"{left} expired jobs are left after day {day}")
        sizes.append(await here.sizes())
        print(f"day {day}: {of_day} jobs stored, {deleted} deleted in {seconds:.1f} s", flush=True)
    rows = [(name, *(f"{size[name] / 2**20:.1f}" for size in sizes)) for name in _TABLES]
    rows.append(("all", *(f"{sum(size.values()) / 2**20:.1f}" for size in sizes)))
    half = sum(sizes[rounds // 2].values())
    grown = sum(sizes[-1].values()) / half - 1
    return [
        *table(("MiB after day", *map(str, range(rounds + 1))), rows),
        f"in the second half of the days the tables grew by {grown:.1%}",
    ]


async def run(arguments: argparse.Namespace) -> None:
    of_day = arguments.jobs // DAYS
    stored = arguments.jobs + arguments.backlog + arguments.rounds * of_day
    with tempfile.TemporaryDirectory(
        prefix="jobgate-bench-", ignore_cleanup_errors=True, dir=arguments.directory
    ) as directory:
        place = Path(directory)
        if shutil.disk_usage(place).free < stored * _JOB_BYTES:
            raise MeasurementFailed(f"{stored} jobs need {stored * _JOB_BYTES / 2**30:.1f} GiB of free disk in {place}")
        client = LoadClient.compile(place)
        async with _installation(arguments, place) as here:
            began = time.monotonic()
            await here.take_template()
            for day in range(DAYS):
                await here.fill(of_day, days_ago=day + 0.9)
            await here.fill(arguments.backlog, days_ago=_BACKLOG_DAYS)
            await here.connection.execute("VACUUM ANALYZE", timeout=3600)
            size = await here.connection.fetchval("SELECT pg_database_size(current_database())")
            print(
                f"{arguments.jobs} jobs of {DAYS} days in {arguments.namespaces} namespaces and {arguments.backlog} "
                f"expired ones, {size / 2**30:.2f} GiB, stored in {time.monotonic() - began:.0f} s",
                flush=True,
            )
            print("\n".join(["", *await requests(here, client, arguments), ""]), flush=True)
            print("\n".join(["", *await days(here, arguments.rounds, of_day)]))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench keeping", description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=20_000, help="ended jobs of the 90 days (20000); 5400000 are 60000 a day"
    )
    parser.add_argument("--namespaces", type=int, default=30, help="namespaces of these jobs (30)")
    parser.add_argument("--rounds", type=int, default=8, help="days that pass (8)")
    parser.add_argument("--backlog", type=int, default=20_000, help="expired jobs beside the measured requests (20000)")
    parser.add_argument("--pairs", type=int, default=4, help="measurements with and without the sweeper (4)")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each measurement (3)")
    parser.add_argument("--polls", type=float, default=300.0, help="polls per second (300)")
    parser.add_argument("--submissions", type=float, default=60.0, help="submissions per second (60)")
    parser.add_argument("--directory", type=Path, help="directory of the database; by default that of temporary files")
    asyncio.run(run(parser.parse_args(arguments)))
