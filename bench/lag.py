"""Lag: the time from the write of a pod's status at the API server until a waiting HTTP client receives it.

    PATCH pods/<pod>/status ─▶ watch ─▶ mirror ─▶ Postgres ─▶ feed ─▶ GET …/status, Prefer: wait

Each job has one transition at a time, so a change of its aggregate is that transition.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice, repeat
from typing import Any

import httpx2

from bench.bodies import generic_job
from bench.client import MeasurementFailed, Target
from bench.kubernetes import ControlPlane
from bench.report import Lag

NAMESPACE = "bench-lag"
# Each job has one transition at a time, so many jobs of a few replicas allow a high rate.
_REPLICAS = 8
_NODE = "node-1"
_READY_SECONDS = 30.0  # the controller creates thousands of pods
_SEEN_SECONDS = 10.0  # a transition that takes longer counts as missed


class _Job:
    """A job whose pods start to run one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = 0
        self.busy = asyncio.Lock()


class LagBench:
    def __init__(self, ours: Target, plane: ControlPlane, http: httpx2.AsyncClient) -> None:
        self._plane = plane
        self._http = http
        self._base = f"/api/v1/namespaces/{NAMESPACE}/jobs"
        self._headers = {"Authorization": f"Bearer {ours.token}"}
        self._turns: Iterator[_Job] = iter(())

    async def prepare(self, transitions: int) -> None:
        """Submit enough jobs, and wait for their pods. After the time limit, use the jobs that have pods."""
        jobs = [_Job(f"lag-{place}") for place in range(-(-transitions // _REPLICAS))]
        for job in jobs:
            body = generic_job(job.name, _REPLICAS)
            (await self._http.post(self._base, json=body, headers=self._headers)).raise_for_status()
        ready: list[_Job] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                for job in jobs:
                    while not _all_wait_for_a_node(await self._status(job)):  # noqa: ASYNC110 - another program's state
                        await asyncio.sleep(0.1)
                    ready.append(job)
        if not ready:
            raise MeasurementFailed(f"no job has all its pods after {_READY_SECONDS:g} s")
        await self._plane.ready_node(_NODE)
        await asyncio.gather(*(self._bind(job) for job in ready))
        self._turns = chain.from_iterable(repeat(ready, _REPLICAS))

    async def _bind(self, job: _Job) -> None:
        """Bind the pods of the job as a scheduler does, and wait until the gateway reports it."""
        for rank in range(_REPLICAS):
            await self._plane.bind(NAMESPACE, f"{job.name}-worker-{rank}", _NODE)
        async with asyncio.timeout(_READY_SECONDS):
            while (await self._status(job))["aggregate"]["pending"] < _REPLICAS:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.2)

    async def _status(self, job: _Job) -> dict[str, Any]:
        answer = await self._http.get(f"{self._base}/{job.name}/status", headers=self._headers)
        status: dict[str, Any] = answer.raise_for_status().json()["status"]
        return status

    async def measure(self, rate: float, count: int) -> Lag:
        """Write at most `count` transitions at `rate` per second, and wait until each is received."""
        turns = list(islice(self._turns, count))
        after_answer: list[float] = []
        after_request: list[float] = []
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for place, job in enumerate(turns):
                await asyncio.sleep(max(0.0, began + place / rate - time.perf_counter()))
                group.create_task(self._transition(job, after_answer, after_request))
            written = time.perf_counter() - began
        return Lag(
            wanted_rate=rate,
            rate=len(turns) / written,
            missed=len(turns) - len(after_answer),
            after_answer=after_answer,
            after_request=after_request,
        )

    async def _transition(self, job: _Job, after_answer: list[float], after_request: list[float]) -> None:
        async with job.busy:
            rank, job.running = job.running, job.running + 1
            async with asyncio.TaskGroup() as group:
                # The long poll starts before the write, so that it waits when the change happens.
                seeing = group.create_task(self._seen(job))
                requested = time.perf_counter()
                pod = f"{job.name}-worker-{rank}"
                await self._plane.patch_status(NAMESPACE, pod, running_status(rank))
                answered = time.perf_counter()
            seen = seeing.result()
            if seen is not None:
                # The event can arrive before the answer of the API server.
                after_answer.append(max(0.0, seen - answered))
                after_request.append(seen - requested)

    async def _seen(self, job: _Job) -> float | None:
        """The time at which a long poll returned all running pods; None after the time limit."""
        tag, until = "", time.perf_counter() + _SEEN_SECONDS
        while time.perf_counter() < until:
            headers = {**self._headers, "Prefer": "wait=5", **({"If-None-Match": tag} if tag else {})}
            answer = await self._http.get(f"{self._base}/{job.name}/status", headers=headers)
            at = time.perf_counter()
            if answer.status_code == 200:
                tag = answer.headers["etag"]
                if answer.json()["status"]["aggregate"]["running"] >= job.running:
                    return at
        return None


def _all_wait_for_a_node(status: dict[str, Any]) -> bool:
    """Whether the gateway reports all pods of a job, none of which is scheduled."""
    return any(reason["code"] == "NotScheduled" and reason["count"] == _REPLICAS for reason in status["pendingReasons"])


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
