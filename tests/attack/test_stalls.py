"""No request body blocks the event loop: a gateway reports no stall while it receives large and hostile bodies."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from app.db.postgres.engine import Database
from app.domain.access.credentials import credential_of
from tests.attack.victim import Victim, running_victim
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.kinds.di_jobs import at, di_job
from tests.support.kinds.samples import RESOURCES, sample
from tests.support.kinds.samples import path as samples_path
from tests.support.machine.raw_http import request
from tests.support.postgres import fresh_database

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(280)]

GOAL = 0.05  # seconds of CPU time that one callback may take on an idle machine
LIMIT = 2 * GOAL  # on shared cores with shared caches, the same work takes up to twice the CPU time
# The part of a request that runs in the event loop takes less than 10 ms; the rest is a margin for a loaded machine.
STRICT_LIMIT = 0.03
SIZE = 3 * 1024 * 1024
PATCH = "Content-Type: application/merge-patch+json"
JSON = "Content-Type: application/json"
YAML = "Content-Type: application/yaml"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Victim]:
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        watched_victim(url, tmp_path_factory.mktemp("watched"), LIMIT) as running,
    ):
        yield running


@asynccontextmanager
async def watched_victim(database_url: str, directory: Path, limit: float) -> AsyncIterator[Victim]:
    async with running_victim(
        database_url, directory, JOBGATE_MAX_STALL=str(limit), JOBGATE_BODY_TIMEOUT="60"
    ) as running:
        yield running


def many_variables(count: int, size: int) -> bytes:
    document = manifest("large")
    container = document["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"V{n}", "value": "x" * size} for n in range(count)]
    return json.dumps(document).encode()


ALIAS_BOMB = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40))
BODIES: dict[str, tuple[str, bytes]] = {
    "JSON, valid": (JSON, many_variables(900, 1000)),
    "JSON, 3 MiB of manifest": (JSON, many_variables(3000, 900)),
    "JSON, long numbers": (JSON, b"[" + b",".join([b"1" * 64] * 40_000) + b"]"),
    "JSON, many values": (JSON, b"[" + b"1," * 99_000 + b"1]"),
    "JSON, one string": (JSON, b'["' + b"a" * (SIZE - 8) + b'"]'),
    "JSON, escapes": (JSON, b'["' + b"\\\\" * (SIZE // 2 - 8) + b'"]'),
    "JSON, nested": (JSON, b"[" * (SIZE // 2) + b"]" * (SIZE // 2)),
    "JSON, a List": (JSON, json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest()] * 100}).encode()),
    "JSON, a key of 1 MiB": (JSON, b'{"' + b"k" * 2**20 + b'": 1}'),
    "YAML, valid": (YAML, many_variables(900, 1000)),
    "YAML, many keys": (YAML, b"".join(b"key%d: v\n" % n for n in range(9999))),
    "YAML, flow list": (YAML, b"[" + b"1," * 25_000 + b"1]"),  # a fifth of a second on the loop
    "YAML, aliases": (YAML, b"".join(b"a%d: &a%d [x]\nb%d: *a%d\n" % (n, n, n, n) for n in range(4000))),
    "YAML, alias bomb": (YAML, ALIAS_BOMB),
    "YAML, nested": (YAML, b"[" * SIZE),
    "YAML, one scalar": (YAML, b"kind: " + b"x" * (SIZE - 8)),
    "YAML, 100 documents": (YAML, b"--- {kind: a}\n" * 100 + b"# " + b"c" * (SIZE - 2000)),
}  # fmt: skip


async def send(victim: Victim, path: str, content_type: str, body: bytes) -> int:
    async with await victim.connect() as connection:
        await connection.send(request("POST", path, content_type, body=body))
        status, _ = await connection.answer()
        return status


@pytest.mark.parametrize("name", BODIES)
async def test_no_body_blocks_the_event_loop(name: str, watched: Victim, prove: Callable[[str], None]) -> None:
    content_type, body = BODIES[name]
    samples = "/api/v1/namespaces/team/samplesets"
    log = watched.log_bytes()
    async with watched.polled(f"body ({name})", prove) as bystander, asyncio.TaskGroup() as group:
        for path in (f"{jobs_path()}?dryRun=All", samples, jobs_path()):
            group.create_task(send(watched, path, content_type, body))
        await bystander.answered(3)
    assert b"loop.stalled" not in watched.log_since(log), stalls(watched.log_since(log))


def many_arguments(name: str) -> bytes:
    """Return the manifest with the most values that fits into a pod: it takes longest to validate."""
    document = manifest(name)
    document["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["args"] = ["x"] * 90_000
    return json.dumps(document).encode()


def many_jobs(prefix: str) -> bytes:
    items = [manifest(f"{prefix}{number}") for number in range(100)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def many_annotations(resource: str, name: str) -> bytes:
    document = sample(resource, name)
    document["metadata"]["annotations"] = {f"k{number}": "v" for number in range(9900)}
    return json.dumps(document).encode()


WIDE = json.dumps({f"k{number}": "v" for number in range(9900)}).encode()
WIDE_SPEC = b'{"spec": %b}' % WIDE
ONE_LABEL = b'{"metadata": {"labels": {"a": "b"}}}'
# The NUL at the end makes the slow reader check each value. The last element is replaced by the token.
PROFILINGS = b'{"a": [' + b"1," * 30_000 + b'"\\u0000"]}'


async def submitted(victim: Victim, path: str, body: bytes, *headers: str) -> dict[str, str]:
    async with await victim.connect() as connection:
        await connection.send(request("POST", path, JSON, *headers, body=body))
        status, answer = await connection.answer()
    assert status == 201, answer
    created: dict[str, str] = json.loads(answer)
    return created


async def sent(victim: Victim, method: str, path: str, *headers: str, body: bytes) -> int:
    async with await victim.connect() as connection:
        await connection.send(request(method, path, *headers, body=body))
        return (await connection.answer())[0]


async def test_no_write_route_blocks_the_event_loop(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Send each route the body that takes it longest, one after another, so that a report identifies the route."""
    directory = tmp_path_factory.mktemp("strict")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        watched_victim(url, directory, STRICT_LIMIT) as victim,
    ):
        stalled = []
        for method, target, headers, body, expected in await write_requests(victim, url):
            log = victim.log_bytes()
            status = await sent(victim, method, target, *headers, body=body)
            assert status == expected, (method, target, status)
            assert (
                await sent(victim, "GET", "/livez", body=b"") == 200
            )  # the report has been written before this answer
            if b"loop.stalled" in victim.log_since(log):
                stalled.append(f"{method} {target}, {len(body)} bytes: {stalls(victim.log_since(log))}")
        assert not stalled, "\n".join(stalled)


async def write_requests(victim: Victim, url: str) -> list[tuple[str, str, tuple[str, ...], bytes, int]]:
    """Return method, path, headers, body and expected status of each request."""
    job, pausable = jobs_path("team", "edited"), jobs_path("team", "pausable", "pause")
    await submitted(victim, jobs_path(), many_arguments("edited"))
    await submitted(victim, jobs_path(), json.dumps(manifest("pausable")).encode())
    key = ("Idempotency-Key: one",)
    requests = [
        ("POST", jobs_path("escapes"), (YAML, *key), b'a: "' + b"\\n" * (SIZE // 2 - 8) + b'"', 422),
        ("POST", jobs_path("list"), (JSON, *key), many_jobs("l"), 201),
        ("POST", jobs_path("batch", "batch"), (JSON, *key), many_jobs("b"), 200),
        ("PUT", job, (JSON,), many_arguments("edited"), 202),
        ("PATCH", job, (PATCH,), ONE_LABEL, 202),
        ("PATCH", job, (PATCH,), WIDE, 422),
        ("POST", f"{job}/scale", (JSON,), b'{"replicas": 3}', 409),
        ("POST", pausable, (JSON,), WIDE, 422),
    ]
    for resource in RESOURCES:
        one = samples_path(resource, "one")
        requests += [
            ("POST", f"{samples_path(resource)}?dryRun=All", (JSON,), many_annotations(resource, "one"), 200),
            ("POST", samples_path(resource), (JSON, *key), many_annotations(resource, "one"), 201),
            ("PUT", one, (JSON,), many_annotations(resource, "one"), 202),
            ("PATCH", one, (PATCH,), WIDE_SPEC, 422),
        ]
    created = await submitted(victim, jobs_path(), json.dumps(di_job()).encode())
    db = await Database.open(url)
    async with db.read() as connection:
        token = credential_of(await connection.fetchval("SELECT key FROM installation"), created["uid"])
    await db.close()
    requests.append(("POST", at("profilings"), (f"Authorization: Bearer {token}",), PROFILINGS, 400))
    return requests


async def test_the_first_request_of_each_route_does_not_block_the_event_loop(watched: Victim) -> None:
    log = watched.log_bytes()
    for path in ("/openapi.json", "/api/v1/kinds", "/api/v1/jobs", "/metrics", "/nowhere"):
        async with await watched.connect() as connection:
            await connection.send(request("GET", path))
            assert (await connection.answer())[0] in (200, 404)
    assert b"loop.stalled" not in watched.log_since(log), stalls(watched.log_since(log))


def stalls(log: bytes) -> str:
    """Return the reported stalls as text."""
    events = [json.loads(line) for line in log.splitlines() if b"loop.stalled" in line]
    return "\n".join(f"{event['seconds']} s: {event['callback']}\n{event['exception']}" for event in events)
