"""No request makes an API process hold more than 300 MiB, or 340 with bodies, however many clients read no answer."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import pytest_asyncio

from app.db.postgres.engine import Database
from app.domain.plan import Rank
from app.domain.queueing.queue_status import MOST_PENDING_JOBS
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ReplicaPhase
from app.log_store import open_store
from app.models.jobs import jobs
from tests.attack.victim import Victim, running_victim
from tests.support.clusters.log_cluster import log_cluster, store_running_job
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.kept_logs import finish, keep, store_ended_job, timed
from tests.support.kinds import samples
from tests.support.machine.raw_http import PATIENCE, Connection, request
from tests.support.postgres import fresh_database
from tests.support.waiting import until

Prove = Callable[[str], None]
pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB: Final = 2**20
MOST_BYTES: Final = 300 * MIB
# Beside what the reads before them leave. The process itself has 160 MiB, most of it the Kubernetes client and schemas.
MOST_BYTES_WITH_BODIES: Final = 340 * MIB
CLIENTS: Final = 300
JOBS: Final = 200
REPLICAS: Final = 10_000
STREAMS: Final = 2000  # as many connections as one address may have
CHANGES: Final = 200
LOG_BYTES: Final = 30 * MIB
LINE_BYTES: Final = 64  # a chunk then has the most bytes and the most lines
_COLUMNS: Final = [column.name for column in jobs.columns if column.computed is None]
_CHANGED: Final = {
    "uid": "gen_random_uuid()",
    "name": "'copy-' || number",
    "created_at": "now() - number * interval '1 s'",
}
# Copies of the first job, with other uids and names.
_COPY: Final = f"""
INSERT INTO jobs ({", ".join(_COLUMNS)})
SELECT {", ".join(_CHANGED.get(column, column) for column in _COLUMNS)}
FROM jobs, generate_series(1, {JOBS}) AS number WHERE name = 'large'
"""
# The logs of further runs of the container of a job.
_RUNS: Final = """
INSERT INTO kept_logs (job_uid, task, rank, attempt, container, run, namespace, state, updated_at)
SELECT $1, 'worker', 0, 1, 'main', number, 'team', 'following', now() FROM generate_series(1, 1000) AS number
"""
# A queue with as many pending jobs as are stored, and the longest messages.
_QUEUE: Final = f"""
INSERT INTO queues (namespace, name, observed_at, status)
SELECT 'team', 'large', now(), jsonb_build_object('cluster_queue', 'all', 'jobs', jsonb_agg(jsonb_build_object(
    'uid', gen_random_uuid(), 'kind', 'GenericJob', 'name', 'job-' || number, 'priority', 0, 'since', NULL,
    'code', 'WaitingForQuota', 'message', repeat('m', 256))))
FROM generate_series(1, {MOST_PENDING_JOBS}) AS number
"""


# Other programs of the machine can delay the requests: the gateway must not close their connections.
_PATIENT: Final = {
    "JOBGATE_HEADER_TIMEOUT": "60",
    "JOBGATE_BODY_TIMEOUT": "300",
    "JOBGATE_SEND_TIMEOUT": "60",
}


def large_job() -> dict[str, Any]:
    """Return a job whose manifest has almost 3 MiB, as many short strings."""
    job: dict[str, Any] = manifest("large", replicas=2)
    container = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["args"] = ["x" * 28] * 12_500
    job["spec"]["replicaSpecs"] = [
        {**job["spec"]["replicaSpecs"][0], "type": f"worker-{number}"} for number in range(7)
    ]
    return job


async def store_wide_job(gateway: Gateway) -> None:
    """Store a job with many replicas, as a controller does."""
    uid = (await gateway.submit("wide", replicas=REPLICAS))["uid"]
    replicas = [Replica(key=Rank("worker", rank), attempt=Attempt(number=1)) for rank in range(REPLICAS)]
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.CREATING: REPLICAS}
    await gateway.conclude(uid, {"phase": JobPhase.CREATING, "aggregate": aggregate}, replicas=replicas)


async def store_kept_logs(gateway: Gateway, store_url: str) -> None:
    """Store a job that has ended, with a long log of short lines that is kept whole, and logs of many runs."""
    store, key = open_store(store_url), await store_ended_job(gateway, "kept")
    lines = MIB // LINE_BYTES
    pieces = [timed(*[b"x" * (LINE_BYTES - 1)] * lines, first=number * lines) for number in range(LOG_BYTES // MIB)]
    await finish(gateway.db, await keep(gateway.db, store, key, *pieces))
    async with gateway.db.begin() as connection:
        await connection.execute(_RUNS, key.job_uid)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def victim(
    postgres_server_url: str, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Victim]:
    directory: Path = tmp_path_factory.mktemp("memory")
    settings = {**_PATIENT, "JOBGATE_LOG_STORE": f"file://{directory / 'store'}"}
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        log_cluster(directory, LOG_BYTES) as kubeconfig,
        running_victim(url, directory, descriptors=4096, kubeconfig=kubeconfig, **settings) as running,
    ):
        async with await running.connect() as client:
            body = json.dumps(large_job()).encode()
            await client.send(request("POST", jobs_path(), "Content-Type: application/json", body=body))
            status, answer = await client.answer()
            assert status == 201, answer[:1000]
        db = await Database.open(url, pool_size=1)
        async with db.read() as connection:
            await connection.execute("SET statement_timeout = 0")
            await connection.execute(_COPY)
            await connection.execute(_QUEUE)
        async with running_gateway(url) as gateway:
            await store_wide_job(gateway)
            await store_running_job(gateway, "logs", replicas=16)
            await store_kept_logs(gateway, settings["JOBGATE_LOG_STORE"])
            for resource in ("samplesets", "samplejobs"):
                await samples.submit(gateway, resource, "large", namespace="data")
        await db.close()
        yield running


READS: Final = {
    "lists": "/api/v1/jobs?pageSize=500",
    "summaries": "/api/v1/jobs?pageSize=500&view=summary",
    "facets": "/api/v1/jobs/counts",
    "a job": jobs_path("team", "large"),
    "a wide job": jobs_path("team", "wide"),
    "a list with a wide job": "/api/v1/jobs?name=wide",
    "wide replicas": jobs_path("team", "wide", "replicas") + "?pageSize=500",
    "manifests": jobs_path("team", "large", "manifests") + "?pageSize=500",
    "posted manifest": jobs_path("team", "large", "posted-manifest"),
    "replicas": jobs_path("team", "large", "replicas") + "?pageSize=500",
    "history": jobs_path("team", "large", "history") + "?pageSize=500",
    "events": jobs_path("team", "large", "events") + "?pageSize=500",
    "kinds": "/api/v1/kinds",
    "openapi": "/openapi.json",
    "metrics": "/metrics",
    "watch": "/api/v1/jobs/watch",
    "merged log": jobs_path("team", "logs", "logs"),
    "kept logs": jobs_path("team", "kept", "kept-logs") + "?pageSize=500",
    "a kept log": jobs_path("team", "kept", "logs") + "?merged=false",
    "a merged kept log": jobs_path("team", "kept", "logs") + "?merged=true",
    "the end of a kept log": jobs_path("team", "kept", "logs") + "?merged=false&tailLines=400000",
    "a search of a kept log": jobs_path("team", "kept", "logs") + "?merged=false&search=(x|xx)x*$",
}
# Answers without a length pass the compression unchanged, so that they cost the same whether a client accepts gzip.
WITHOUT_LENGTH: Final = (
    "watch",
    "merged log",
    "a kept log",
    "a merged kept log",
    "the end of a kept log",
    "a search of a kept log",
)
GZIP: Final = "Accept-Encoding: gzip"
# The caller is a pod, with a token of its own; the answers are those of one job.
OF_PODS: Final = ("/v2alpha1/job/{job_id}/replicas", "/v2alpha1/job/{job_id}/profilings")
OPERATIONS: Final = {
    path: item["get"]
    for path, item in json.loads(Path("openapi/openapi.json").read_text())["paths"].items()
    if "get" in item and path not in OF_PODS
}


async def targets(victim: Victim) -> dict[str, str]:
    """Return a target for each GET route of the OpenAPI document, with the largest page."""
    found = {}
    for path, operation in OPERATIONS.items():
        resource = next((part for part in path.split("/") if part in ("jobs", "samplesets", "samplejobs")), "")
        name = {"logs": "logs", "kept-logs": "kept"}.get(path.rpartition("/")[2], "large")
        namespace = "data" if resource.startswith("sample") else "team"
        values = {"namespace": namespace, "name": name}
        if "{uid}" in path:
            async with await victim.connect() as client:
                await client.send(request("GET", f"/api/v1/namespaces/{namespace}/{resource}/{name}/status"))
                values["uid"] = json.loads((await client.answer())[1])["uid"]
        has_pages = any(parameter["name"] == "pageSize" for parameter in operation.get("parameters", ()))
        found[path] = path.format_map(values) + ("?pageSize=500" if has_pages else "")
    return found


async def head_of(victim: Victim, target: str) -> bytes:
    """Return the head of the answer to a GET."""
    async with asyncio.timeout(PATIENCE), await victim.connect() as client:
        await client.send(request("GET", target, host="127.0.0.1"))
        return await client.reader.readuntil(b"\r\n\r\n")


async def test_every_documented_read_at_once_costs_a_bounded_memory(victim: Victim, prove: Prove) -> None:
    victim.reset_peak()
    found = await targets(victim)
    for path, target in found.items():
        assert b" 200 " in (await head_of(victim, target)).split(b"\r\n", 1)[0], path
    async with AsyncExitStack() as stack:
        for target in list(found.values()) * (CLIENTS // len(found)):
            client = await stack.enter_async_context(await Connection.open(victim.address, receive_buffer=4096))
            await client.send(request("GET", target, host="127.0.0.1") * 2)
        await until(victim.is_idle, what="the gateway to have no more work", within=100.0)
    prove(f"memory: nobody read {len(found)} routes: peak {victim.peak_bytes() // MIB} MiB")
    assert victim.peak_bytes() < MOST_BYTES


async def test_the_streams_of_one_token_cost_a_bounded_memory(victim: Victim, prove: Prove) -> None:
    victim.reset_peak()
    run = uuid4().hex[:8]
    async with AsyncExitStack() as stack:
        for _ in range(STREAMS):
            client = await stack.enter_async_context(await Connection.open(victim.address, receive_buffer=4096))
            await client.send(request("GET", "/api/v1/jobs/watch", host="127.0.0.1"))
            assert b" 200 " in (await client.reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
        async with await victim.connect("127.0.0.2") as other:
            for number in range(CHANGES):
                body = json.dumps(manifest(f"change-{run}-{number}")).encode()
                await other.send(request("POST", jobs_path(), "Content-Type: application/json", body=body))
                assert (await other.answer())[0] == 201
        await until(victim.is_idle, what="the gateway to have no more work", within=100.0)
        peak = victim.peak_bytes()
    prove(f"memory: {STREAMS} streams did not read {CHANGES} changes: peak {peak // MIB} MiB")
    assert peak < MOST_BYTES


@pytest.mark.parametrize(
    ("read", "fields"),
    [
        *(pytest.param(read, (), id=f"plain-{read}") for read in READS),
        *(pytest.param(read, (GZIP,), id=f"gzip-{read}") for read in READS if read not in WITHOUT_LENGTH),
    ],
)
async def test_clients_that_do_not_read_cost_a_bounded_memory(
    read: str, fields: tuple[str, ...], victim: Victim, prove: Prove
) -> None:
    victim.reset_peak()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(await Connection.open(victim.address, receive_buffer=4096))
            for _ in range(CLIENTS)
        ]
        for client in clients:
            await client.send(request("GET", READS[read], *fields, host="127.0.0.1") * 2)
        # Others are served meanwhile, and the same read is served again once the clients have gone or are evicted.
        async with await victim.connect() as other:
            await other.send(request("GET", "/livez", host="127.0.0.1"))
            assert (await other.answer())[0] == 200
        await until(victim.is_idle, what="the gateway to have no more work", within=100.0)
    prove(
        f"memory: {CLIENTS} clients did not read {read} ({len(fields)} fields): peak {victim.peak_bytes() // MIB} MiB"
    )
    assert victim.peak_bytes() < MOST_BYTES
    async with asyncio.timeout(PATIENCE), await victim.connect() as other:
        while True:
            await other.send(request("GET", READS[read], host="127.0.0.1"))
            head = await other.reader.readuntil(b"\r\n\r\n")
            if b" 200 " in head.split(b"\r\n", 1)[0]:
                assert (b"content-length" in head.lower()) == (read not in WITHOUT_LENGTH)
                break
            assert b" 503 " in head.split(b"\r\n", 1)[0]
            await other.reader.readuntil(b"}")


JSON: Final = "Content-Type: application/json"
YAML: Final = "Content-Type: application/yaml"
# A List of lists, as large as aliases can make it.
_ALIASES: Final = "a: &a [" + "[]," * 300 + "]\nb: &b [" + "*a," * 300 + "]\nkind: List\nitems: []\n"


def short_job() -> dict[str, Any]:
    """Return a job whose manifest is as large as a body may be that does not count, with as many values as possible."""
    job: dict[str, Any] = manifest("short")
    job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["args"] = ["x"] * 2500
    return job


async def write(victim: Victim, stack: AsyncExitStack, data: bytes) -> int:
    """Send a request, and return the status without a read of the rest of the answer."""
    client = await stack.enter_async_context(await Connection.open(victim.address, receive_buffer=4096))
    await client.send(data)
    async with asyncio.timeout(PATIENCE):
        return int((await client.reader.readuntil(b"\r\n")).split(b" ", 2)[1])


def renamed(job: dict[str, Any], name: str) -> bytes:
    return json.dumps({**job, "metadata": {**job["metadata"], "name": name}}, separators=(",", ":")).encode()


# How many clients send a request, the status of an answer, and the request of each client by its number.
WRITES: Final[dict[str, tuple[int, int, Callable[[int], bytes]]]] = {
    "dry runs": (
        48,
        200,
        lambda number: request("POST", jobs_path() + "/dry-run", JSON, body=renamed(large_job(), f"dry-{number}")),
    ),
    "submissions": (
        48,
        201,
        lambda number: request("POST", jobs_path(), JSON, body=renamed(large_job(), f"written-{number}")),
    ),
    "edits": (
        48,
        202,
        lambda _: request("PUT", jobs_path("team", "large"), JSON, body=renamed(large_job(), "large")),
    ),
    "short dry runs": (
        600,
        200,
        lambda number: request("POST", jobs_path() + "/dry-run", JSON, body=renamed(short_job(), f"dry-{number}")),
    ),
    "aliases": (CLIENTS, 422, lambda _: request("POST", jobs_path() + "/dry-run", YAML, body=_ALIASES.encode())),
}


@pytest.mark.parametrize("kind", WRITES)
async def test_bodies_of_clients_that_do_not_read_cost_a_bounded_memory(
    kind: str, victim: Victim, prove: Prove
) -> None:
    count, expected, data = WRITES[kind]
    victim.reset_peak()
    async with AsyncExitStack() as stack:
        heard = Counter(await asyncio.gather(*(write(victim, stack, data(number)) for number in range(count))))
        peak = victim.peak_bytes()
    prove(f"memory: {count} clients did not read the answers to {kind}, of status {heard}: peak {peak // MIB} MiB")
    assert peak < MOST_BYTES_WITH_BODIES
    assert heard[expected], heard
    assert set(heard) <= {expected, 503}, "a client may repeat what was refused"
