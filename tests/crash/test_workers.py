"""Several workers and a controller under one supervisor: killed, restarted in turn and stopped while clients submit."""

import asyncio
import os
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.access.credentials import Role
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.gateways.process import GatewayProcess, gateway_process, insist
from tests.support.machine.freezing import family
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

PATIENCE = 240.0
CLIENTS = 6
STORED = {200, 201}  # 200 repeats the answer of a submission that was stored before its process was killed
# The controller retries a cluster that does not answer, and holds the lease meanwhile.
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""
WORKERS = {"JOBGATE_WORKERS": "2", "JOBGATE_DRAIN_SECONDS": "1", "JOBGATE_LEASE_SECONDS": "10"}


@asynccontextmanager
async def workers(database_url: str, directory: Path, **environment: str) -> AsyncIterator[GatewayProcess]:
    """A gateway with two workers and a controller. No process is left after the block."""
    directory.mkdir(exist_ok=True)
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    async with gateway_process(database_url, kubeconfig, directory, **(WORKERS | environment)) as process:
        await process.start()
        try:
            yield process
        finally:
            left = family(process.pid)[1:] if process.is_running else []
            await process.kill()
            await until_gone(left)


async def until_gone(pids: Sequence[int]) -> None:
    await until(lambda: not any(map(runs, pids)), within=PATIENCE)


def replaced(process: GatewayProcess, pids: Sequence[int]) -> bool:
    """Whether these processes have ended, and all processes of the gateway run."""
    found = family(process.pid)
    return len(found) == 4 and not set(found) & set(pids)


def runs(pid: int) -> bool:
    """Whether the process runs. A zombie, which has no command line, waits to be reaped."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class Load:
    """Clients that submit jobs without pause, each on its own connection, and repeat what was not answered."""

    url: str
    accepted: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    _numbers: Any = field(default_factory=count)
    _stopped: bool = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Submit during the block, from after the first answers on."""
        self._stopped = False
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._submit())
            await self.more(CLIENTS)
            yield
            self._stopped = True

    async def more(self, jobs: int = 2 * CLIENTS) -> None:
        """Wait until this many further jobs were accepted."""
        wanted = len(self.accepted) + jobs
        await until(lambda: len(self.accepted) >= wanted, within=PATIENCE)

    async def _submit(self) -> None:
        async with httpx2.AsyncClient(base_url=self.url, timeout=60) as client:
            while not self._stopped:
                name = f"job-{next(self._numbers)}"
                await until(partial(self._is_answered, client, name), within=PATIENCE)

    async def _is_answered(self, client: httpx2.AsyncClient, name: str) -> bool:
        """Submit the job. Without an answer it must be submitted again, unless the load has ended."""
        try:
            answer = await client.post(jobs_path(), json=manifest(name), headers={"Idempotency-Key": name})
        except httpx2.TransportError as error:
            self.failures.append(repr(error))
            return self._stopped
        self.answers[answer.status_code] += 1
        if answer.status_code in STORED:
            self.accepted.add(name)
        return True


async def stored(database_url: str) -> set[str]:
    """The names of all jobs."""
    connection: Any = await asyncpg.connect(database_url)
    names = {row["name"] for row in await connection.fetch("SELECT name FROM jobs")}
    await connection.close()
    return names


async def test_a_killed_worker_is_restarted_and_no_accepted_job_is_lost(database_url: str, tmp_path: Path) -> None:
    async with workers(database_url, tmp_path) as process:
        before = family(process.pid)[1:]
        assert len(before) == 3
        load = Load(process.url)
        async with load.running():
            os.kill(before[1], signal.SIGKILL)
            await until(lambda: replaced(process, before[1:2]), within=PATIENCE)
            await load.more()
        assert set(load.answers) <= STORED
        assert load.accepted <= await stored(database_url)
        assert "workers.process_ended" in process.log.read_text()


async def test_a_rolling_restart_replaces_the_workers_without_a_failed_request(
    database_url: str, tmp_path: Path
) -> None:
    # Long, because a client that the machine delays must send its next request within this time.
    drain = {"JOBGATE_DRAIN_SECONDS": "120", "JOBGATE_SHUTDOWN_TIMEOUT": "300"}
    async with workers(database_url, tmp_path, **drain) as process:
        before = family(process.pid)[1:]
        load = Load(process.url)
        async with load.running():
            os.kill(process.pid, signal.SIGHUP)
            await until(lambda: replaced(process, before[1:]), within=PATIENCE)
            await load.more()
        assert (load.failures, set(load.answers)) == ([], {201})
        assert before[0] in family(process.pid), "the controller was not restarted"


async def test_a_stop_under_load_loses_no_accepted_job_and_leaves_no_process(database_url: str, tmp_path: Path) -> None:
    async with workers(database_url, tmp_path) as process:
        running = family(process.pid)[1:]
        load = Load(process.url)
        async with load.running():
            os.kill(process.pid, signal.SIGTERM)
            assert await process.ended(within=PATIENCE) == 0
        await until_gone(running)
        assert set(load.answers) <= STORED
        assert load.accepted <= await stored(database_url)


async def test_the_processes_end_with_a_killed_supervisor(database_url: str, tmp_path: Path) -> None:
    async with workers(database_url, tmp_path) as process:
        running = family(process.pid)[1:]
        port = int(process.url.rpartition(":")[2])
        await process.kill()
        await until_gone(running)
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))


async def test_a_second_signal_ends_all_processes_at_once(database_url: str, tmp_path: Path) -> None:
    async with workers(database_url, tmp_path, JOBGATE_DRAIN_SECONDS="600", JOBGATE_SHUTDOWN_TIMEOUT="900") as process:
        running = family(process.pid)[1:]
        os.kill(process.pid, signal.SIGTERM)
        async with httpx2.AsyncClient(base_url=process.url, timeout=60) as client:
            await until(lambda: client.get("/readyz"), lambda ready: ready.status_code == 503, within=PATIENCE)
        os.kill(process.pid, signal.SIGTERM)
        assert await process.ended(within=PATIENCE) == -signal.SIGTERM
        await until_gone(running)


def samples(text: str, name: str) -> dict[str, float]:
    """The sum of the samples of one name, for each process."""
    found: Counter[str] = Counter()
    for family_ in text_string_to_metric_families(text):
        for sample in family_.samples:
            if sample.name == name:
                found[sample.labels["process"]] += sample.value  # type: ignore[assignment]
    return dict(found)


async def test_two_workers_serve_as_one_gateway(database_url: str, tmp_path: Path) -> None:
    """Both serve connections; metrics cover all processes; tokens, idempotency and the feed are shared."""
    db = await Database.open(database_url, pool_size=2)
    now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
    token, secret = await tokens.create(db, name="a", role=Role.SUBMITTER, namespaces=["*"], now=now)
    async with workers(database_url, tmp_path, JOBGATE_OPEN_ACCESS="false") as process, AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {secret}"}
        clients = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=process.url, headers=headers, timeout=60))
            for _ in range(8)
        ]
        for client in clients:
            assert (await client.get("/livez")).status_code == 200
        text = (await clients[0].get("/metrics")).text
        held = samples(text, "jobgate_http_connections")
        assert sum(held.values()) == 8
        # How equal the numbers are depends on when the system runs each process: `tests/http_server/test_sharing.py`.
        assert min(held["worker-0"], held["worker-1"]) > 0
        assert list(samples(text, "jobgate_build_info")) == ["worker-0", "worker-1", "controller"]
        assert list(samples(text, "jobgate_feed_follower_position")) == ["worker-0", "worker-1", "controller"]
        for of_controller in ("jobgate_lease_epoch", "jobgate_controller_state", "jobgate_lease_remaining_seconds"):
            assert list(samples(text, of_controller)) == ["controller"], of_controller

        async def fewest_counted() -> float:
            texts = [(await client.get("/metrics")).text for client in clients]
            return min(sum(samples(text, "jobgate_http_request_duration_seconds_count").values()) for text in texts)

        # A worker computes its answer at most once in a second.
        requests = len(clients) + 1
        await until(fewest_counted, lambda count: count >= requests, what="every worker reports the requests of all")
        ready = await insist(clients[0], "GET", "/readyz?verbose")
        assert "[+] controller Unreachable" in ready.text

        key = {"Idempotency-Key": "once"}
        answers = await asyncio.gather(
            *(client.post(jobs_path(), json=manifest("once"), headers=key) for client in clients)
        )
        assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201], "seven answers are repeated"
        assert len({answer.json()["uid"] for answer in answers}) == 1
        status = f"{jobs_path()}/once/status"
        poll = {"Prefer": "wait=60", "If-None-Match": (await clients[0].get(status)).headers["ETag"]}
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(client.get(status, headers=poll)) for client in clients[1:]]
            await insist(clients[0], "POST", f"{jobs_path()}/once/pause")
        assert {answer.result().status_code for answer in waiting} == {200}

        assert await tokens.revoke(db, token.id, now)
        for client in clients:
            await until(partial(client.get, jobs_path()), lambda answer: answer.status_code == 401, within=PATIENCE)
    await db.close()
