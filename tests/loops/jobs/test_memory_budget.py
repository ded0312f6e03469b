"""Jobs are worked on in batches whose estimated memory has a bound."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from app.db.jobs import controller
from app.db.jobs.controller import JobSize
from app.db.postgres.engine import Database
from app.loops.jobs.memory_budget import ACTING_BYTES, REPLICA_BYTES, MemoryBudget, acting_bytes, batches
from bench.memory import paused_job, peak_mib
from tests.db.factories import new_job, submitted
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.gateways.process import answering, gateway_process, insist
from tests.support.waiting import until

JOBS = "/api/v1/namespaces/default/jobs"
A, B, C = (UUID(int=number) for number in (1, 2, 3))


def sized(**replicas: int) -> Mapping[UUID, JobSize]:
    return {uid: JobSize(count, 0) for uid, count in zip((A, B, C), replicas.values(), strict=True)}


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        (sized(a=1, b=1, c=1), [[A, B, C]]),
        (sized(a=5, b=5, c=1), [[A, B], [C]]),
        (sized(a=6, b=5, c=5), [[A], [B, C]]),
        (sized(a=1, b=100, c=1), [[A], [B], [C]]),
        ({A: JobSize(0, 10 * REPLICA_BYTES), B: JobSize(1, 0), C: JobSize(1, 0)}, [[A], [B, C]]),
    ],
    ids=["together", "full", "in order", "larger than a portion", "a large manifest"],
)
def test_jobs_are_divided_into_batches_of_bounded_memory(
    sizes: Mapping[UUID, JobSize], groups: list[list[UUID]]
) -> None:
    assert [list(group) for group in batches([A, B, C], sizes, limit=10 * REPLICA_BYTES)] == groups


def test_at_most_64_jobs_of_a_namespace_act_at_once() -> None:
    assert 64 * acting_bytes(JobSize(1, 0)) >= ACTING_BYTES


def soon(seconds: float = 60.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_small_amounts_wait_until_they_fit() -> None:
    room = MemoryBudget(16)
    for _ in range(8):
        assert await room.take(2, "a", soon())
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        waiting = group.create_task(room.take(1, "a", soon()))
        await asyncio.sleep(0)
        assert not waiting.done()
        room.release(2, "a")
        assert await waiting


async def test_a_small_amount_waits_no_longer_than_its_caller_can() -> None:
    room = MemoryBudget(16)
    for _ in range(8):
        assert await room.take(2, "a", soon())
    assert not await room.take(2, "a", soon(0))


async def test_what_one_owner_has_taken_leaves_room_for_others() -> None:
    room = MemoryBudget(16)
    for _ in range(8):
        assert await room.take(2, "a", soon())
    assert await room.take(2, "b", soon(0))
    assert await room.take(2, "c", soon(0))
    assert not await room.take(2, "b", soon(0)), "all owners have a bound, too"
    assert await room.take(2, "d", soon(0)), "the first amount of an owner has another one"
    assert not await room.take(2, "d", soon(0))
    room.release(2, "d")
    room.release(2, "a")
    assert await room.take(2, "b", soon(0))


async def test_a_large_amount_that_does_not_fit_is_refused_and_delays_no_small_one() -> None:
    room = MemoryBudget(16)
    assert await room.take(20, "a", soon())
    assert not await room.take(3, "b", soon())
    assert await room.take(2, "b", soon())
    room.release(20, "a")
    assert await room.take(3, "b", soon())


async def test_the_size_of_a_job_is_known_without_loading_it(database_url: str) -> None:
    db = await Database.open(database_url)
    try:
        job = new_job()
        (uid,) = await submitted(db, job)
        sizes = await controller.read_sizes(db, [uid, uuid4()])
    finally:
        await db.close()
    assert set(sizes) == {uid}
    assert sizes[uid].replicas == sum(job.row.status.aggregate.values())
    assert sizes[uid].manifest_bytes > 0


async def phases(client: httpx2.AsyncClient, names: Sequence[str]) -> set[str]:
    return {(await answering(client, f"{JOBS}/{name}/status")).json()["status"]["phase"] for name in names}


@pytest.mark.timeout(600)
async def test_large_paused_jobs_do_not_grow_the_process(database_url: str, tmp_path: Path) -> None:
    """Rendered, the pods of these jobs take 144 MB."""
    names = ["one", "two", "three"]
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "0") as cluster:
        async with gateway_process(database_url, cluster.kubeconfig, tmp_path / "gateway") as process:
            async with httpx2.AsyncClient(base_url=await process.start(), timeout=120) as client:
                assert (await insist(client, "POST", JOBS, json=paused_job("first", 1))).status_code == 201
                before = peak_mib(process.pid)
                for name in names:
                    assert (await insist(client, "POST", JOBS, json=paused_job(name, 2000))).status_code == 201
                await until(lambda: phases(client, names), lambda found: found == {"Paused"}, within=400)
            assert peak_mib(process.pid) - before < 100
