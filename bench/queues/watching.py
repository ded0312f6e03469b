"""Watches of the benchmark: when each Workload was created and admitted, and when the pods of each job were created.

Times are those at which the watch shows the change, on the clock of `time.monotonic`, because the times of conditions
have only seconds. Both watches are read by one loop, so what delays one delays the other.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from app.domain.kubernetes import labels
from bench.measuring.client import MeasurementFailed
from bench.measuring.kubernetes import ControlPlane
from bench.queues.objects import PODS, WORKLOADS

_JOB_UID: Final = "kueue.x-k8s.io/job-uid"  # of a Workload
_CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"  # of the pod of a Job
_PAUSE: Final = 0.05  # seconds between two reads of what the watches have shown


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    labels: Mapping[str, str] = {}


class _Object(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: _Object


@dataclass(slots=True)
class Seen:
    """What the watches have shown: by the uid of the job, or by the name of a Workload without one."""

    created: dict[str, float] = field(default_factory=dict)
    admitted: dict[str, float] = field(default_factory=dict)
    pods: dict[str, list[float]] = field(default_factory=dict)

    def note_workload(self, event: _Event) -> None:
        metadata = event.object.metadata
        now, name = time.monotonic(), metadata.labels.get(_JOB_UID) or metadata.name
        if event.type == "ADDED":
            self.created.setdefault(name, now)
        conditions = event.object.status.conditions
        if any(condition.type == "Admitted" and condition.status == "True" for condition in conditions):
            self.admitted.setdefault(name, now)

    def note_pod(self, event: _Event) -> None:
        known = event.object.metadata.labels
        uid = known.get(labels.JOB_UID) or known.get(_CONTROLLER_UID)
        if event.type == "ADDED" and uid is not None:
            self.pods.setdefault(uid, []).append(time.monotonic())

    async def until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not holds():  # noqa: ASYNC110 - other tasks receive the events
                    await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            raise MeasurementFailed(f"{what}: not within {seconds:g} s") from error


@asynccontextmanager
async def watch_changes(plane: ControlPlane) -> AsyncIterator[Seen]:
    """Follow the Workloads and pods of the namespace, from now on."""
    seen = Seen()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for path, note in ((WORKLOADS, seen.note_workload), (PODS, seen.note_pod)):
            version = (await plane.call("GET", f"{path}?limit=1"))["metadata"]["resourceVersion"]
            tasks.append(group.create_task(_follow(plane, path, version, note)))
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()


async def _follow(plane: ControlPlane, path: str, version: str, note: Callable[[_Event], None]) -> None:
    while True:  # the server ends the watches of a type whose definition changes
        async for line in plane.lines(f"{path}?watch=1&resourceVersion={version}"):
            event = msgspec.json.decode(line, type=_Event)
            version = event.object.metadata.resource_version
            note(event)
