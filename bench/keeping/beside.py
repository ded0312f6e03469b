"""Measures polls and submissions at a constant rate, alone and beside other work, in short rounds that alternate."""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, Protocol

from app.base.clock import InstallationClock
from app.db.postgres.engine import Database
from app.domain.retention import KEEPING
from app.loops.maintenance.sweeper import Sweeper
from bench.comparison import throughput
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
_ALONE: Final = "alone"
_MODES: Final = ("60000 a day", "full speed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Requests of one sort."""

    client: LoadClient
    requests: list[bytes]
    rate: float
    expect: int


class OtherWork(Protocol):
    """Work that runs beside requests, in one of some modes."""

    @property
    def modes(self) -> Sequence[str]:
        """The names of the modes."""
        ...

    def run(self, mode: str) -> AbstractAsyncContextManager[None]:
        """Run the work beside the block."""
        ...

    async def suffices(self) -> bool:
        """Return whether there is enough work for another round."""
        ...


class Backlog:
    """The jobs that ended long ago, and expire as fast as wanted, by clocks of its own.

    In the mode 60000 a day, the sweeper deletes `rate` jobs per second.
    """

    modes = _MODES

    def __init__(self, db: Database, connection: Any, rate: float) -> None:
        self._db = db
        self._connection = connection
        self._rate = rate
        self._left: int | None = None
        self._most = 0  # jobs that a round has deleted
        self._due = 0.0
        self._deleted = dict.fromkeys(_MODES, 0)
        self._seconds = dict.fromkeys(_MODES, 0.0)
        self._clock = InstallationClock()
        self._everything = InstallationClock()

    async def count_left(self) -> int:
        found: int = await self._connection.fetchval(
            "SELECT count(*) FROM jobs WHERE finished_at < now() - $1::float * interval '1 day'",
            BACKLOG_DAYS - 1.5,
            timeout=600,
        )
        return found

    async def suffices(self) -> bool:
        """Return whether a round cannot delete all that is left: its sweeper would have nothing to do."""
        if self._left is None:
            self._left = await self.count_left()
        return self._left > 2 * self._most

    @asynccontextmanager
    async def run(self, mode: str) -> AsyncIterator[None]:
        """Run the sweeper beside the block, and count what it deletes."""
        before, began = await self.count_left(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            sweep = self._slowly() if mode == _MODES[0] else Sweeper(self._db, self._everything, KEEPING).sweep()
            task = group.create_task(sweep)
            yield
            task.cancel()
        self._seconds[mode] += time.monotonic() - began
        self._left = await self.count_left()
        self._deleted[mode] += before - self._left
        self._most = max(self._most, before - self._left)
        if not self._left:
            raise MeasurementFailed("everything was deleted before the end: use a larger --backlog")

    def report(self) -> list[str]:
        """Return a line for each mode."""
        return [
            f"{mode}: {count} jobs deleted in {seconds:.0f} s, {count / max(seconds, 1):.1f}/s"
            for (mode, count), seconds in zip(self._deleted.items(), self._seconds.values(), strict=True)
        ]

    async def _slowly(self) -> None:
        sweeper = Sweeper(self._db, self._clock, KEEPING)
        while True:
            self._due += self._rate * _SWEEP_SECONDS
            number = int(self._due)
            self._due -= number
            kept_from = await self._connection.fetchval(_KEPT_FROM, number)
            self._clock.shift((kept_from + _KEPT - self._clock.now()).total_seconds())
            await sweeper.sweep()
            await asyncio.sleep(_SWEEP_SECONDS)


async def works(target: Target, folder: Path, arguments: argparse.Namespace) -> dict[str, Work]:
    polls, _ = await throughput.poll_requests(target)
    submission, _ = throughput.submissions(target, None)
    found = {}
    for name, requests, rate, expect in (
        ("poll", polls, arguments.polls, 200),
        ("submission", [submission], arguments.submissions, 201),
    ):
        (folder / name).mkdir()
        client = LoadClient.compile(folder / name)  # with files of its own: both run at the same time
        found[name] = Work(client=client, requests=requests, rate=rate, expect=expect)
    return found


async def _latencies(work: Work, target: Target, seconds: float) -> list[float]:
    sent = list(islice(cycle(work.requests), round(work.rate * seconds)))
    _, times = await work.client.paced(target, sent, clients=_CLIENTS, rate=work.rate, expect=work.expect)
    return [end - begin for begin, end in times]


async def measure(
    target: Target, found: Mapping[str, Work], other: OtherWork, arguments: argparse.Namespace, *, until: float
) -> list[str]:
    """Measure all requests at once, alone and in each mode in turn. No round begins after `until`, a monotonic time."""
    order, random, rounds = [_ALONE, *other.modes], Random(1), 0
    times: dict[tuple[str, str], list[list[float]]] = {(name, mode): [] for name in found for mode in order}
    while rounds < arguments.rounds and await other.suffices() and (rounds < _LEAST_ROUNDS or time.monotonic() < until):
        rounds += 1
        random.shuffle(order)
        for mode in order:
            async with nullcontext() if mode == _ALONE else other.run(mode):
                results = await asyncio.gather(
                    *(_latencies(work, target, arguments.seconds) for work in found.values())
                )
            for name, result in zip(found, results, strict=True):
                times[name, mode].append(result)
    rows = []
    for name, work in found.items():
        alone = [percentile(result, 99) for result in times[name, _ALONE]]
        for mode in (_ALONE, *other.modes):
            p50 = median(median(result) for result in times[name, mode])
            tails = [percentile(result, 99) for result in times[name, mode]]
            ratio = ratio_of_medians(tails, alone)
            rows.append(
                (
                    f"{name}, {work.rate:g}/s",
                    mode,
                    f"{p50 * 1e3:.2f}",
                    f"{median(tails) * 1e3:.2f}",
                    "" if mode == _ALONE else str(ratio),
                    "" if mode == _ALONE else ("reached" if ratio.value <= GOAL else "missed"),
                )
            )
    return [
        *table(("request", "beside", "p50 ms", "p99 ms", "ratio of p99", f"goal {GOAL}"), rows),
        f"{rounds} rounds of {arguments.seconds:g} s each; a ratio comes with an interval, by resampling",
    ]
