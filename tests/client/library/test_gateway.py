"""Both clients with a real gateway. The test writes the status as the controller does."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from app.domain.vocabulary import JobPhase
from jobgate.client import AsyncClient, Client, ConflictError, InvalidRequestError
from tests.support.gateways.gateway import Gateway, manifest

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def namespace() -> str:
    """A namespace that no other run of a test uses."""
    return f"clients-{uuid4().hex[:8]}"


async def test_the_asynchronous_client_follows_a_job_to_its_end(shared_gateway: Gateway, namespace: str) -> None:
    async with AsyncClient(shared_gateway.url, namespace=namespace) as client:
        submitted = await client.jobs.submit(manifest("followed"), key=namespace)
        assert (await client.jobs.submit(manifest("followed"), key=namespace)).uid == submitted.uid
        seen: list[str] = []
        async for state in client.jobs.follow(submitted, timeout=120):
            seen.append(state.status.phase)
            following = {"Queued": JobPhase.RUNNING, "Running": JobPhase.SUCCEEDED}.get(state.status.phase)
            if following is not None:
                await shared_gateway.conclude(submitted.uid, {"phase": following})
        assert seen == ["Queued", "Running", "Succeeded"]
        assert [job.name async for job in client.jobs.list(phase="Succeeded")] == ["followed"]
        assert await client.jobs.history(submitted)
        assert {kind.kind for kind in await client.kinds()} >= {"GenericJob", "SampleSet"}
        with pytest.raises(ConflictError) as refused:
            await client.jobs.cancel(submitted)
        assert refused.value.code == "AlreadyFinished"


async def test_a_watch_reports_the_changes_of_a_namespace(shared_gateway: Gateway, namespace: str) -> None:
    async with AsyncClient(shared_gateway.url, namespace=namespace) as client:
        changes = client.jobs.watch()
        first: asyncio.Task[Any] = asyncio.ensure_future(anext(changes))  # noqa: TID251 - awaited below
        submitted = await client.jobs.submit(manifest("seen"))
        cancelled = await client.jobs.cancel(submitted, reason="enough")
        async with asyncio.timeout(120):
            change = await first
            while change.type != "cancelled":
                change = await anext(changes)
        assert (change.object.uid, change.object.name) == (cancelled.uid, "seen")
        assert isinstance(changes, AsyncGenerator)
        await changes.aclose()


async def test_the_synchronous_client_submits_edits_and_deletes(shared_gateway: Gateway, namespace: str) -> None:
    def work() -> None:
        with Client(shared_gateway.url, namespace=namespace) as client:
            with pytest.raises(InvalidRequestError) as refused:
                client.jobs.submit(manifest("wrong", replicas=-1))
            assert refused.value.errors[0].pointer.startswith("/spec/replicaSpecs/0/replicas")
            submitted = client.jobs.submit(manifest("edited"))
            edited = client.jobs.patch(submitted, {"metadata": {"labels": {"team": "vision"}}})
            assert edited.labels == {"team": "vision"}
            edited.labels["team"] = "speech"
            assert client.jobs.replace(edited, edited).labels == {"team": "speech"}
            assert [row.status.phase for row in client.jobs.summaries(name="edited")] == ["Queued"]
            planned = client.jobs.dry_run(manifest("planned"))
            assert (bool(planned.plan.pods), planned.cluster is None) == (True, False)
            assert client.jobs.dry_run(manifest("planned"), mode="Local").cluster is None
            together = client.jobs.submit_batch([manifest("first"), manifest("second")], atomic=True)
            assert [item.object.name for item in together if item.object] == ["first", "second"]
            each = client.jobs.submit_batch([manifest("first"), manifest("third")])
            assert [(item.status, item.problem and item.problem.code) for item in each] == [
                (409, "NameTaken"),
                (201, None),
            ]
            assert client.jobs.delete("edited", reason="done").deleted_at is not None
            listed = client.jobs.list(namespace="*", deleted=True, name="edited")
            assert submitted.uid in [job.uid for job in listed]
            assert client.version()

    await asyncio.to_thread(work)
