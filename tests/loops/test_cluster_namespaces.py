"""The controller stores the names of the cluster's namespaces as long as it knows them."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.db import cluster_namespaces
from app.loops.cluster_namespaces import ClusterNamespaces
from app.loops.leadership.identity import WrongCluster
from tests.loops.harness import WITHIN, Harness
from tests.support.waiting import until

OLD = "of-a-former-controller"


@asynccontextmanager
async def following(harness: Harness) -> AsyncIterator[ClusterNamespaces]:
    async def verify() -> None:
        if harness.verify_error:
            raise harness.verify_error[0]

    context = harness.context
    loop = ClusterNamespaces(
        context.api, harness.db, harness.leadership, harness.clock, verify=verify, stale_after=600.0
    )
    await cluster_namespaces.store(harness.db, harness.leadership.lease, [OLD])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(loop.run())
        try:
            yield loop
        finally:
            task.cancel()


async def known(harness: Harness, name: str, *, as_: bool | None) -> None:
    async def is_so() -> bool:
        return await cluster_namespaces.exists(harness.db, name) is as_

    await until(is_so, within=WITHIN)


async def test_namespaces_are_followed(harness: Harness) -> None:
    name = f"loops-{secrets.token_hex(5)}"
    async with following(harness) as namespaces:
        await known(harness, harness.namespace, as_=True)
        await known(harness, OLD, as_=False)
        await known(harness, name, as_=False)
        (await harness.kube.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": "a"}}})).ok()
        await known(harness, name, as_=True)
        assert (namespaces.labels_of(name) or {}).get("team") == "a"
        (await harness.kube.delete(f"/api/v1/namespaces/{name}")).ok()
        await known(harness, name, as_=False)
        assert namespaces.labels_of(name) is None


async def test_nothing_is_known_without_the_right_to_list_namespaces(harness: Harness) -> None:
    await harness.inject(namespace="", verb="list", resource="namespaces", status=403)
    async with following(harness):
        await harness.hits()
        await known(harness, OLD, as_=None)
        assert await cluster_namespaces.exists(harness.db, harness.namespace) is None
        await harness.heal()
        await known(harness, harness.namespace, as_=True)


async def test_the_namespaces_of_another_cluster_are_not_known(harness: Harness) -> None:
    harness.verify_error.append(WrongCluster("another cluster"))
    with pytest.RaisesGroup(WrongCluster, flatten_subgroups=True):
        async with following(harness):
            await asyncio.Event().wait()
    assert await cluster_namespaces.exists(harness.db, harness.namespace) is not True


async def test_a_job_of_a_namespace_that_is_created_again_ends_and_creates_nothing_in_the_new_one(
    harness: Harness,
) -> None:
    path = f"/api/v1/namespaces/{harness.namespace}"
    former = f"{harness.namespace}~{(await harness.kube.get(path)).ok()['metadata']['uid']}"
    async with following(harness), harness.reconciling():
        await known(harness, harness.namespace, as_=True)
        uid = await harness.submit(replicas=1)
        await harness.pods_until(lambda found: len(found) == 1)
        # The creation of a namespace is known by the second.
        async with harness.db.begin() as connection:
            await connection.execute("UPDATE jobs SET created_at = created_at - interval '2 s' WHERE uid = $1", uid)
        (await harness.kube.delete(path)).ok()
        await known(harness, harness.namespace, as_=False)
        await until(lambda: created_again(harness, path), within=WITHIN)
        await harness.job_until(uid, lambda job: job.namespace == former)
        harness.queue.add(str(uid))
        # The creation can fail before the move, which then has nothing to remove.
        job = await harness.job_until(uid, lambda job: job.recorded.status.quiet)
    assert job.recorded.status.phase.is_terminal
    assert await harness.pods() == {}


async def created_again(harness: Harness, path: str) -> bool:
    answer = await harness.kube.post("/api/v1/namespaces", {"metadata": {"name": path.rpartition("/")[2]}})
    return answer.status == 201
