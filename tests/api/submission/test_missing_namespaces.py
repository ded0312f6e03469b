"""A submission to a namespace that the cluster is known not to have is refused."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from app.db import cluster_namespaces
from app.db.installation import heartbeats
from app.db.installation.leases import Lease
from app.domain.vocabulary import JobPhase
from app.services.submitting import cluster_namespaces as service
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest

KEY = {"Idempotency-Key": "k1"}


@pytest.fixture
async def lease(gateway: Gateway) -> Lease:
    """The lease of a controller that has just had contact with the cluster."""
    held = await gateway.lease()
    await beat(gateway, held, "Running")
    return held


async def beat(gateway: Gateway, lease: Lease, state: str) -> None:
    now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
    await heartbeats.beat(gateway.db, lease, now, state)


@pytest.mark.parametrize(
    ("names", "state"), [(None, "Running"), ((NAMESPACE,), "Running"), (("other",), "Unreachable")]
)
async def test_a_namespace_that_may_exist_is_accepted(
    gateway: Gateway, lease: Lease, names: Sequence[str] | None, state: str
) -> None:
    await beat(gateway, lease, state)
    await cluster_namespaces.store(gateway.db, lease, names)
    assert (await gateway.client.post(jobs_path(), json=manifest())).status_code == 201


@pytest.mark.parametrize(
    "path",
    [jobs_path(), f"{jobs_path()}?dryRun=All", jobs_path(NAMESPACE, "batch"), jobs_path(NAMESPACE, "hello", "retry")],
)
async def test_a_missing_namespace_is_refused(
    gateway: Gateway, lease: Lease, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PATIENCE_SECONDS", 0.0)
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    answer = await gateway.client.post(path, json={} if path.endswith("retry") else manifest())
    assert (answer.status_code, answer.json()["code"]) == (404, "NotFound")
    assert answer.json()["detail"] == f"the cluster has no namespace {NAMESPACE}: create it first"
    assert (await gateway.client.get(jobs_path())).json()["items"] == []


@pytest.mark.parametrize("path", [jobs_path(), jobs_path(NAMESPACE, "batch?atomic=true")])
async def test_a_repeated_request_has_the_first_answer_after_its_namespace_is_deleted(
    gateway: Gateway, lease: Lease, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(service, "_CACHE_SECONDS", 0.0)
    first = await gateway.client.post(path, json=manifest(), headers=KEY)
    assert first.is_success
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    again = await gateway.client.post(path, json=manifest(), headers=KEY)
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    other = await gateway.client.post(path, json=manifest("other"), headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "IdempotencyKeyReused")
    assert (await gateway.client.post(path, json=manifest(), headers={"Idempotency-Key": "new"})).status_code == 404


async def test_a_repeated_batch_after_its_namespace_is_deleted_has_the_answers_of_the_stored_objects(
    gateway: Gateway, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(service, "_CACHE_SECONDS", 0.0)
    await gateway.submit("taken")
    path = jobs_path(NAMESPACE, "batch")
    body = {"apiVersion": "v1", "kind": "List", "items": [manifest("free"), manifest("taken")]}
    first = (await gateway.client.post(path, json=body, headers=KEY)).json()["items"]
    assert [item["status"] for item in first] == [201, 409]
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    again = (await gateway.client.post(path, json=body, headers=KEY)).json()["items"]
    assert [item["status"] for item in again] == [200, 404]
    assert again[0]["object"] == first[0]["object"]


async def test_a_repeated_retry_has_the_first_answer_after_its_namespace_is_deleted(
    gateway: Gateway, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(service, "_CACHE_SECONDS", 0.0)
    await gateway.conclude((await gateway.submit())["uid"], {"phase": JobPhase.SUCCEEDED})
    path = jobs_path(NAMESPACE, "hello", "retry")
    first = await gateway.client.post(path, headers=KEY)
    assert first.status_code == 201
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    again = await gateway.client.post(path, headers=KEY)
    assert (again.status_code, again.content) == (200, first.content)


async def test_a_namespace_that_was_just_created_is_waited_for(
    gateway: Gateway, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_PATIENCE_SECONDS", 60.0)
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    async with asyncio.TaskGroup() as group:
        submission = group.create_task(gateway.client.post(jobs_path(), json=manifest()))
        await cluster_namespaces.store(gateway.db, lease, ["other", NAMESPACE])
    assert submission.result().status_code == 201


async def test_the_setting_accepts_every_namespace(gateway: Gateway, lease: Lease) -> None:
    await cluster_namespaces.store(gateway.db, lease, ["other"])
    services = gateway.services
    services.namespace_check = service.NamespaceCheck(services.db, services.clock, services.freshness, required=False)
    assert (await gateway.client.post(jobs_path(), json=manifest())).status_code == 201
