"""`python -m bench stored`: submissions, polls and lists beside few and beside many stored jobs.

Two gateways in the role `api`, each with its own database on one PostgreSQL server, answer the same requests in turn.
The goal is that no figure of the large database is more than 20 % above that of the small one, and that a page of a
list takes at most 50 ms.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import asyncpg

from app.embedded_postgres.server import EmbeddedPostgres
from bench.changes.checkouts import HERE, Connection, Side, run_gateway
from bench.comparison import throughput
from bench.comparison.throughput import in_turn
from bench.measuring.client import LoadClient, Measured, MeasurementFailed
from bench.measuring.report import percentile, table
from bench.memory import peak_mib

_LISTS: Final = {
    "first page": "",
    "namespace": "namespace=bench",
    "absent namespace": "namespace=absent",
    "phase": "phase=Succeeded",
    "phase of live jobs": "phase=Running",
    "absent terminal phase": "phase=Failed",
    "absent live phase": "phase=Pending",
    "kind": "kind=GenericJob",
    "absent kind": "kind=MxJob",
    "kind and absent phase": "kind=GenericJob&phase=TimedOut",
    "label of 1 in 20": "labelSelector=team%3Dt3",
    "label of 1 in 1000": "labelSelector=user%3Du3",
    "absent label": "labelSelector=team%3Dnone",
    "absent key of a label": "labelSelector=nobody",
    "label and absent phase": "labelSelector=team%3Dt3&phase=Failed",
    "no label": "labelSelector=%21team",
    "name": "name=job-17",
    "absent name": "name=none",
    "prefix of 1 in 10": "prefix=job-1",
    "absent prefix": "prefix=none",
    "search": "search=b-7",
    "absent search": "search=none",
    "the oldest": "createdBefore={oldest}",
    "ended last": "finishedAfter={newest}",
    "ended first": "finishedBefore={oldest}",
    "deleted ones, too": "deleted=true",
}
_HEAD: Final = ("list", "few p50 ms", "p99 ms", "many p50 ms", "p99 ms", "ratio of p50")
_SIZES: Final = """
SELECT c.relname, pg_relation_size(c.oid) AS bytes, pg_size_pretty(pg_relation_size(c.oid)) AS size
FROM pg_class AS c JOIN pg_stat_user_tables AS t ON c.oid = t.relid OR c.oid = ANY(
    SELECT indexrelid FROM pg_index WHERE indrelid = t.relid)
WHERE t.relname = 'jobs' ORDER BY bytes DESC
"""
_MICROSECONDS: Final = 1e6


async def _times(connections: Sequence[Connection], path: Sequence[str], count: int) -> list[list[float]]:
    """Ask each side in turn, `count` times; return the seconds of the answers for each side."""
    found: list[list[float]] = [[] for _ in connections]
    for turn in range(count):
        for index, connection in enumerate(connections):
            # Another size each time, so that no answer is shared with the one before.
            address = f"/api/v1/jobs?view=summary&pageSize={100 + turn}&{path[index]}"
            began = time.perf_counter()
            status, _, body = await connection.ask("GET", address)
            found[index].append(time.perf_counter() - began)
            if status != 200:
                raise MeasurementFailed(f"{address} was answered {status}: {body[:300]!r}")
    return found


async def lists(sides: Sequence[Side], count: int) -> list[str]:
    """Return the table of all lists."""
    connections = [await Connection(side.target).open() for side in sides]
    bounds = [await _bounds(side) for side in sides]
    rows = []
    for name, query in _LISTS.items():
        paths = [query.format(**bound) for bound in bounds]
        await _times(connections, paths, 3)
        few, many = await _times(connections, paths, count)
        figures = [
            f"{at(times) * 1e3:.1f}" for times in (few, many) for at in (median, partial(percentile, percent=99))
        ]
        rows.append((name, *figures, f"{median(many) / median(few):.2f}"))
    return table(_HEAD, rows)


async def _bounds(side: Side) -> dict[str, str]:
    """Return the times for filters that few jobs match: 50 s after the oldest creation and before the newest end."""
    connection: Any = await asyncpg.connect(side.url, timeout=30)
    row = await connection.fetchrow(
        "SELECT min(created_at) + interval '50 seconds' AS oldest, max(finished_at) - interval '50 seconds' AS newest "
        "FROM jobs"
    )
    await connection.close()
    return {name: row[name].isoformat().replace("+00:00", "Z") for name in ("oldest", "newest")}


def _operations(name: str, few: Sequence[Measured], many: Sequence[Measured]) -> tuple[str, ...]:
    def least(runs: Sequence[Measured]) -> float:
        return min(run.cpu_per_operation for run in runs)

    return (
        name,
        *(f"{max(run.rate for run in runs):.0f}" for runs in (few, many)),
        *(f"{least(runs) * _MICROSECONDS:.0f}" for runs in (few, many)),
        *(f"{min(run.p50 for run in runs) * 1e3:.1f}" for runs in (few, many)),
        f"{least(many) / least(few):.2f}",
        str(sum(run.failures for run in (*few, *many))),
    )


async def operations(sides: Sequence[Side], client: LoadClient, rounds: int, seconds: float) -> list[str]:
    """Return the table of submissions and polls."""
    measure = partial(client.run, clients=16, seconds=seconds)
    polls = []
    for side in sides:
        await throughput.prepare_poll(side.target, None)
        polls.append(await throughput.poll_requests(side.target))
    rows = []
    for name, index, expected in (("poll, 200", 0, 200), ("poll, 304", 1, 304)):
        runs = [
            partial(measure, side.target, asked[index], expect=expected)
            for side, asked in zip(sides, polls, strict=True)
        ]
        rows.append(_operations(name, *await in_turn(rounds, runs)))
    submits = [
        partial(measure, side.target, [throughput.submissions(side.target, None)[0]], expect=201) for side in sides
    ]
    rows.append(_operations("submit", *await in_turn(rounds, submits)))
    head = ("operation", "few/s", "many/s", "few us", "many us", "few p50 ms", "many p50 ms", "ratio of CPU", "failed")
    return table(head, rows)


async def _sizes(side: Side) -> list[str]:
    connection: Any = await asyncpg.connect(side.url, timeout=30)
    rows = await connection.fetch(_SIZES)
    count = await connection.fetchval("SELECT count(*) FROM jobs", timeout=120)
    await connection.close()
    return table(
        ("table or index", "size", "bytes per job"),
        [(row["relname"], row["size"], f"{row['bytes'] / count:.0f}") for row in rows],
    )


async def run(arguments: argparse.Namespace) -> None:
    sides = [Side(name="few", checkout=HERE), Side(name="many", checkout=HERE)]
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        client = LoadClient.compile(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            for side, jobs in zip(sides, (arguments.few, arguments.jobs), strict=True):
                began = time.monotonic()
                await stack.enter_async_context(run_gateway(side, folder, postgres, jobs=jobs))
                print(f"{side.name}: {jobs} jobs, stored in {time.monotonic() - began:.0f} s", flush=True)
            print("\n".join(["", *await operations(sides, client, arguments.rounds, arguments.seconds)]), flush=True)
            print("\n".join(["", *await lists(sides, arguments.requests)]), flush=True)
            print("\n".join(["", *await _sizes(sides[1])]))
            for side in sides:
                print(f"{side.name}: the gateway's peak memory is {peak_mib(side.target.pids['jobgate']):.0f} MiB")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench stored", description=__doc__)
    parser.add_argument("--few", type=int, default=1_000, help="jobs in the small database (1000)")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="jobs in the large database (1000000)")
    parser.add_argument("--requests", type=int, default=100, help="requests for each list (100)")
    parser.add_argument("--rounds", type=int, default=4, help="measurements of each operation (4)")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each measurement (3)")
    asyncio.run(run(parser.parse_args(arguments)))
