"""`python -m bench follow`: what followers cost a gateway and another client, before and after a change of the program.

A client polls the status of one job while followers wait for changes of the newest jobs: thousands of streams, hundreds
of filtered long polls over 100 000 jobs, and with `--lists` and `--objects` many equal long polls of one list or of
single jobs. `--against` names another checkout of the repository to compare with.
"""

import argparse
import asyncio
import itertools
import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvloop
from typing_extensions import override

from app.db.feed import entries
from app.db.postgres.engine import Database
from app.embedded_postgres.server import EmbeddedPostgres
from bench.changes.checkouts import HERE, NAMESPACE, Connection, Side, run_gateway, sides_of
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.processes import cpu_seconds
from bench.memory import peak_mib

# The first read of a filtered list scans all jobs. More of them at once would only wait for each other.
_FIRST_READS = asyncio.Semaphore(4)
_EVENT = re.compile(rb"^id: ([^\n]+)\nevent: job$", re.MULTILINE)
PAUSE = 0.01  # seconds between two polls of the measured client
# The jobs that change: the newest ones, which the first page of a list shows.
_CHANGED = 9
_PAGE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Latencies of the client in seconds, CPU seconds of the gateway, and the number of answers to all followers.

    `spreads` are the seconds from the first to the last follower that received a change, for each change that all have
    received, and `peak` is the gateway's memory in MiB.
    """

    latencies: Sequence[float]
    seconds: float
    cpu: float
    told: int
    failures: int
    spreads: Sequence[float]
    peak: float

    def row(self) -> str:
        p50, p99, longest = (1000 * _share(self.latencies, share) for share in (0.5, 0.99, 1.0))
        each = f"{self.cpu / self.told * 1e6:.0f}" if self.told else "-"
        middle, last = (f"{1000 * _share(self.spreads, share):.0f}" for share in (0.5, 1.0))
        shown = f"{p50:.1f} | {p99:.1f} | {longest:.0f} | {self.cpu / self.seconds:.2f} | {self.told} | {each}"
        return f"{shown} | {self.failures} | {middle} | {last} | {len(self.spreads)} | {self.peak:.0f}"


def _share(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 if there is none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


class Arrivals:
    """When each change reached the first and the last of the followers that have received it."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float, float]] = {}

    def note(self, change: str) -> None:
        at = time.monotonic()
        count, first, _ = self._seen.get(change, (0, at, at))
        self._seen[change] = (count + 1, first, at)

    def spreads(self, followers: int) -> list[float]:
        """Return the seconds between the first and the last arrival of each change that all followers have received."""
        return [last - first for count, first, last in self._seen.values() if count == followers]


@lru_cache(1000)
def _events(piece: bytes) -> tuple[str, ...]:
    # All streams receive the same bytes, so each piece is parsed once.
    return tuple(found.decode() for found in _EVENT.findall(piece))


class Stream(asyncio.Protocol):
    """A stream that takes little of the CPU time which the gateway has, unlike a client with readers and tasks."""

    def __init__(self, target: Target, counts: dict[str, int], arrivals: Arrivals) -> None:
        self._target = target
        self._counts = counts
        self._arrivals = arrivals

    @override
    def connection_made(self, transport: asyncio.WriteTransport) -> None:  # type: ignore[override]
        transport.write(self._target.request("GET", "/api/v1/jobs/watch"))

    @override
    def data_received(self, data: bytes) -> None:
        self._counts["ready"] += b"event: ready" in data
        for event in _events(data):
            self._counts["told"] += 1
            self._arrivals.note(event)


async def stream(target: Target, counts: dict[str, int], arrivals: Arrivals) -> None:
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: Stream(target, counts, arrivals), "127.0.0.1", target.port
    )
    try:
        await asyncio.Event().wait()
    finally:
        transport.close()  # uvloop closes a transport to which nothing refers


def polled_path(kind: str, number: int) -> str:
    """Return the path of a long poll: a list with a filter of its own, the list of all polls, or a job's status."""
    selector = quote(f"team=t{number % 20}", safe="")
    return {
        "polls": f"/api/v1/jobs?labelSelector={selector}&search=-{number}&phase=Running&pageSize=50",
        "lists": f"/api/v1/jobs?pageSize={_PAGE}",
        "objects": f"/api/v1/namespaces/{NAMESPACE}/jobs/job-{number % _CHANGED + 1}/status",
    }[kind]


async def poll(target: Target, path: str, counts: dict[str, int], arrivals: Arrivals) -> None:
    tag = ""
    async with _FIRST_READS:
        connection = await Connection(target).open()
        while not tag:
            _, headers, _ = await connection.ask("GET", path)
            tag = headers.get("etag", "")
    counts["ready"] += 1
    while True:
        status, headers, _ = await connection.ask("GET", path, b"", **{"If-None-Match": tag, "Prefer": "wait=60"})
        tag = headers.get("etag", tag)
        if status == 200:
            counts["told"] += 1
            arrivals.note(tag)


async def follow(arguments: argparse.Namespace) -> None:
    """Run followers in this process: print `ready` when all wait, and their counts when standard input ends."""
    _, kind, count, port, token = arguments.child
    target = Target(name="jobgate", port=int(port), tls=False, token=token, pids={})
    counts = {"ready": 0, "told": 0}
    arrivals = Arrivals()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(int(count)):
            path = "" if kind == "streams" else polled_path(kind, number)
            following = poll(target, path, counts, arrivals) if path else stream(target, counts, arrivals)
            tasks.append(group.create_task(following))
            # Connections are opened slowly enough for the server's backlog.
            await asyncio.sleep(0.002)
        while counts["ready"] < int(count):  # noqa: ASYNC110 - counted by many tasks
            await asyncio.sleep(0.05)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        # A single job is followed by a share of the polls.
        of_one = int(count) // (_CHANGED if kind == "objects" else 1)
        print(json.dumps({**counts, "spreads": arrivals.spreads(of_one)}), flush=True)
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def followers(target: Target, kind: str, count: int) -> AsyncIterator[dict[str, Any]]:
    """Run followers during the block. The counts are complete after the block."""
    counts: dict[str, Any] = {"told": 0, "spreads": []}
    if not count:
        yield counts
        return
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "bench.changes.follow",
            "--child",
            "x",
            kind,
            str(count),
            str(target.port),
            target.token,
        ),
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


async def change(db: Database, side: Side, interval: float, stop: asyncio.Event) -> None:
    """Change one job after another, as the controller writes them."""
    for uid in itertools.cycle(side.uids[:_CHANGED]):
        if stop.is_set():
            return
        async with db.begin() as connection:
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
            async with asyncio.timeout(interval):
                await stop.wait()
        except TimeoutError:
            continue


async def measure(side: Side, kind: str, count: int, seconds: float, interval: float) -> Result:
    latencies: list[float] = []
    failures = 0
    target = side.target
    db = await Database.open(side.url, pool_size=2)
    try:
        async with followers(target, kind, count) as counts, asyncio.TaskGroup() as group:
            connection = await Connection(target).open()
            stop = asyncio.Event()
            group.create_task(change(db, side, interval, stop))
            began, cpu = time.monotonic(), cpu_seconds(target.pids["jobgate"])
            while time.monotonic() < began + seconds:
                asked = time.monotonic()
                status, _, _ = await connection.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/jobs/first/status")
                latencies.append(time.monotonic() - asked)
                failures += status != 200  # 503 if no database connection is free
                await asyncio.sleep(PAUSE)
            cpu = cpu_seconds(target.pids["jobgate"]) - cpu
            took = time.monotonic() - began
            stop.set()
        connection.writer.close()
        return Result(
            latencies=latencies,
            seconds=took,
            cpu=cpu,
            told=counts["told"],
            failures=failures,
            spreads=counts["spreads"],
            peak=peak_mib(target.pids["jobgate"]),
        )
    finally:
        await db.close()


async def run(arguments: argparse.Namespace) -> None:
    sides = sides_of(arguments.against)
    counts = {kind: getattr(arguments, kind) for kind in ("streams", "polls", "lists", "objects")}
    states = [("streams", 0), *((kind, count) for kind, count in counts.items() if count)]
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            for side in sides:
                await stack.enter_async_context(run_gateway(side, folder, postgres, jobs=arguments.jobs))
            print(
                "| followers | side | p50 ms | p99 ms | longest ms | CPU of the gateway | told | CPU us of each "
                "| failed | all told ms, median | longest | changes told to all | MiB |\n" + "|---" * 13 + "|"
            )
            for kind, count in states * arguments.rounds:
                for side in sides:
                    result = await measure(side, kind, count, arguments.seconds, arguments.interval)
                    print(f"| {count} {kind} | {side.name} | {result.row()} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench follow", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--polls", type=int, default=200, help="filtered long polls, each with a different filter")
    parser.add_argument("--lists", type=int, default=0, help="long polls of one list, whose jobs change")
    parser.add_argument("--objects", type=int, default=0, help="long polls of the statuses of the jobs that change")
    parser.add_argument("--jobs", type=int, default=100_000, help="stored jobs")
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each measurement")
    parser.add_argument("--rounds", type=int, default=1, help="how often each measurement is made, in alternation")
    parser.add_argument("--interval", type=float, default=0.5, help="seconds between two changes")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(follow(parsed) if parsed.child else run(parsed))


if __name__ == "__main__":
    main(sys.argv[1:])
