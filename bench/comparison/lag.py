"""Lag: the time from the write of a pod's status at the API server until an HTTP client receives it.

    PATCH pods/<pod>/status ─▶ watch ─▶ mirror ─▶ Postgres ─▶ feed ─▶ GET …/jobs/watch

The load client writes the transitions of pods from Pending to Running at a fixed rate. One stream receives the statuses
of all jobs. The transitions of a job count its running replicas up, so the first status with that many shows it.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import httpx2

from bench.changes.checkouts import Connection
from bench.measuring.bodies import encode, generic_job
from bench.measuring.client import LoadClient, MeasurementFailed, Target
from bench.measuring.kubernetes import ControlPlane
from bench.measuring.report import Lag

NAMESPACE = "bench-lag"
# Each job has one transition at a time, so many jobs of a few replicas allow a high rate.
_REPLICAS: Final = 8
_NODE: Final = "node-1"
_WRITERS: Final = 32
_READY_SECONDS: Final = 120.0  # the controller creates thousands of pods
_SEEN_SECONDS: Final = 10.0  # a transition that takes longer counts as missed
# The name of the job and its running replicas, in an event of the stream.
_STATUS: Final = re.compile(rb'"name":"([^"]+)".*?"aggregate":\{[^}]*?"running":(\d+)')
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


class _Stream:
    """What a stream of the statuses of all jobs has received: when each number of running replicas was first seen."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], float] = {}

    def read(self, event: bytes) -> None:
        found = _STATUS.search(event)
        if found is None:
            return
        at, name, running = time.monotonic(), found[1].decode(), int(found[2])
        # A status can show several transitions at once.
        while running and (name, running) not in self.seen:
            self.seen[name, running] = at
            running -= 1


class LagBench:
    def __init__(self, ours: Target, plane: ControlPlane, client: LoadClient, http: httpx2.AsyncClient) -> None:
        self._ours = ours
        self._plane = plane
        self._client = client
        self._http = http
        self._base = f"/api/v1/namespaces/{NAMESPACE}/jobs"
        self._left: list[tuple[str, int]] = []

    async def prepare(self, transitions: int) -> None:
        """Submit enough jobs, bind their pods as a scheduler does, and wait until the gateway reports it."""
        names = [f"lag-{index}" for index in range(-(-transitions // _REPLICAS))]
        for name in names:
            (await self._http.post(self._base, json=generic_job(name, _REPLICAS))).raise_for_status()
        await self._all(names, _waits_for_a_node, "with all pods")
        await self._plane.ready_node(_NODE)
        pods = [f"{name}-worker-{rank}" for name in names for rank in range(_REPLICAS)]
        target = {"kind": "Node", "name": _NODE}
        bindings = [
            self._request("POST", f"{_PODS}/{pod}/binding", {"metadata": {"name": pod}, "target": target})
            for pod in pods
        ]
        await self._client.paced(self._plane.target(), bindings, clients=_WRITERS, rate=500, expect=201)
        await self._all(names, _is_bound, "bound to a node")
        # Every job once, then every job again: a job has one transition at a time.
        self._left = [(name, rank) for rank in range(_REPLICAS) for name in names]

    async def _all(self, names: Sequence[str], holds: Callable[[dict[str, Any]], bool], what: str) -> None:
        """Wait until the statuses of all jobs are as `holds` says."""
        waiting = set(names)
        with suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while waiting:
                    for name in sorted(waiting):
                        status = (
                            (await self._http.get(f"{self._base}/{name}/status")).raise_for_status().json()["status"]
                        )
                        if holds(status):
                            waiting.discard(name)
                    await asyncio.sleep(0.1)
        if waiting:
            raise MeasurementFailed(f"{len(waiting)} jobs are not {what} after {_READY_SECONDS:g} s")

    async def measure(self, rate: float, count: int) -> Lag:
        """Write `count` transitions at `rate` per second, and wait until each is received."""
        turns, self._left = self._left[:count], self._left[count:]
        requests = [
            self._request("PATCH", f"{_PODS}/{name}-worker-{rank}/status", {"status": running_status(rank)})
            for name, rank in turns
        ]
        pids = {**self._ours.pids, **self._plane.target().pids}
        target = Target(
            name="kube-apiserver", port=self._plane.port, tls=True, token=self._plane.target().token, pids=pids
        )
        async with self._following() as stream:
            run, times = await self._client.paced(target, requests, clients=_WRITERS, rate=rate, expect=200)
            wanted = {(name, rank + 1) for name, rank in turns}
            with suppress(TimeoutError):
                async with asyncio.timeout(_SEEN_SECONDS):
                    while not wanted <= stream.seen.keys():  # noqa: ASYNC110 - another task receives them
                        await asyncio.sleep(0.05)
        shown = [
            (stream.seen.get((name, rank + 1)), *written) for (name, rank), written in zip(turns, times, strict=True)
        ]
        seen = [(at, began, answered) for at, began, answered in shown if at is not None]
        return Lag(
            wanted_rate=rate,
            rate=len(turns) / (max(answered for _, answered in times) - min(began for began, _ in times)),
            missed=len(shown) - len(seen),
            # The event can arrive before the answer of the API server.
            after_answer=[max(0.0, at - answered) for at, _, answered in seen],
            after_request=[at - began for at, began, _ in seen],
            cpu=run.server_cpu,
        )

    def _request(self, method: str, path: str, body: dict[str, Any]) -> bytes:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self._plane.target().request(method, path, encode(body), {"Content-Type": kind})

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[_Stream]:
        """Receive the statuses of all jobs during the block."""
        stream = _Stream()
        ready = asyncio.Event()

        async def follow() -> None:
            # Not the HTTP library: it would use a quarter of a core, of the two that all processes share.
            connection = await Connection(self._ours).open()
            connection.writer.write(self._ours.request("GET", f"/api/v1/jobs/watch?namespace={NAMESPACE}"))
            await connection.reader.readuntil(b"\r\n\r\n")
            text = b""
            while length := int(await connection.reader.readline(), 16):
                text += (await connection.reader.readexactly(length + 2))[:-2]
                *events, text = text.split(b"\n\n")
                for event in events:
                    stream.read(event)
                    if b"event: ready" in event:
                        ready.set()

        async with asyncio.TaskGroup() as group:
            following = group.create_task(follow())
            await ready.wait()
            yield stream
            following.cancel()


def _waits_for_a_node(status: dict[str, Any]) -> bool:
    return any(reason["code"] == "NotScheduled" and reason["count"] == _REPLICAS for reason in status["pendingReasons"])


def _is_bound(status: dict[str, Any]) -> bool:
    return bool(status["aggregate"]["pending"] == _REPLICAS)


def running_status(rank: int) -> dict[str, Any]:
    """The status that a kubelet writes when the container of a pod has started."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = [{"type": name, "status": "True", "lastTransitionTime": at} for name in ("Ready", "ContainersReady")]
    container = {
        "name": "main",
        "image": "registry.example/team/trainer:2026.11",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": at}},
    }
    address = f"10.1.0.{rank + 1}"
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "conditions": ready,
        "containerStatuses": [container],
    }
