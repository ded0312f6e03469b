"""One run: start, load, kill, drain, and examine what is left."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import asyncpg

from app.embedded_postgres.server import EmbeddedPostgres
from app.loops.maintenance.sweeper import FEED_ROWS_KEPT
from bench.measuring.gateway import new_database, new_token
from bench.soak import tables
from bench.soak.attempts import differences, stored_rows, without_pod
from bench.soak.gateway import SoakGateway, Victim
from bench.soak.judgement import Inventory
from bench.soak.load import LoadFigures, SoakLoad, SoakRates, running_load
from bench.soak.processes import POSTGRESQL, Sample, of_gateway, of_trees
from bench.soak.tables import TableSize
from tests.crash.ledger import Ledger, objects_by_job
from tests.crash.pods import PodWatcher, pod_watcher
from tests.support.clusters.cluster import as_gateway
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.machine.ports import kept_port
from tests.support.verification import find_faults
from tests.support.waiting import until

_SAMPLE_SECONDS: Final = 2.0
_PATIENCE: Final = 280.0  # seconds until a submission is accepted after a kill
_SETTLED_SECONDS: Final = 900.0  # a controller that was slower than the load works off the rest
_SWEPT_SECONDS: Final = 900.0
_JOBS: Final = """
SELECT count(*) AS jobs, count(DISTINCT name) AS names, count(*) FILTER (WHERE gone_at IS NULL) AS remaining FROM jobs
"""
# The retention is a day, and a run is shorter: this is what the sweeper finds a day later.
_A_DAY_LATER: Final = """
UPDATE idempotency_keys SET created_at = created_at - interval '25 hours';
UPDATE job_events SET at = at - interval '25 hours';
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """The load, and its duration without the recovery from kills.

    A kill follows `kill_every` seconds after the recovery from the last one, and never if that is 0. The last third has
    no kills, so that processes grow old enough to show whether they grow.
    """

    rates: SoakRates
    seconds: float
    kill_every: float

    @property
    def kills(self) -> int:
        return int(self.seconds * 2 / 3 / self.kill_every) if self.kill_every else 0

    @property
    def seconds_after_kills(self) -> float:
        return self.seconds - self.kills * self.kill_every


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the gateway needs, and the directory and the load client of the run.

    `programs` are the roots of other process trees to sample, such as those of the cluster.
    """

    folder: Path
    load: Path
    postgres: EmbeddedPostgres
    cluster: Cluster
    programs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResult:
    load: LoadFigures
    kills: Mapping[Victim, int]
    samples: Sequence[Sample]
    inventory: Inventory
    middle: Mapping[str, TableSize]
    end: Mapping[str, TableSize]
    a_day_later: Mapping[str, TableSize]


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks that end with the block. An error is raised as it is, not in a group: the first one of several."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


class SoakRun:
    """The parts of a run while it lasts."""

    def __init__(self, plan: SoakPlan, around: Surroundings, gateway: SoakGateway, connection: Any) -> None:
        self._plan = plan
        self._around = around
        self._gateway = gateway
        self._db = connection
        self._kills: Counter[Victim] = Counter()
        self._samples: list[Sample] = []
        self._middle: Mapping[str, TableSize] = {}

    async def run(self, namespace: str, api: KubeClient) -> SoakResult:
        with pod_watcher(self._around.cluster, namespace) as pods:
            figures = await self._under_load(namespace)
            await Ledger(self._db).settled(within=_SETTLED_SECONDS)
            inventory = await self._inventory(namespace, api, pods)
        end = await tables.sizes(self._db)
        return SoakResult(
            load=figures,
            kills=self._kills,
            samples=self._samples,
            inventory=inventory,
            middle=self._middle,
            end=end,
            a_day_later=await self._a_day_later(),
        )

    async def _under_load(self, namespace: str) -> LoadFigures:
        plan = self._plan
        async with (
            running_load(self._around.load, self._gateway.target, namespace, plan.rates) as load,
            task_group() as group,
        ):
            following = group.create_task(load.follow())
            sampling = group.create_task(self._sample())
            for number, victim in enumerate(islice(cycle(Victim), plan.kills)):
                await asyncio.sleep(plan.kill_every)
                await self._disturb(victim, load)
                if number == plan.kills // 2:
                    self._middle = await tables.sizes(self._db)
            await asyncio.sleep(plan.seconds_after_kills)
            sampling.cancel()
            return await load.end(following)

    async def _disturb(self, victim: Victim, load: SoakLoad) -> None:
        """Kill, and wait until the load goes on."""
        await self._gateway.kill(victim)
        self._kills[victim] += 1
        before = load.accepted
        goes_on = "submissions are accepted after a kill"
        await until(lambda: load.accepted > before, what=goes_on, within=_PATIENCE, every=0.2)
        print(f"{load.accepted} accepted, {load.deleted} deleted, {load.polled} polled: {victim} killed", flush=True)

    async def _sample(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            at, target = loop.time() - began, self._gateway.target
            trees = {POSTGRESQL: target.pids["postgres"], **self._around.programs}
            self._samples += of_gateway(target.pids["jobgate"], target.port, at)
            self._samples += of_trees(trees, at)
            await asyncio.sleep(_SAMPLE_SECONDS)

    async def _inventory(self, namespace: str, api: KubeClient, pods: PodWatcher) -> Inventory:
        phases = await self._db.fetch("SELECT phase, count(*) AS count FROM jobs GROUP BY phase ORDER BY phase")
        left = await objects_by_job(api, namespace)
        rows = await stored_rows(self._db)
        return Inventory(
            **dict(await self._db.fetchrow(_JOBS)),
            faults=await find_faults(self._gateway.url, self._around.cluster),
            pods=len(pods.uids),
            doubles=len(pods.doubles()),
            without_pod=without_pod(rows, pods.uids),
            differences=differences(rows, pods.uids),
            objects=sum(map(len, left.values())),
            phases={row["phase"]: row["count"] for row in phases},
        )

    async def _a_day_later(self) -> dict[str, TableSize]:
        """Let the rows with a retention exceed it, wait until the sweeper has deleted them, and count again."""
        await self._db.execute(_A_DAY_LATER, timeout=_SWEPT_SECONDS)

        async def kept() -> tuple[int, int]:
            keys = await self._db.fetchval("SELECT count(*) FROM idempotency_keys")
            return keys, await self._db.fetchval("SELECT count(*) FROM job_events")

        swept = "the sweeper has deleted what exceeds its retention"
        await until(
            kept, lambda rows: rows[0] == 0 and rows[1] <= FEED_ROWS_KEPT, what=swept, within=_SWEPT_SECONDS, every=1
        )
        return await tables.sizes(self._db)


@asynccontextmanager
async def _namespace(api: KubeClient) -> AsyncIterator[str]:
    """Create a namespace, and the system namespace if it does not exist. Delete the former after the block."""
    name = f"soak-{secrets.token_hex(4)}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
    (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await api.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    try:
        yield name
    finally:
        await api.delete(f"/api/v1/namespaces/{name}")


async def soak(plan: SoakPlan, around: Surroundings) -> SoakResult:
    """Run a gateway under load while its processes are killed."""
    url = await new_database(around.postgres, "soak")
    token = await new_token(url)
    connection: Any = await asyncpg.connect(url, timeout=90, command_timeout=300)
    with kept_port() as port:
        gateway = SoakGateway(
            url,
            around.folder,
            around.postgres,
            port=int(port),
            token=token,
            kubeconfig=as_gateway(around.cluster.kubeconfig),
        )
        try:
            await gateway.start()
            async with connect(around.cluster) as api, _namespace(api) as namespace:
                return await SoakRun(plan, around, gateway, connection).run(namespace, api)
        finally:
            await gateway.close()
            await connection.close(timeout=60)
