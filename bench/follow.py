"""`python -m bench follow`: the effect of followers on another client, before and after a change of the program.

A client polls the status of one job while thousands of streams, or hundreds of filtered long polls over 100 000 jobs,
follow two changes per second. `--against` names another checkout of the repository to compare with.
"""

import argparse
import asyncio
import json
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from app.db.engine import Database
from app.db.feed import entries
from app.embedded_postgres.server import EmbeddedPostgres
from bench.checkouts import HERE, NAMESPACE, Connection, Side, compared, prepared
from bench.client import MeasurementFailed, Target
from bench.memory import peak_mib
from bench.processes import cpu_seconds

# The first read of a filtered list scans all jobs. More of them at once would only wait for each other.
_FIRST_READS = asyncio.Semaphore(4)
_EVENT = re.compile(rb"^id: ([^\n]+)\nevent: job$", re.MULTILINE)
PAUSE = 0.01  # seconds between two polls of the measured client


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Latencies of the client in seconds, CPU of the gateway in cores, and the number of events of all followers.

    `spread` is the longest time in seconds from the first to the last stream that received an event, and `peak` the
    gateway's memory in MiB.
    """

    latencies: Sequence[float]
    cpu: float
    told: int
    failures: int
    spread: float
    peak: float

    def row(self) -> str:
        ordered = sorted(self.latencies)
        p50, p99 = (ordered[int(len(ordered) * share)] * 1000 for share in (0.5, 0.99))
        shown = f"{p50:.1f} | {p99:.1f} | {ordered[-1] * 1000:.0f} | {self.cpu:.2f} | {self.told} | {self.failures}"
        return f"{shown} | {self.spread * 1000:.0f} | {self.peak:.0f}"


class Arrivals:
    """When each event reached the first and the last of the streams that have received it."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, float, float]] = {}

    def note(self, event: bytes) -> None:
        at = time.monotonic()
        count, first, _ = self._seen.get(event, (0, at, at))
        self._seen[event] = (count + 1, first, at)

    def spreads(self, streams: int) -> list[float]:
        """Return the seconds between the first and the last arrival of each event that all streams have received."""
        return sorted(last - first for count, first, last in self._seen.values() if count == streams)


async def stream(target: Target, counts: dict[str, int], arrivals: Arrivals) -> None:
    connection = await Connection(target).open()
    connection.writer.write(target.request("GET", "/api/v1/jobs/watch"))
    while piece := await connection.reader.read(65536):
        counts["ready"] += piece.count(b"event: ready")
        for event in _EVENT.findall(piece):
            counts["told"] += 1
            arrivals.note(event)


async def poll(target: Target, number: int, counts: dict[str, int]) -> None:
    """Long-poll a list whose filter no other poll has: a label, a part of the name, and a phase."""
    selector = quote(f"team=t{number % 20}", safe="")
    path = f"/api/v1/jobs?labelSelector={selector}&search=-{number}&phase=Running&pageSize=50"
    tag = ""
    async with _FIRST_READS:
        connection = await Connection(target).open()
        while not tag:
            _, headers, _ = await connection.ask("GET", path)
            tag = headers.get("etag", "")
    counts["ready"] += 1
    while True:
        status, headers, _ = await connection.ask("GET", path, b"", **{"If-None-Match": tag, "Prefer": "wait=60"})
        counts["told"] += status == 200
        tag = headers.get("etag", tag)


async def follow(arguments: argparse.Namespace) -> None:
    """Run followers in this process: print `ready` when all wait, and their counts when standard input ends."""
    _, kind, count, port, token = arguments.child
    target = Target(name="jobgate", port=int(port), tls=False, token=token, pids={})
    counts = {"ready": 0, "told": 0}
    arrivals = Arrivals()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(int(count)):
            following = stream(target, counts, arrivals) if kind == "streams" else poll(target, number, counts)
            tasks.append(group.create_task(following))
            # Connections are opened slowly enough for the server's backlog.
            await asyncio.sleep(0.002)
        while counts["ready"] < int(count):  # noqa: ASYNC110 - counted by many tasks
            await asyncio.sleep(0.05)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        spreads = arrivals.spreads(int(count))
        print(json.dumps({**counts, "spread": spreads[-1] if spreads else 0.0}), flush=True)
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def followers(target: Target, kind: str, count: int) -> AsyncIterator[dict[str, float]]:
    """Run followers during the block. The counts are complete after the block."""
    counts: dict[str, float] = {"told": 0}
    if not count:
        yield counts
        return
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.follow", "--child", "x", kind, str(count), str(target.port), target.token),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=HERE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(300):
            if await process.stdout.readline() != b"ready\n":
                raise MeasurementFailed(f"the {count} {kind} did not start")
        yield counts
        process.stdin.close()
        async with asyncio.timeout(60):
            counts |= json.loads(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def change(db: Database, side: Side, stop: asyncio.Event) -> None:
    """Change two jobs per second, as the controller writes them."""
    chance = random.Random(1)
    while not stop.is_set():
        async with db.begin() as connection:
            uid = chance.choice(side.uids)
            version = await connection.fetchval(
                "UPDATE jobs SET version = version + 1, message = $2 WHERE uid = $1 RETURNING version", uid, str(uid)
            )
            await connection.execute(
                "INSERT INTO job_events (at, type, namespace, job_uid, version) VALUES (now(), 'status', $1, $2, $3)",
                *(NAMESPACE, uid, version),
            )
        await entries.publish(db)
        # The notification follows the publication, so that it never wakes a reader too early.
        async with db.read() as connection:
            await connection.execute("SELECT pg_notify('jobgate_feed', '')")
        try:
            async with asyncio.timeout(0.5):
                await stop.wait()
        except TimeoutError:
            continue


async def measure(side: Side, kind: str, count: int, seconds: float) -> Result:
    latencies: list[float] = []
    failures = 0
    target = side.target
    db = await Database.open(side.url, pool_size=2)
    try:
        async with followers(target, kind, count) as counts, asyncio.TaskGroup() as group:
            connection = await Connection(target).open()
            stop = asyncio.Event()
            group.create_task(change(db, side, stop))
            began, cpu = time.monotonic(), cpu_seconds(target.pids["jobgate"])
            while time.monotonic() < began + seconds:
                asked = time.monotonic()
                status, _, _ = await connection.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/jobs/first/status")
                latencies.append(time.monotonic() - asked)
                failures += status != 200  # 503 if no database connection is free
                await asyncio.sleep(PAUSE)
            spent = (cpu_seconds(target.pids["jobgate"]) - cpu) / (time.monotonic() - began)
            stop.set()
        connection.writer.close()
        return Result(
            latencies=latencies,
            cpu=spent,
            told=int(counts["told"]),
            failures=failures,
            spread=counts.get("spread", 0.0),
            peak=peak_mib(target.pids["jobgate"]),
        )
    finally:
        await db.close()


async def run(arguments: argparse.Namespace) -> None:
    sides = compared(arguments.against)
    states = [("streams", 0), ("streams", arguments.streams), ("polls", arguments.polls)]
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(place / "postgres"))
            for side in sides:
                await stack.enter_async_context(prepared(side, place, postgres, jobs=arguments.jobs))
            print(
                "| followers | side | p50 ms | p99 ms | longest ms | CPU of the gateway | told | failed "
                "| all told ms | MiB |\n" + "|---" * 10 + "|"
            )
            for kind, count in states:
                for side in sides:
                    result = await measure(side, kind, count, arguments.seconds)
                    print(f"| {count} {kind} | {side.name} | {result.row()} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench follow", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--polls", type=int, default=200, help="filtered long polls, each with a different filter")
    parser.add_argument("--jobs", type=int, default=100_000, help="stored jobs")
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each measurement")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(follow(parsed) if parsed.child else run(parsed))


if __name__ == "__main__":
    main(sys.argv[1:])
