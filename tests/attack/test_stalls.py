"""No body holds the event loop: the watchdog of a gateway process stays silent while hostile and large bodies come."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.attack.victim import Victim, request, running_victim
from tests.support.gateway import jobs_path, manifest
from tests.support.postgres import fresh_database

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(280)]

GOAL = 0.05  # seconds of CPU time that one callback may take on an idle machine
LIMIT = 2 * GOAL  # where cores and their caches are shared, the same work takes up to twice the CPU time
SIZE = 3 * 1024 * 1024
JSON = "Content-Type: application/json"
YAML = "Content-Type: application/yaml"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Victim]:
    limits = {"JOBGATE_MAX_STALL": str(LIMIT), "JOBGATE_BODY_TIMEOUT": "60"}
    directory = tmp_path_factory.mktemp("watched")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_victim(url, directory, **limits) as running,
    ):
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
    "YAML, flow list": (YAML, b"[" + b"1," * 99_000 + b"1]"),
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
async def test_no_body_holds_the_loop(name: str, watched: Victim, prove: Callable[[str], None]) -> None:
    content_type, body = BODIES[name]
    samples = "/api/v1/namespaces/team/samplesets"
    log = watched.log_bytes()
    async with watched.polled(f"body ({name})", prove) as bystander, asyncio.TaskGroup() as group:
        for path in (f"{jobs_path()}?dryRun=All", samples, jobs_path()):
            group.create_task(send(watched, path, content_type, body))
        await bystander.answered(3)
    assert b"loop.stalled" not in watched.log_since(log), stalls(watched.log_since(log))


async def test_the_first_request_of_each_route_holds_the_loop_no_longer(watched: Victim) -> None:
    log = watched.log_bytes()
    for path in ("/openapi.json", "/api/v1/kinds", "/api/v1/jobs", "/metrics", "/nowhere"):
        async with await watched.connect() as connection:
            await connection.send(request("GET", path))
            assert (await connection.answer())[0] in (200, 404)
    assert b"loop.stalled" not in watched.log_since(log), stalls(watched.log_since(log))


def stalls(log: bytes) -> str:
    """The reports of the watchdog, for people."""
    events = [json.loads(line) for line in log.splitlines() if b"loop.stalled" in line]
    return "\n".join(f"{event['seconds']} s: {event['callback']}\n{event['exception']}" for event in events)
