"""Workloads and jobs are submitted at a rate, until Kueue has admitted all, and jobgate has created all pods."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bench.measuring.bodies import encode
from bench.measuring.client import LoadClient, Target
from bench.measuring.kubernetes import ControlPlane
from bench.measuring.processes import cpu_seconds
from bench.measuring.report import percentile, table
from bench.queues.objects import BATCH_JOBS, JOBS, WORKLOADS, batch_job, job, workload
from bench.queues.watching import Seen, watch_changes

_CLIENTS: Final = 32
_AT_ONCE: Final = 10_000.0  # per second: as fast as the API server accepts them
_CHUNK: Final = 1000  # Workloads: the load client must send all its requests in time, and Kueue checks each of them
_SECONDS: Final = 600.0  # after the last submission: on a busy machine, Kueue admits 20 to 40 Workloads per second
_SHOWN: Final = 20  # jobs; requests that are sent less than once for so many are not printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is submitted: `count` Workloads or jobs with names of this prefix, `rate` per second."""

    title: str
    prefix: str
    count: int
    replicas: int
    rate: float

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}-{number}" for number in range(self.count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admissions:
    """One measurement: times in seconds for each job, CPU seconds by process tree, and requests of all clients.

    The rate is that from the first creation to the last admission; without a queue, to the last pod.
    """

    load: Load
    rate: float
    to_admission: Sequence[float]
    to_pods: Sequence[float]
    used: "Used"


class Used:
    """The CPU seconds of process trees, and the requests to the API server of all clients, since the start."""

    def __init__(self, cpu: Mapping[str, float], requests: Counter[str]) -> None:
        self.cpu = cpu
        self.requests = requests

    @classmethod
    async def read(cls, plane: ControlPlane, target: Target) -> "Used":
        return cls({name: cpu_seconds(pid) for name, pid in target.pids.items()}, await plane.requests())

    def __sub__(self, other: "Used") -> "Used":
        return Used({name: cpu - other.cpu[name] for name, cpu in self.cpu.items()}, self.requests - other.requests)


async def admit_workloads(client: LoadClient, plane: ControlPlane, load: Load) -> Admissions:
    """Create Workloads without jobgate, and wait until Kueue has admitted all."""
    target = plane.target("kueue")
    requests = [target.request("POST", WORKLOADS, encode(workload(name, load.replicas))) for name in load.names]
    async with watch_changes(plane) as seen:
        before = await Used.read(plane, target)
        for first in range(0, load.count, _CHUNK):
            chunk = requests[first : first + _CHUNK]
            await client.paced(target, chunk, clients=_CLIENTS, rate=load.rate, expect=201)
        await seen.until(f"{load.title}: all admitted", lambda: len(seen.admitted) >= load.count, _SECONDS)
    return _measured(load, seen, min(seen.created.values()), await Used.read(plane, target) - before)


async def admit_batch_jobs(client: LoadClient, plane: ControlPlane, load: Load) -> Admissions:
    """Create Jobs of Kubernetes in the queue: Kueue integrates them, and the Job controller creates their pods."""
    target = plane.target("kueue", "kcm")
    requests = [target.request("POST", BATCH_JOBS, encode(batch_job(name, load.replicas))) for name in load.names]
    async with watch_changes(plane) as seen:
        before = await Used.read(plane, target)
        _, times = await client.paced(target, requests, clients=_CLIENTS, rate=load.rate, expect=201)
        await seen.until(f"{load.title}: all pods", lambda: _complete(seen, load.replicas) >= load.count, _SECONDS)
    return _measured(load, seen, min(began for began, _ in times), await Used.read(plane, target) - before)


async def create_workloads(client: LoadClient, plane: ControlPlane, count: int) -> None:
    """Create Workloads of others, which nobody admits."""
    target = plane.target()
    requests = [target.request("POST", WORKLOADS, encode(workload(f"others-{n}", 1))) for n in range(count)]
    for first in range(0, count, _CHUNK):
        await client.paced(target, requests[first : first + _CHUNK], clients=_CLIENTS, rate=_AT_ONCE, expect=201)


async def admit_jobs(client: LoadClient, plane: ControlPlane, ours: Target, load: Load, *, queued: bool) -> Admissions:
    """Submit jobs to jobgate, with or without the queue. Their pods are created, and none runs."""
    target = replace(ours, pids={**ours.pids, **plane.target("kueue").pids})
    jobs = [job(name, load.replicas, queued=queued) for name in load.names]
    requests = [target.request("POST", JOBS, encode(each)) for each in jobs]
    async with watch_changes(plane) as seen:
        before = await Used.read(plane, target)
        _, times = await client.paced(target, requests, clients=_CLIENTS, rate=load.rate, expect=201)
        await seen.until(f"{load.title}: all pods", lambda: _complete(seen, load.replicas) >= load.count, _SECONDS)
    return _measured(load, seen, min(began for began, _ in times), await Used.read(plane, target) - before)


def _measured(load: Load, seen: Seen, began: float, used: Used) -> Admissions:
    admitted = seen.admitted
    last = {uid: max(created) for uid, created in seen.pods.items()}
    return Admissions(
        load=load,
        rate=load.count / (max((admitted or last).values()) - began),
        to_admission=[at - seen.created[name] for name, at in seen.admitted.items()],
        to_pods=[last[uid] - at for uid, at in admitted.items() if uid in last],
        used=used,
    )


def _complete(seen: Seen, replicas: int) -> int:
    return sum(len(created) >= replicas for created in seen.pods.values())


def admissions_table(runs: Sequence[Admissions]) -> list[str]:
    processes = ("jobgate", "postgres", "apiserver", "etcd", "kueue", "kcm")
    head = ("", "per second", "created → admitted p50/p99 ms", "admitted → all pods p50/p99 ms")
    rows = [
        (
            run.load.title,
            f"{run.rate:.0f}",
            _percentiles(run.to_admission),
            _percentiles(run.to_pods),
            *(f"{run.used.cpu[name] / run.load.count * 1e3:.1f}" if name in run.used.cpu else "" for name in processes),
            f"{sum(run.used.cpu.values()) / run.load.count * 1e3:.1f}",
        )
        for run in runs
    ]
    return table((*head, *(f"CPU ms: {name}" for name in processes), "all"), rows)


def _percentiles(values: Sequence[float]) -> str:
    return f"{percentile(values, 50) * 1e3:.0f}/{percentile(values, 99) * 1e3:.0f}" if values else ""


def requests_table(runs: Sequence[Admissions]) -> list[str]:
    """Return the requests of all clients that are sent at least once for every _SHOWN jobs on some side."""
    sent = [Counter({name: count / run.load.count for name, count in run.used.requests.items()}) for run in runs]
    names = sorted({name for each in sent for name, count in each.items() if count >= 1 / _SHOWN})
    rows = [(name, *(f"{each[name]:.2f}" for each in sent)) for name in names]
    return table(("requests for each job", *(run.load.title for run in runs)), rows)
