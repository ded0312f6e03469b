"""The log of a real gateway: each line is an event, and names the process, the request, the caller and the job."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from app.base.clock import SystemClock
from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.domain.access.credentials import Role
from tests.domain.cache.made import a_job, a_set
from tests.support.cache.sample_secrets import create_storage_secret
from tests.support.clusters.kube import Cluster, connect
from tests.support.gateways.gateway import jobs_path, manifest
from tests.support.gateways.process import GatewayProcess, gateway_process, insist
from tests.support.machine.raw_http import Connection
from tests.support.postgres import connected, execute
from tests.support.waiting import until
from tests.telemetry.lines import events_of, found
from tests.telemetry.proxied import proxied_gateway

PATIENCE = 240.0
JSON = {"JOBGATE_LOG_FORMAT": "json"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
# No plan of this intent is cached, and none can be made of this manifest.
_BREAK = (
    "UPDATE jobs SET manifest = '{}', intent_version = intent_version + 1, version = version + 1, intent_at = now()"
)
TRACED = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


async def until_logged(gateway: GatewayProcess, event: str, **fields: object) -> dict[str, Any]:
    lines = await until(lambda: found(gateway, event, **fields), what=f"{event} {fields} is logged", within=PATIENCE)
    return lines[0]


@asynccontextmanager
async def client_of(gateway: GatewayProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as client:
        yield client


async def test_every_line_is_an_event_while_everything_fails(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The cluster is away, requests are bad, a loop crashes, a job cannot be reconciled, and the process is stopped."""
    async with proxied_gateway(database_url, cluster, tmp_path, **JSON) as (gateway, proxy):
        await until_logged(gateway, "controller.state", state="Running")
        async with client_of(gateway) as client:
            uid = (await insist(client, "POST", jobs_path(namespace), json=manifest("broken"), headers=TRACED)).json()[
                "uid"
            ]
            proxy.refuse()
            await until_logged(gateway, "controller.state", state="Unreachable")
            await _send_bad_requests(client, gateway, namespace)
            await execute(database_url, f"{_BREAK} WHERE uid = '{uid}'")
            proxy.heal()
            failed = await until_logged(gateway, "reconcile.failed")
            await _break_a_loop(database_url, client, gateway, namespace)
        assert (failed["job"], failed["trace_id"], failed["level"]) == (uid, TRACE, "error")
        assert failed["exception"].startswith("Traceback")
        assert await gateway.stop() == 0
        assert {event["process"] for event in events_of(gateway)} == {"main"}


async def _send_bad_requests(client: httpx2.AsyncClient, gateway: GatewayProcess, namespace: str) -> None:
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    for data in (b"\x00\x01\x02\r\n\r\n", b"GET /%0A%1b[2J HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: raw\r\n\r\n"):
        async with await Connection.open((host, int(port))) as connection:
            await connection.send(data)
            await connection.reader.read(1)
    answer = await client.post(jobs_path(namespace), content=b"{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    line = await until_logged(gateway, "http.request", request_id="raw")
    assert (line["path"], line["status"], line["route"]) == ("/\n\x1b[2J", 404, None)


async def _break_a_loop(database_url: str, client: httpx2.AsyncClient, gateway: GatewayProcess, namespace: str) -> None:
    await execute(database_url, "ALTER TABLE feed ADD CONSTRAINT broken CHECK (false) NOT VALID")
    await client.post(jobs_path(namespace), json=manifest("unnumbered"))
    line = await until_logged(gateway, "loop.failed", loop="publisher")
    assert "CheckViolation" in line["exception"]
    await execute(database_url, "ALTER TABLE feed DROP CONSTRAINT broken")


async def test_workers_name_their_process(database_url: str, cluster: Cluster, tmp_path: Path) -> None:
    workers = JSON | {"JOBGATE_WORKERS": "2"}
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **workers) as gateway:
        await gateway.start()
        await until_logged(gateway, "lease.acquired", process="controller")
        async with client_of(gateway) as client:
            assert (await client.get("/api/v1/jobs")).status_code == 200
        line = await until_logged(gateway, "http.request", path="/api/v1/jobs")
        assert line["process"] in {"worker-0", "worker-1"}
        assert await gateway.stop() == 0
        assert found(gateway, "workers.process_ready", process="supervisor")


async def test_the_access_log_names_the_caller_and_the_job(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    secret = await _token(database_url)
    closed = JSON | {"JOBGATE_OPEN_ACCESS": "false"}
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **closed) as gateway:
        await gateway.start()
        headers = {"Authorization": f"Bearer {secret}", "X-Request-Id": "mine"}
        async with client_of(gateway) as client:
            created = await client.post(jobs_path(namespace), json=manifest("logged"), headers=headers | TRACED)
            await client.get("/livez")
            await client.get(f"/api/v1/jobs?access_token={secret}", headers=headers | {"X-Request-Id": "query"})
        line = await until_logged(gateway, "http.request", request_id="mine")
        assert line["duration"] > 0
        wanted = {
            "level": "info",
            "method": "POST",
            "route": "/api/v1/namespaces/{namespace}/jobs",
            "path": jobs_path(namespace),
            "status": 201,
            "bytes": len(created.content),
            "client": "127.0.0.1",
            "actor": "ann",
            "job": created.json()["uid"],
            "trace_id": TRACE,
            "span_id": SPAN,
        }
        assert {name: line[name] for name in wanted} == wanted
        refused = await until_logged(gateway, "http.request", request_id="query")
        assert (refused["status"], refused["path"]) == (400, "/api/v1/jobs")
        assert found(gateway, "http.request", path="/livez") == []
        assert secret not in gateway.log.read_text()


async def _token(database_url: str) -> str:
    db = await Database.open(database_url, pool_size=1)
    try:
        _, secret = await tokens.create(db, name="ann", role=Role.SUBMITTER, namespaces=["*"], now=SystemClock().now())
    finally:
        await db.close()
    return secret


async def test_the_access_log_can_be_switched_off(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    off = JSON | {"JOBGATE_ACCESS_LOG": "off"}
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **off) as gateway:
        await gateway.start()
        async with client_of(gateway) as client:
            created = await client.post(jobs_path(namespace), json=manifest("silent"))
            assert created.status_code == 201
            assert (await client.get("/nowhere")).status_code == 404
        # Written by the same process after the requests.
        await gateway.stop()
        assert events_of(gateway)
        assert found(gateway, "http.request") == []


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({}, "leads to no cluster"),
        ({"JOBGATE_WORKERS": "2"}, "leads to no cluster"),
        ({"JOBGATE_MAX_OPEN": "0"}, "JOBGATE_MAX_OPEN: Input should be"),
        ({"JOBGATE_HOST": "203.0.113.1", "JOBGATE_OPEN_ACCESS": "false"}, "cannot serve on 203.0.113.1"),
    ],
    ids=["cluster", "cluster of workers", "setting", "address"],
)
async def test_a_failure_at_the_start_is_an_event(
    environment: dict[str, str], error: str, database_url: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{")
    async with gateway_process(database_url, kubeconfig, tmp_path, **(JSON | environment)) as gateway:
        gateway.launch()
        assert await gateway.ended(PATIENCE) == 2
        events = found(gateway, "process.failed")
        assert events
        assert {(event["level"], error in event["error"]) for event in events} == {("critical", True)}


async def test_the_trace_of_a_submission_is_stored_and_sent_on(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Without an exporter, the trace context of the client reaches the API server unchanged."""
    async with proxied_gateway(database_url, cluster, tmp_path, **JSON) as (gateway, proxy):
        async with client_of(gateway) as client:
            headers = TRACED | {"tracestate": "vendor=1"}
            traced = (await client.post(jobs_path(namespace), json=manifest("traced"), headers=headers)).json()
            plain = (await client.post(jobs_path(namespace), json=manifest("plain"))).json()
            invalid = {"traceparent": f"00-{'0' * 32}-{SPAN}-01"}
            other = (await client.post(jobs_path(namespace), json=manifest("invalid"), headers=invalid)).json()
            await client.post(f"{jobs_path(namespace)}/dry-run", json=manifest("checked"), headers=TRACED)
        creates = await until(lambda: _creates(proxy.heads, namespace), lambda heads: len(heads) >= 6, within=PATIENCE)
        stored = {uid: await _stored_trace(database_url, uid) for uid in (traced["uid"], plain["uid"], other["uid"])}
        assert stored == {
            traced["uid"]: (TRACED["traceparent"], "vendor=1"),
            plain["uid"]: (None, None),
            other["uid"]: (None, None),
        }
        sent = [(TRACED["traceparent"] in head, "tracestate: vendor=1" in head) for head in creates]
        assert sorted(sent) == [(False, False)] * 4 + [(True, True)] * 2
        assert any("dryRun=All" in head and TRACED["traceparent"] in head for head in proxy.heads)


async def test_the_trace_of_a_sample_set_is_stored_and_sent_on(
    database_url: str, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The reads of its reconciles are not part of the trace: a set is read as long as it lives."""
    path = f"/api/v1/namespaces/{namespace}/samplesets"
    async with (
        connect(cluster) as kube,
        proxied_gateway(database_url, cluster, tmp_path, **JSON) as (gateway, proxy),
    ):
        await create_storage_secret(kube, namespace)
        async with client_of(gateway) as client:
            created = await client.post(path, json=a_set("traced"), headers=TRACED | {"tracestate": "vendor=1"})
            about = a_job(sampleSetRef={"name": "traced"})
            other = await client.post(path.replace("samplesets", "samplejobs"), json=about, headers=TRACED)
            await until(lambda: _writes(proxy.heads, "persistentvolumeclaims"), what="its claim", within=PATIENCE)
            assert (await client.delete(f"{path}/traced")).status_code == 202
            await until(
                lambda: _status(client, f"{path}/traced"),
                lambda status: status.get("removal") == "gone",
                what="the set is gone",
                within=PATIENCE,
            )
        stored = [await _stored_trace(database_url, one.json()["uid"], "samples") for one in (created, other)]
        assert stored == [(TRACED["traceparent"], "vendor=1"), (TRACED["traceparent"], None)]
        volumes = [head for head in proxy.heads if "/persistentvolume" in head.partition("\r")[0]]
        writes = [head for head in volumes if not head.startswith("GET ")]
        assert {head.partition(" ")[0] for head in writes} >= {"POST", "DELETE"}
        assert all(TRACED["traceparent"] in head and "tracestate: vendor=1" in head for head in writes)
        assert not any(TRACED["traceparent"] in head for head in volumes if head.startswith("GET "))


def _writes(heads: list[str], resource: str) -> list[str]:
    return [head for head in heads if head.startswith("POST ") and f"/{resource}?" in head.partition("\r")[0]]


async def _status(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    status: dict[str, Any] = (await client.get(path)).json()["status"]
    return status


def _creates(heads: list[str], namespace: str) -> list[str]:
    line = f"POST /api/v1/namespaces/{namespace}/pods?fieldValidation=Strict HTTP"
    return [head for head in heads if head.startswith(line)]


async def _stored_trace(database_url: str, uid: str, table: str = "jobs") -> tuple[str | None, str | None]:
    async with connected(database_url) as connection:
        row = await connection.fetchrow(f"SELECT traceparent, tracestate FROM {table} WHERE uid = $1", UUID(uid))
    return row["traceparent"], row["tracestate"]
