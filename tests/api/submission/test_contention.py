"""A lock of another transaction is a passing state: a write succeeds, or is answered 503 and can be repeated."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from app.db.postgres.timeouts import DatabaseTimeouts
from app.domain.vocabulary import JobPhase
from app.models.base import metadata
from tests.db.factories import NOW
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway
from tests.support.kinds import samples
from tests.support.kinds.every_kind import example, list_of

SECONDS = 300.0  # requests wait for connections behind others, each of which waits for the lock
# Each write waits for the lock until its timeout, which is 5 s by default.
IMPATIENT = DatabaseTimeouts(lock=0.3)
LABELS = {"metadata": {"labels": {"a": "b"}}}


@pytest_asyncio.fixture
async def gateway(database_url: str) -> AsyncIterator[Gateway]:
    async with running_gateway(database_url, timeouts=IMPATIENT) as running:
        yield running


class Write(NamedTuple):
    """A request. With a `key`, it has an Idempotency-Key."""

    method: str
    path: str
    body: Any = None
    key: str = ""

    async def send(self, gateway: Gateway) -> Any:
        headers = {"Idempotency-Key": self.key} if self.key else {}
        if self.method == "PATCH":
            headers["Content-Type"] = samples.PATCH["Content-Type"]
        return await gateway.client.request(self.method, self.path, json=self.body, headers=headers, timeout=SECONDS)


def submissions(key: str) -> Iterator[Write]:
    """Yield each way to create objects, with other names and keys for each `key`."""
    jobs, with_key = jobs_path(NAMESPACE), bool(key)

    def named(name: str) -> str:
        return f"{name}-{key or 'no-key'}"

    bodies = {
        jobs: manifest(named("one")),
        f"{jobs}?": list_of(manifest(named("first")), manifest(named("second"))),
        f"{jobs}/batch": list_of(manifest(named("third")), manifest(named("fourth"))),
        jobs_path(NAMESPACE, "ended", "retry"): {"name": named("again")},
        **{samples.path(resource): samples.sample(resource, named("new")) for resource in samples.RESOURCES},
    }
    for number, (path, body) in enumerate(bodies.items()):
        yield Write("POST", path, body, f"{key}-{number}" if with_key else "")


async def prepared(gateway: Gateway) -> list[Write]:
    """Store objects, and return a request of every kind of write."""
    for name in ("edited", "cancelled", "paused", "gone"):
        await gateway.submit(name)
    elastic = {**example("DIJob"), "metadata": {"name": "scaled"}}
    assert (await gateway.client.post(jobs_path(NAMESPACE), json=elastic)).status_code == 201
    ended = await gateway.submit("ended")
    await gateway.conclude(ended["uid"], {"phase": JobPhase.FAILED, "finished_at": NOW})
    for resource in samples.RESOURCES:
        await samples.submit(gateway, resource, "one")
    return [
        *submissions(""),
        *submissions("once"),
        Write("PATCH", jobs_path(NAMESPACE, "edited"), LABELS),
        Write("POST", jobs_path(NAMESPACE, "scaled", "scale"), {"task": "collector", "replicas": 3}),
        Write("POST", jobs_path(NAMESPACE, "cancelled", "cancel"), {}),
        Write("POST", jobs_path(NAMESPACE, "paused", "pause"), {}),
        Write("DELETE", jobs_path(NAMESPACE, "gone")),
        Write("POST", f"/api/v1/jobs/{ended['uid']}/redact", {"texts": ["in no record"]}),
        *(Write("PATCH", samples.path(resource, "one"), LABELS) for resource in samples.RESOURCES),
    ]


def outcomes(answer: Any) -> list[tuple[int, str]]:
    """Return the status and the code of each part of an answer."""
    body = answer.json()
    if answer.status_code == 200 and "batch" in str(answer.request.url):
        return [(item["status"], (item["problem"] or {}).get("code", "")) for item in body["items"]]
    return [(answer.status_code, body.get("code", "") if answer.status_code >= 400 else "")]


@pytest.mark.parametrize("table", sorted(metadata.tables))
async def test_a_locked_table_is_never_a_final_answer(gateway: Gateway, table: str) -> None:
    writes = await prepared(gateway)
    async with gateway.db.begin() as connection:
        await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        answers = await asyncio.gather(*(write.send(gateway) for write in writes))
    found = {write: outcomes(answer) for write, answer in zip(map(str, writes), answers, strict=True)}
    passing = {(503, "DatabaseContended"), (503, "DatabaseUnavailable"), (503, "Overloaded")}
    final = {
        write: parts
        for write, parts in found.items()
        if any(status not in {200, 201, 202} and (status, code) not in passing for status, code in parts)
    }
    assert final == {}
    refused = [write for write in writes if any(status == 503 for status, _ in found[str(write)])]
    again = await asyncio.gather(*(write.send(gateway) for write in refused))
    assert [outcomes(answer) for answer in again if answer.status_code not in {200, 201, 202}] == []
