"""Measures polls and submissions at a constant rate, alone and beside the sweeper, in short rounds that alternate."""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

from app.base.clock import InstallationClock
from app.db.postgres.engine import Database
from app.domain.retention import KEEPING
from app.loops.maintenance.sweeper import Sweeper
from bench import throughput
from bench.keeping.ratios import ratio_of_medians
from bench.measuring.client import LoadClient, MeasurementFailed, Target
from bench.measuring.report import percentile, table

GOAL: Final = 1.2
DAY_SECONDS: Final = 86_400.0
_CLIENTS: Final = 8
BACKLOG_DAYS: Final = 1_000  # the age of what is deleted while requests are measured
# The end of the job before which so many have ended.
_KEPT_FROM: Final = (
    "SELECT finished_at FROM jobs WHERE finished_at IS NOT NULL ORDER BY finished_at OFFSET $1::bigint LIMIT 1"
)
_KEPT: Final = timedelta(days=90)
_LEAST_ROUNDS: Final = 3
_SWEEP_SECONDS: Final = 3.0  # between two sweeps; the controller sweeps each minute, and more jobs at a time
_MODES: Final = ("alone", "60000 a day", "full speed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Requests of one sort."""

    client: LoadClient
    requests: list[bytes]
    rate: float
    expect: int


class Backlog:
    """The jobs that ended long ago, and expire as fast as wanted, by clocks of its own."""

    def __init__(self, db: Database, connection: Any) -> None:
        self._db = db
        self._connection = connection
        self._due = 0.0
        self._clock = InstallationClock()
        self._everything = InstallationClock()

    async def left(self) -> int:
        found: int = await self._connection.fetchval(
            "SELECT count(*) FROM jobs WHERE finished_at < now() - $1::float * interval '1 day'",
            BACKLOG_DAYS - 1.5,
            timeout=600,
        )
        return found

    @asynccontextmanager
    async def swept(self, mode: str, rate: float) -> AsyncIterator[None]:
        """Run the sweeper beside the block."""
        async with asyncio.TaskGroup() as group:
            sweep = {_MODES[1]: self._at(rate), _MODES[2]: Sweeper(self._db, self._everything, KEEPING).sweep()}
            tasks = [group.create_task(work) for name, work in sweep.items() if name == mode]
            for name, work in sweep.items():
                if name != mode:
                    work.close()
            yield
            for task in tasks:
                task.cancel()

    async def _at(self, rate: float) -> None:
        """Delete so many jobs per second."""
        sweeper = Sweeper(self._db, self._clock, KEEPING)
        while True:
            self._due += rate * _SWEEP_SECONDS
            number = int(self._due)
            self._due -= number
            kept_from = await self._connection.fetchval(_KEPT_FROM, number)
            self._clock.shift((kept_from + _KEPT - self._clock.now()).total_seconds())
            await sweeper.sweep()
            await asyncio.sleep(_SWEEP_SECONDS)


async def works(target: Target, place: Path, arguments: argparse.Namespace) -> dict[str, Work]:
    polls, _ = await throughput.poll_requests(target)
    submission, _ = throughput.submissions(target, None)
    found = {}
    for name, requests, rate, expect in (
        ("poll", polls, arguments.polls, 200),
        ("submission", [submission], arguments.submissions, 201),
    ):
        (place / name).mkdir()
        client = LoadClient.compile(place / name)  # with files of its own: both run at the same time
        found[name] = Work(client=client, requests=requests, rate=rate, expect=expect)
    return found


async def _latencies(work: Work, target: Target, seconds: float) -> list[float]:
    sent = list(islice(cycle(work.requests), round(work.rate * seconds)))
    _, times = await work.client.paced(target, sent, clients=_CLIENTS, rate=work.rate, expect=work.expect)
    return [end - begin for begin, end in times]


async def measure(
    target: Target, found: Mapping[str, Work], backlog: Backlog, arguments: argparse.Namespace, *, until: float
) -> list[str]:
    """Measure all works at once, in each mode in turn. No round begins after `until`, a monotonic time."""
    times: dict[tuple[str, str], list[list[float]]] = {(name, mode): [] for name in found for mode in _MODES}
    deleted = dict.fromkeys(_MODES, 0)
    left = await backlog.left()
    order, random = list(_MODES), Random(1)
    rounds, most = 0, 0
    # No round begins that could delete the whole backlog: its sweeper would have nothing to do.
    while rounds < arguments.rounds and left > 2 * most and (rounds < _LEAST_ROUNDS or time.monotonic() < until):
        rounds += 1
        random.shuffle(order)
        for mode in order:
            async with backlog.swept(mode, arguments.rate):
                results = await asyncio.gather(
                    *(_latencies(work, target, arguments.seconds) for work in found.values())
                )
            for name, result in zip(found, results, strict=True):
                times[name, mode].append(result)
            left, before = await backlog.left(), left
            deleted[mode] += before - left
            most = max(most, before - left)
    if not left:
        raise MeasurementFailed("everything was deleted before the end: use a larger --backlog")
    rows = []
    for name, work in found.items():
        tails = {mode: [percentile(result, 99) for result in times[name, mode]] for mode in _MODES}
        for mode in _MODES:
            p50 = median(median(result) for result in times[name, mode])
            ratio = ratio_of_medians(tails[mode], tails[_MODES[0]])
            rows.append(
                (
                    f"{name}, {work.rate:g}/s",
                    mode,
                    f"{p50 * 1e3:.2f}",
                    f"{median(tails[mode]) * 1e3:.2f}",
                    "" if mode == _MODES[0] else str(ratio),
                    "" if mode == _MODES[0] else ("reached" if ratio.value <= GOAL else "missed"),
                )
            )
    seconds = rounds * arguments.seconds
    return [
        *table(("request", "sweeper", "p50 ms", "p99 ms", "ratio of p99", f"goal {GOAL}"), rows),
        f"{rounds} rounds of {arguments.seconds:g} s with each sweeper; a ratio comes with an interval, by resampling",
        *(f"{mode}: {count} jobs deleted in {seconds:g} s, {count / seconds:.1f}/s" for mode, count in deleted.items()),
    ]
