"""What one process of the role logs needs to follow the containers of many quiet pods: `bench logs --follow`.

    embedded cluster: pods ─▶ process of the role logs ─▶ its API server ─▶ kubelet: one line for each pod, then silence

The kubelet is a part of this process, and says which logs have been opened so far.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from app.base.clock import SystemClock
from app.db.installation import identity
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.domain.plan import Rank
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ReplicaPhase
from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed
from bench.measuring.gateway import gateway, new_database
from bench.measuring.processes import cpu_seconds
from bench.measuring.report import table
from bench.memory import peak_mib
from tests.loops.kubelet import Kubelet, a_kubelet
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.gateways.gateway import Gateway, running_gateway

_AT_ONCE: Final = 16  # requests that make pods
_PATIENCE: Final = 1800.0  # seconds until every log has been opened
_STEADY: Final = 60.0  # seconds of the measurement afterwards
_LINE: Final = b"2026-01-02T03:04:05.000000000Z one line, and then silence\n"


@dataclass(slots=True, kw_only=True)
class _Sample:
    """What is known of the process at a time."""

    at: float
    cpu: float
    reading: float
    waiting: float
    sockets: int


async def _make_pod(kube: KubeClient, kubelet: Kubelet, given: dict[str, str], rank: int) -> str:
    """Make a pod whose container runs, and return its uid."""
    name, path = f"quiet-worker-{rank}", f"/api/v1/namespaces/{kubelet.namespace}/pods"
    container = {"name": "main", "image": "busybox"}
    pod = {
        "metadata": {"name": name, "labels": given | {labels.TASK_RANK: str(rank)}},
        "spec": {"nodeName": kubelet.node, "containers": [container]},
    }
    made = (await kube.post(path, pod)).ok()
    state = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
    report = container | {"imageID": "", "restartCount": 0, "ready": True, "state": state, "containerID": f"b://{rank}"}
    status = {"phase": "Running", "containerStatuses": [report]}
    (await kube.patch(f"{path}/{name}/status", {"status": status})).ok()
    kubelet.logs[name] = _LINE
    return str(made["metadata"]["uid"])


async def _make_pods(kube: KubeClient, kubelet: Kubelet, given: dict[str, str], count: int) -> list[str]:
    """Make so many pods, and return their uids by rank."""
    uids, ranks = [""] * count, iter(range(count))

    async def make_some() -> None:
        for rank in ranks:
            uids[rank] = await _make_pod(kube, kubelet, given, rank)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(make_some())
    return uids


async def _sample(http: httpx2.AsyncClient, pid: int) -> _Sample:
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families((await http.get("/metrics")).text)
        for sample in family.samples
    }
    return _Sample(
        at=time.monotonic(),
        cpu=cpu_seconds(pid),
        reading=found["jobgate_kept_logs_followed"],
        waiting=found["jobgate_kept_logs_waiting"],
        sockets=_sockets(pid),
    )


def _sockets(pid: int) -> int:
    """Return how many sockets a process has: one for each log that it reads, and some others."""
    return sum(_is_socket(entry) for entry in Path(f"/proc/{pid}/fd").iterdir())


def _is_socket(entry: Path) -> bool:
    try:
        return str(entry.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False


async def _until_opened(kubelet: Kubelet, count: int, begun: float) -> float:
    """Return the seconds until every log has been opened."""
    while len(kubelet.opened) < count:
        if time.monotonic() - begun > _PATIENCE:
            raise MeasurementFailed(f"{len(kubelet.opened)} of {count} logs were opened in {_PATIENCE:.0f} s")
        await asyncio.sleep(0.2)
    return time.monotonic() - begun


async def _store_job(writer: Gateway, namespace: str, count: int) -> str:
    return str((await writer.submit("quiet", namespace=namespace, replicas=count))["uid"])


async def _record(writer: Gateway, uid: str, pods: Sequence[str]) -> None:
    """Store which pods the replicas of the job have, as a controller does."""
    running = [
        Replica(key=Rank("worker", rank), attempt=Attempt(number=1, pod_uid=pod, phase=ReplicaPhase.RUNNING))
        for rank, pod in enumerate(pods)
    ]
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.RUNNING: len(pods)}
    await writer.conclude(uid, {"phase": JobPhase.RUNNING, "aggregate": aggregate}, replicas=running)


async def _measure(
    folder: Path, cluster: Cluster, postgres: EmbeddedPostgres, count: int, followed: int
) -> tuple[str, ...]:
    namespace, url = f"quiet-{count}", await new_database(postgres, f"quiet_{count}")
    db = await Database.open(url, pool_size=1)
    try:
        installation = str((await identity.get_or_create(db, uuid4(), SystemClock().now())).id)
    finally:
        await db.close()
    settings = {"JOBGATE_LOG_STORE": f"file://{folder / f'store-{count}'}", "JOBGATE_MAX_FOLLOWED_LOGS": str(followed)}
    async with connect(cluster) as kube, running_gateway(url) as writer:
        (await kube.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
        uid = await _store_job(writer, namespace, count)
        given = {labels.INSTALLATION: installation, labels.JOB_UID: uid, labels.TASK: "worker", labels.ATTEMPT: "1"}
        async with a_kubelet(kube, namespace, folder / f"kubelet-{count}", stays_open=True) as kubelet:
            began = time.monotonic()
            await _record(writer, uid, await _make_pods(kube, kubelet, given, count))
            print(f"{count} pods, made in {time.monotonic() - began:.0f} s", flush=True)
            begun = time.monotonic()
            async with (
                gateway(url, folder, postgres, role="logs", kubeconfig=cluster.kubeconfig, settings=settings) as target,
                httpx2.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", timeout=60) as http,
            ):
                return await _figures(http, kubelet, target.pids["jobgate"], count, begun)


async def _figures(http: httpx2.AsyncClient, kubelet: Kubelet, pid: int, count: int, begun: float) -> tuple[str, ...]:
    opened = await _until_opened(kubelet, count, begun)
    first = await _sample(http, pid)
    await asyncio.sleep(_STEADY)
    last = await _sample(http, pid)
    cores = (last.cpu - first.cpu) / (last.at - first.at)
    return (
        f"{count}",
        f"{last.reading:.0f}",
        f"{opened:.0f}",
        f"{first.cpu:.0f}",
        f"{last.sockets}",
        f"{cores:.2f}",
        f"{peak_mib(pid):.0f}",
    )


async def run(counts: Sequence[int], followed: int) -> None:
    """Measure for each number of pods, with at most `followed` logs that the process reads at once."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            with running_embedded_cluster(folder / "cluster", "--nodes", "0") as cluster:
                for count in counts:
                    rows.append(await _measure(folder, cluster, postgres, count, followed))
                    print(rows[-1], flush=True)
    head = ("pods", "read at once", "all read after s", "CPU s until then", "sockets", "cores later", "MiB at most")
    print("\n".join(table(head, rows)))
