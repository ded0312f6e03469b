"""`python -m bench usage`: the time in which the gateway reads a year of usage.

The database has sums as jobs of many teams leave them, and live jobs that go on: 30 teams with 2 000 jobs a day are 5
million jobs in 90 days, and 22 million in a year (`--days 366`). No read of usage touches the jobs themselves, so only
their sums and rates are stored. The goal is 200 ms of CPU time for each request. The CPU time is that of the
gateway and of PostgreSQL, which other work on the machine changes little.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import asyncpg

from app.base.clock import SystemClock
from app.embedded_postgres.server import EmbeddedPostgres
from bench.changes.checkouts import Connection
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.processes import cpu_seconds
from bench.measuring.report import percentile, table

GOAL: Final = 0.2  # seconds
# Two kinds for each user, one queue for each team, and the group of all jobs of each team.
_GROUPS: Final = """
INSERT INTO usage_groups (namespace, user_id, user_name, queue, kind, labels)
SELECT 'team-' || team, 'user:' || number, 'user-' || number, 'queue-' || team, kind, '{"project": "p"}'::jsonb
FROM generate_series(1, $1) AS team, generate_series(1, $2) AS number,
     unnest(ARRAY['GenericJob', 'TrainingJob']) AS kind
UNION ALL SELECT 'team-' || team, '', '', '', '', '{}'::jsonb FROM generate_series(1, $1) AS team
"""
# Each sum has as many digits as that of a day of a thousand cores, or of as many GiB.
_SUMS: Final = """
INSERT INTO usage_days (day, group_id, resource, useful, repeated, disrupted, idle, queued)
SELECT current_date - ago, g.id, resource, 86400000000 * weight, 8640000000 * weight, 864000000 * weight,
       864000000 * weight, 0
FROM usage_groups AS g, generate_series(0, $1 - 1) AS ago,
     (VALUES ('cpu', 1000::numeric), ('memory', 1073741824), ('nvidia.com/gpu', 8), ('pods', 1), ('jobs', 1))
     AS r(resource, weight)
"""
_RATES: Final = """
INSERT INTO usage_rates (job_uid, day, resource, use, group_id, amount, behind)
SELECT gen_random_uuid(), current_date - (number % 3), resource, 'useful',
       1 + number % (SELECT count(*) FROM usage_groups WHERE kind <> ''), weight, weight * 1000::numeric
FROM generate_series(1, $1) AS number,
     (VALUES ('cpu', 8000::numeric), ('memory', 68719476736), ('nvidia.com/gpu', 8), ('pods', 1)) AS r(resource, weight)
"""
_REQUESTS: Final = {
    "one sum": "",
    "by namespace": "by=namespace",
    "by namespace and user": "by=namespace,user",
    "by label": "by=label:project",
    "by day": "by=day",
    "by kind and day": "by=kind,day",
    "by label and day": "by=label:project,day",
    "by day and user": "by=day,user",
    "by kind": "by=kind",
    "one kind by user": "by=user&kind=GenericJob",
    "one team by user and day": "by=user,day&namespace=team-7",
    "the largest page by label and day": "by=label:project,day&pageSize=500",
    "all users as CSV": "by=namespace,user&format=csv",
}


async def run(arguments: argparse.Namespace) -> None:
    today = SystemClock().now().date()
    first = today.replace(year=today.year - 1).isoformat()
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        async with EmbeddedPostgres(Path(directory) / "postgres") as postgres:
            url = await new_database(postgres, "usage")
            sums, rates = await _fill(url, arguments)
            print(f"{sums} sums of {arguments.days} days, {rates} rates of {arguments.live} live jobs")
            token = await new_token(url)
            async with gateway(url, Path(directory), postgres, role="api", token=token) as target:
                connection = await Connection(target).open()
                rows = [
                    (
                        name,
                        *await _measure(target, connection, f"/api/v1/usage?{query}&from={first}", arguments.requests),
                    )
                    for name, query in _REQUESTS.items()
                ]
    print("\n".join(table(("a year of usage", "CPU ms", "p50 ms", "p99 ms", f"goal of {GOAL * 1e3:.0f} ms"), rows)))


async def _fill(url: str, arguments: argparse.Namespace) -> tuple[int, int]:
    connection: Any = await asyncpg.connect(url, timeout=30)
    try:
        await connection.execute(_GROUPS, arguments.teams, arguments.users, timeout=60)
        await connection.execute(_SUMS, arguments.days, timeout=600)
        await connection.execute(_RATES, arguments.live, timeout=600)
        await connection.execute("VACUUM ANALYZE", timeout=600)
        counts = [await connection.fetchval(f"SELECT count(*) FROM {name}") for name in ("usage_days", "usage_rates")]
    finally:
        await connection.close(timeout=10)
    return counts[0], counts[1]


async def _measure(target: Target, connection: Connection, address: str, count: int) -> tuple[str, ...]:
    times, cpu = [], -sum(map(cpu_seconds, target.pids.values()))
    for _ in range(count):
        began = time.perf_counter()
        status, _, body = await connection.ask("GET", address)
        times.append(time.perf_counter() - began)
        if status != 200:
            raise MeasurementFailed(f"{address} was answered {status}: {body[:300]!r}")
    cpu += sum(map(cpu_seconds, target.pids.values()))
    met = "met" if cpu / count <= GOAL else "missed"
    return f"{cpu / count * 1e3:.0f}", f"{median(times) * 1e3:.0f}", f"{percentile(times, percent=99) * 1e3:.0f}", met


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench usage", description=__doc__)
    parser.add_argument("--teams", type=int, default=30, help="namespaces (30)")
    parser.add_argument("--users", type=int, default=5, help="users of each namespace (5)")
    parser.add_argument("--days", type=int, default=90, help="days with jobs; 2 000 of each team (90)")
    parser.add_argument("--live", type=int, default=5_000, help="live jobs (5000)")
    parser.add_argument("--requests", type=int, default=20, help="requests of each kind (20)")
    asyncio.run(run(parser.parse_args(arguments)))
