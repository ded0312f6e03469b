"""SampleSets and SampleJobs over HTTP, and writes as the controller does them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.db.samples import controller as sample_controller
from app.db.samples.controller import SampleWrite
from app.db.samples.rows import SampleRow
from tests.domain.cache.made import a_job, a_set
from tests.support.gateways.gateway import NAMESPACE, Gateway

SETS = "samplesets"
JOBS = "samplejobs"
RESOURCES = (SETS, JOBS)
PATCH = {"Content-Type": "application/merge-patch+json"}


def path(resource: str, *more: str, namespace: str = NAMESPACE) -> str:
    return "/".join([f"/api/v1/namespaces/{namespace}/{resource}", *more])


def sample(resource: str, name: str = "one", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A valid manifest."""
    document = a_set(name, **spec) if resource == SETS else a_job(**({"sampleSetRef": {"name": "one"}} | spec))
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {**document, "metadata": metadata}


async def submit(
    gateway: Gateway, resource: str, name: str = "one", *, namespace: str = NAMESPACE, **more: Any
) -> dict[str, Any]:
    answer = await gateway.client.post(path(resource, namespace=namespace), json=sample(resource, name, **more))
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def stored(gateway: Gateway, uid: str) -> SampleRow:
    row = await sample_controller.load(gateway.db, UUID(uid))
    assert row is not None
    return row


async def conclude(gateway: Gateway, uid: str, record: dict[str, Any] | None = None, **more: Any) -> None:
    """Write a decision as the controller does: the changed fields of the record and of the decision."""
    row = await stored(gateway, uid)
    after = replace(row.record, **(record or {}))
    now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
    done = SampleWrite(
        uid=row.uid,
        intent_version=row.intent_version,
        generation=row.generation,
        phase=str(after.phase),
        record=after,
        observed_at=now,
    )
    assert await sample_controller.persist(gateway.db, await gateway.lease(), replace(done, **more), now)
