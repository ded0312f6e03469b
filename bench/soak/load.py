"""Runs the load client of a soak test (soak.c), and reads what it counted."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measuring.bodies import NUMBER, encode
from bench.measuring.client import MeasurementFailed, Target, compile_client, write_requests

SOURCE = Path(__file__).with_name("soak.c")
_DRAIN_SECONDS = 900.0  # a request is repeated for 300 s, and then all live jobs are deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRates:
    """The load: its rates per second, its clients of each sort, and the size of the jobs.

    A job is deleted when `live` later ones were submitted, and submissions wait while twice as many are not. One job in
    `pods_every` has a pod, which ends by itself; the others are paused, so that they cost the cluster nothing.
    """

    submissions: float
    polls: float
    submitters: int
    pollers: int
    live: int
    pods_every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What happened to the requests of one sort. Latencies are in seconds."""

    done: int
    retries: int
    broken: int
    refused: int
    p50: float
    p99: float
    codes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFigures:
    """What the load client counted in `seconds`. All `submitted` jobs were accepted, except `unanswered` requests."""

    submit: Answers
    poll: Answers
    delete: Answers
    submitted: int
    unanswered: int
    seconds: float
    cpu: float
    error: str


def soak_job(name: str, *, paused: bool) -> dict[str, Any]:
    """A GenericJob of one replica that prints a line and ends."""
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo these are my last words"]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
    worker = {"type": "worker", "replicas": 1, "restartPolicy": {"policy": "Never"}, "template": template}
    mode = {"runMode": {"pause": {"enabled": True}}} if paused else {}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name, "labels": {"team": "soak"}},
        "spec": {"replicaSpecs": [worker], **mode},
    }


def requests(target: Target, namespace: str, pods_every: int) -> list[bytes]:
    """The deletion and the poll of a job, and the submissions, which go round."""
    path, name = f"/api/v1/namespaces/{namespace}/jobs", f"job-{NUMBER}"
    key = {"Idempotency-Key": name}
    return [
        target.request("DELETE", f"{path}/{name}"),
        target.request("GET", f"{path}/{name}/status"),
        *(
            target.request("POST", path, encode(soak_job(name, paused=index > 0)), key)
            for index in range(max(1, pods_every))
        ),
    ]


class SoakLoad:
    """A running load. `accepted` and `polled` are the numbers of answered submissions and polls so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last = b""
        self._ending = False
        self.accepted = self.deleted = self.polled = 0

    async def follow(self) -> None:
        """Read what the client prints until it ends.

        Raises:
            MeasurementFailed: the client failed, or ended before `end` asked for it.
        """
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        while line := await self._process.stdout.readline():
            self._last = line
            if not line.startswith(b"{"):
                self.accepted, self.deleted, self.polled = map(int, line.split())
        status = await self._process.wait()
        if status or not self._ending:
            said = (await self._process.stderr.read()).decode(errors="replace").strip()
            raise MeasurementFailed(said or f"the load client ended with status {status}")

    async def end(self, following: "asyncio.Task[None]") -> LoadFigures:
        """Let the client delete what is left, and return what it counted.

        Raises:
            MeasurementFailed: the client failed, or did not end in time.
        """
        assert self._process.stdin is not None
        self._ending = True
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await following
        except TimeoutError as error:
            raise MeasurementFailed("the load client did not end in time") from error
        return figures(self._last)


def figures(line: bytes) -> LoadFigures:
    """Parse the last line of the client. It may cut the text of an error within a character."""
    told = json.loads(line.decode(errors="replace"))
    submit, poll, delete = (Answers(**told.pop(sort)) for sort in ("submit", "poll", "delete"))
    return LoadFigures(submit=submit, poll=poll, delete=delete, **told)


def compile_load(directory: Path) -> Path:
    """Compile the load client into `directory`.

    Raises:
        NoCompiler: none of the usual ones is installed.
    """
    return compile_client(SOURCE, directory)


@asynccontextmanager
async def running_load(program: Path, target: Target, namespace: str, rates: SoakRates) -> AsyncIterator[SoakLoad]:
    """Start the load. It is killed after the block if it has not ended."""
    file = program.with_name("soak-requests")
    write_requests(file, requests(target, namespace, rates.pods_every))
    process = await asyncio.create_subprocess_exec(
        *(str(program), str(target.port), str(rates.submitters), str(rates.submissions)),
        *(str(rates.pollers), str(rates.polls), str(rates.live), str(file)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield SoakLoad(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
