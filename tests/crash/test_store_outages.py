"""The log store is frozen, or full, for seconds, and for ten minutes with `-m slow`: jobs run and end meanwhile.

                 outage begins ─────────────────────────────── ends
    through:  prints ──────────────────────────────────────────────── prints, ends
    within:   prints ───────────────────────────── ends │
    short:                    one after the other       │
                                                        └─▶ the archive has each line once and in order

Two processes keep logs. The memory that is measured is that of the one which has no other role.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final
from uuid import UUID

import httpx2
import pytest

from app.db import kept_logs
from app.db.log_keepers import live
from app.db.postgres.engine import Database
from app.domain.kept_logs.records import GapReason, KeptLog, KeptLogState
from app.domain.plan import Rank
from app.log_store import LogStore, open_store
from bench.memory import peak_mib
from tests.crash.stories import Client, generic_job, task
from tests.crash.test_whole_logs import text_of, two_keepers
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.machine.object_server import Fault, ObjectServer, object_server
from tests.support.waiting import until

pytestmark = [pytest.mark.crash]

FAULTS: Final[Sequence[Fault]] = ("frozen", "full")
PATIENCE: Final = 240.0
REPLICAS: Final = 4  # of each of the two jobs that print all the time
SHORT_JOBS: Final = 6
MOST_MIB: Final = 64.0  # by which the memory may grow: the text that may wait in a process is as much
LINE: Final = 100  # bytes
# Prints a hundred lines of numbers each second until a file exists, then how many there were, and ends.
PROGRAM: Final = f"""
import os, sys, time
number = 0
while not os.path.exists(sys.argv[1]):
    for number in range(number, number + 100):
        print(str(number).ljust({LINE - 1}, "x"))
    number += 1
    sys.stdout.flush()
    time.sleep(1)
print("printed", number)
"""


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(10.0, marks=pytest.mark.timeout(900)),
        pytest.param(600.0, marks=[pytest.mark.timeout(3600), pytest.mark.slow]),
    ],
)
@pytest.mark.parametrize("fault", FAULTS)
async def test_jobs_go_on_and_their_logs_are_written_later(
    *,
    fault: Fault,
    seconds: float,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prove: Callable[[str], None],
) -> None:
    async with drill(busy_cluster, crash_api, crash_namespace, database_url, tmp_path, monkeypatch) as begun:
        prove(f"log store, {fault}: {await begun.survive(fault, seconds)}")


@dataclass(slots=True, kw_only=True)
class Drill:
    """An installation whose log store can fail, and a client of it. `pid` is the process that only keeps logs."""

    client: Client
    server: ObjectServer
    db: Database
    store: LogStore
    pid: int
    marks: Path

    async def survive(self, fault: Fault, seconds: float) -> str:
        """Let the store fail for this time. Return what was measured, after checking the archive."""
        jobs = {name: await self.prints(name) for name in ("through", "within")}
        logs = [(uid, rank) for uid in jobs.values() for rank in range(REPLICAS)]
        await until(lambda: self.kept(logs), all, what="the logs are followed", within=PATIENCE)
        before = self.reset_memory()
        with self.server.failing(fault):
            begun = monotonic()
            await until(lambda: live(self.db), _one_fails, what="a process notices", within=PATIENCE)
            for number in range(SHORT_JOBS):
                await reached(begun + seconds * number / SHORT_JOBS)
                await self.short(f"short-{number}")
            (self.marks / "within").touch()
            await self.client.until("within", "Succeeded")
            await reached(begun + seconds)
            lasted = monotonic() - begun
            assert _one_fails(await live(self.db)), "the store failed all the time"
        thawed = monotonic()
        (self.marks / "through").touch()
        await self.client.until("through", "Succeeded")
        lines = sum([await self.check(uid, rank) for uid, rank in logs])
        took = monotonic() - thawed
        gaps = await self.check_restarts()
        grown = peak_mib(self.pid) - before
        assert grown < MOST_MIB
        return (
            f"{lasted:.0f} s, jobs {SHORT_JOBS + len(jobs)}, logs {len(logs)}, lines {lines}, lost 0, twice 0, "
            f"gaps of pods that were gone {gaps}, written within {took:.0f} s, memory +{grown:.0f} MiB"
        )

    async def prints(self, name: str) -> UUID:
        script = f"exec {sys.executable} -c '{PROGRAM}' {self.marks / name}"
        return UUID((await self.client.submit(generic_job(name, task("worker", script, replicas=REPLICAS))))["uid"])

    async def short(self, name: str) -> None:
        """Run a job whose first attempt fails. The pod of that attempt is replaced, and so its log is lost."""
        mark = self.marks / name
        script = f"echo {name}; test -e {mark} && exit 0; touch {mark}; exit 1"
        await self.client.submit(generic_job(name, task("worker", script, policy="OnFailure", limit=2)))
        await self.client.until(name, "Succeeded")

    async def kept(self, logs: Sequence[tuple[UUID, int]]) -> list[bool]:
        """Return whether each log has text."""
        found = [await kept_logs.of_attempt(self.db, uid, Rank("worker", rank), 1) for uid, rank in logs]
        return [bool(each) and each[0].text_bytes > 0 for each in found]

    async def check(self, uid: UUID, rank: int) -> int:
        """Require that a log has each line once and in order, and return how many it has."""
        log = await self.final(uid, rank, 1)
        assert log.state is KeptLogState.COMPLETE
        *lines, last = (await text_of(self.db, self.store, log)).decode().splitlines()
        assert [int(line.rstrip("x")) for line in lines] == list(range(len(lines)))
        assert last == f"printed {len(lines)}"
        return len(lines)

    async def check_restarts(self) -> int:
        """Require that short jobs have the logs of pods that remain, and gaps for others. Return how many gaps."""
        gaps = 0
        for number in range(SHORT_JOBS):
            uid = UUID((await self.client.http.get(self.client.path(f"short-{number}"))).json()["uid"])
            log = await self.final(uid, 0, 2)
            assert await text_of(self.db, self.store, log) == f"short-{number}\n".encode()
            for first in await kept_logs.of_attempt(self.db, uid, Rank("worker", 0), 1):
                [row] = await kept_logs.chunks_in_bytes(self.db, first.key)
                assert row.gap is GapReason.POD_GONE
                gaps += 1
        return gaps

    async def final(self, uid: UUID, rank: int, attempt: int) -> KeptLog:
        [log] = await until(
            lambda: kept_logs.of_attempt(self.db, uid, Rank("worker", rank), attempt),
            lambda found: found and found[0].is_final,
            what="the log is final",
            within=PATIENCE,
        )
        return log

    def reset_memory(self) -> float:
        """Begin to measure the peak of the memory. Return it in MiB."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return peak_mib(self.pid)


async def reached(at: float) -> None:
    """Wait until the monotonic clock shows this time."""
    await until(lambda: monotonic() >= at, within=max(0.0, at - monotonic()) + PATIENCE)


def _one_fails(keepers: Sequence[Any]) -> bool:
    """Return whether one notices the failure. The other one may have no log to keep."""
    return len(keepers) > 1 and any(keeper.store_error for keeper in keepers)


@asynccontextmanager
async def drill(
    cluster: Cluster,
    api: KubeClient,
    namespace: str,
    database_url: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Drill]:
    marks = directory / "marks"
    marks.mkdir()
    async with object_server() as server:
        settings: Mapping[str, str] = {"JOBGATE_LOG_STORE": server.url, "JOBGATE_LOG_DEADLINE": "3"}
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        async with (
            two_keepers(cluster, database_url, directory, **settings) as processes,
            httpx2.AsyncClient(base_url=processes["all"].url, timeout=60) as http,
        ):
            db = await Database.open(database_url, pool_size=1)
            try:
                yield Drill(
                    client=Client(http=http, api=api, namespace=namespace),
                    server=server,
                    db=db,
                    store=open_store(server.url),
                    pid=processes["logs"].pid,
                    marks=marks,
                )
            finally:
                await db.close()
