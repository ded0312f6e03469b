"""Two gateways for the API behind a load balancer restart one after the other, and no request is lost.

clients, 200 requests/s ─▶ balancer that follows /readyz ─▶ process 0, process 1 ─▶ PostgreSQL
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.crash.test_workers import KUBECONFIG
from tests.support.gateways.balancer import Balancer, balancer
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.gateways.process import GatewayProcess, gateway_process
from tests.support.machine.busy import busy_processes
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

PATIENCE = 120.0
RATE = 200  # requests per second, beside the long polls and the stream
LONG_POLLS = 20
# Each process must be seen as not ready before it stops accepting: several health checks, also on a busy machine.
API = {"JOBGATE_ROLE": "api", "JOBGATE_DRAIN_SECONDS": "5"}
CHECK_EVERY = 0.2
# The least drain is shorter than what the balancer needs on such a machine: the process must find out.
LATE = {"JOBGATE_DRAIN_SECONDS": "0.5", "JOBGATE_SHUTDOWN_TIMEOUT": "90"}


@dataclass
class Traffic:
    """Requests of many clients, `rate` a second. An answer that is an error and a missing answer are both `lost`."""

    balancer: Balancer
    rate: int = RATE
    accepted: list[str] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    _is_followed: bool = False
    _is_offered: bool = True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send requests during the block. At its end every request has its answer, or is lost."""
        async with asyncio.TaskGroup() as waiting:
            open_ended = [waiting.create_task(self._follow())]
            await until(lambda: self._is_followed, within=PATIENCE)
            async with asyncio.TaskGroup() as requests:
                pace = requests.create_task(self._offer(requests))
                await until(lambda: self.accepted, within=PATIENCE)
                open_ended += [waiting.create_task(self._wait_for_changes(number)) for number in range(LONG_POLLS)]
                yield
                self._is_offered = False
                await pace
            await until(lambda: set(self.streamed), lambda seen: seen >= set(self.accepted), within=PATIENCE)
            for task in open_ended:
                task.cancel()

    async def more(self, requests: int) -> None:
        """Wait until this many further requests have been answered."""
        wanted = self.answers.total() + requests
        await until(lambda: self.lost or self.answers.total() >= wanted, within=PATIENCE)

    async def _offer(self, group: asyncio.TaskGroup) -> None:
        """Start a request at each of the times that the rate gives, whether or not earlier ones are answered."""
        began, number = time.monotonic(), 0
        while self._is_offered:
            group.create_task(self._submit(f"job-{number}") if number % 5 == 0 else self._poll(number))
            number += 1
            await asyncio.sleep(began + number / self.rate - time.monotonic())

    async def _submit(self, name: str) -> None:
        answer = await self._send("POST", jobs_path(), name, json=manifest(name), headers={"Idempotency-Key": name})
        if answer is not None:
            self.accepted.append(name)

    async def _poll(self, number: int) -> None:
        if self.accepted:
            name = self.accepted[number % len(self.accepted)]
            await self._send("GET", f"{jobs_path()}/{name}/status", f"poll {number}")

    async def _wait_for_changes(self, number: int) -> None:
        """Repeat a long poll of a job that does not change, as clients do after 304."""
        path = f"{jobs_path()}/{self.accepted[0]}/status"
        while True:
            known = await self._send("GET", path, f"long poll {number}")
            if known is not None:
                headers = {"Prefer": "wait=30", "If-None-Match": known.headers["ETag"]}
                await self._send("GET", path, f"long poll {number}", headers=headers)

    async def _send(
        self, method: str, path: str, what: str, *, json: object = None, headers: dict[str, str] | None = None
    ) -> httpx2.Response | None:
        """Return the answer; None if the request is lost."""
        try:
            answer = await self.balancer.choose().request(method, path, json=json, headers=headers)
        except httpx2.TransportError as error:
            self.lost.append(f"{method} {what}: {error!r}")
            return None
        if answer.status_code in (200, 201, 304):
            self.answers[f"{method} {answer.status_code}"] += 1
            return answer
        self.lost.append(f"{method} {what}: {answer.status_code} {answer.text}")
        return None

    async def _follow(self) -> None:
        """Follow all jobs on a stream, and resume it at another process after each event `shutdown`."""
        position: dict[str, str] = {}
        while True:
            client, last = self.balancer.choose(), ""
            try:
                async with client.stream("GET", "/api/v1/jobs/watch", headers=position) as stream:
                    async for line in stream.aiter_lines():
                        key, _, value = line.partition(": ")
                        if key == "id":
                            position = {"Last-Event-ID": value}
                        elif key == "event":
                            last, self._is_followed = value, True
                        elif key == "data" and last not in ("ready", "shutdown"):
                            self.streamed.append(json.loads(value)["object"]["name"])
            except httpx2.TransportError as error:
                last = repr(error)
            if last != "shutdown":
                self.lost.append(f"the stream ended with {last!r}")
            self.answers["streams"] += 1


async def stored(database_url: str) -> Counter[str]:
    """How many jobs there are of each name."""
    connection = await asyncpg.connect(database_url)
    names = Counter(row["name"] for row in await connection.fetch("SELECT name FROM jobs"))
    await connection.close()
    return names


async def restart(process: GatewayProcess, other: GatewayProcess, traffic: Traffic) -> None:
    assert await process.stop() == 0
    await traffic.balancer.until_ready(other.url)
    await traffic.more(traffic.rate // 4)
    await process.start()
    await traffic.balancer.until_ready(process.url, other.url)
    await traffic.more(traffic.rate // 2)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("starved", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_rolling_restart_behind_a_load_balancer_loses_no_request(
    database_url: str, tmp_path: Path, prove: Callable[[str], None], *, workers: int, starved: bool
) -> None:
    """On a machine without free cores, the load balancer learns late that a process is not ready.

    The test makes it such a machine, which would slow down the tests that run at the same time.
    """
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    environment = API | {"JOBGATE_WORKERS": str(workers)} | (LATE if starved else {})
    rate = RATE // 4 if starved else RATE
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(gateway_process(database_url, kubeconfig, tmp_path / name, **environment))
            for name in ("first", "second")
        ]
        urls = [await first.start(), await second.start()]
        found = await stack.enter_async_context(balancer(urls, check_every=CHECK_EVERY))
        traffic = Traffic(found, rate=rate)
        began = time.monotonic()
        with busy_processes() if starved else nullcontext():
            async with traffic.running():
                await traffic.more(rate // 2)
                await restart(first, second, traffic)
                await restart(second, first, traffic)
        seconds = time.monotonic() - began
    assert traffic.lost == []
    assert await stored(database_url) == Counter(traffic.accepted), "each accepted job exists once"
    assert Counter(traffic.streamed) == Counter(traffic.accepted), "the stream has shown each job once"
    assert traffic.answers["streams"] >= 1, "a process has ended the stream"
    answered = traffic.answers.total() / seconds
    prove(
        f"rolling restart, workers {workers}, starved {starved}: {answered:.0f} answers/s for {seconds:.0f} s, "
        f"{dict(traffic.answers)}"
    )
