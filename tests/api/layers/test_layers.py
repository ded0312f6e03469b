"""The layers of every request: ids, unexpected exceptions, CORS and metrics; and the health routes."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

from app.api.http_settings import HttpSettings
from app.db.postgres.errors import DatabaseUnavailable
from tests.support.documents.openapi import committed_document, operations
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, running_gateway
from tests.support.machine.raw_http import Connection, request
from tests.support.waiting import until

ORIGIN = {"Origin": "https://ui.example.com"}


async def test_request_ids_are_echoed_or_generated(gateway: Gateway) -> None:
    assert (await gateway.client.get("/livez", headers={"X-Request-Id": "abc-1"})).headers["x-request-id"] == "abc-1"
    for bad in ("a b", "x" * 200, "<script>"):
        made = (await gateway.client.get("/livez", headers={"X-Request-Id": bad})).headers["x-request-id"]
        assert made != bad
        assert len(made) == 16
    assert (await gateway.client.get("/nowhere")).headers["x-request-id"]


async def test_an_unexpected_exception_is_a_problem_that_reveals_nothing(gateway: Gateway) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    gateway.services.reading.version = broken  # type: ignore[assignment, method-assign]
    gateway.services.reading.row = broken  # type: ignore[assignment, method-assign]
    answer = await gateway.client.get(jobs_path(NAMESPACE, "hello", "status"))
    assert (answer.status_code, answer.json()["code"]) == (500, "InternalError")
    assert answer.headers["x-request-id"]
    assert "secret" not in answer.text


async def test_a_request_in_progress_at_the_end_of_the_process_is_answered_with_503(database_url: str) -> None:
    held: list[object] = []

    async def held_forever(*arguments: object) -> None:
        held.append(arguments)
        await asyncio.Event().wait()

    async with AsyncExitStack() as stack:
        async with running_gateway(database_url) as gateway:
            gateway.services.reading.version = held_forever  # type: ignore[assignment, method-assign]
            gateway.services.reading.row = held_forever  # type: ignore[assignment, method-assign]
            host, _, port = gateway.url.removeprefix("http://").partition(":")
            first, documented = [
                await stack.enter_async_context(await Connection.open((host, int(port)))) for _ in range(2)
            ]
            await first.send(request("GET", jobs_path(NAMESPACE, "hello"), "X-Request-Id: it"))
            await documented.send(request("GET", jobs_path(NAMESPACE, "hello", "history"), "X-Request-Id: it"))
            await until(lambda: len(held) == 2)
        for connection in (first, documented):
            head, _, body = (await connection.rest()).partition(b"\r\n\r\n")
            fields = head.decode().lower().split("\r\n")
            assert fields[0].startswith("http/1.1 503")
            assert {"connection: close", "retry-after: 1", "content-type: application/problem+json"} <= set(fields)
            assert "x-request-id: it" in fields
            assert json.loads(body)["code"] == "ShuttingDown"


async def test_an_unavailable_database_is_answered_with_503(gateway: Gateway) -> None:
    async def unavailable(*_: object) -> None:
        raise DatabaseUnavailable("the database is not available")

    gateway.services.reading.version = unavailable  # type: ignore[assignment, method-assign]
    answer = await gateway.client.get(jobs_path(NAMESPACE, "hello", "status"))
    assert (answer.status_code, answer.json()["code"]) == (503, "DatabaseUnavailable")
    assert answer.headers["retry-after"]


async def test_cors_is_off_by_default(gateway: Gateway) -> None:
    assert "access-control-allow-origin" not in (await gateway.client.get("/livez", headers=ORIGIN)).headers


async def test_cors_permits_configured_origins(database_url: str) -> None:
    async with running_gateway(database_url, settings=HttpSettings(cors_origins=(ORIGIN["Origin"],))) as gateway:
        answer = await gateway.client.get("/api/v1/jobs", headers=ORIGIN)
        assert answer.headers["access-control-allow-origin"] == ORIGIN["Origin"]
        documented = {
            header
            for _, _, operation in operations(committed_document())
            for response in operation["responses"].values()
            for header in response.get("headers", {})
        }
        exposed = set(answer.headers["access-control-expose-headers"].split(", "))
        assert exposed == documented | {"Retry-After", "X-Request-Id"}  # errors and all answers have these
        other = await gateway.client.get("/livez", headers={"Origin": "https://evil.example.com"})
        assert "access-control-allow-origin" not in other.headers


async def test_metrics_name_routes_not_paths(gateway: Gateway) -> None:
    await gateway.submit("hello")
    for path in (jobs_path(NAMESPACE, "hello"), jobs_path(NAMESPACE, "nobody"), "/nowhere/at/all"):
        await gateway.client.get(path)
    text = (await gateway.client.get("/metrics")).text
    route = "/api/v1/namespaces/{namespace}/jobs/{name}"
    assert f'jobgate_http_request_duration_seconds_count{{method="GET",route="{route}",status="200"}} 1.0' in text
    assert f'method="GET",route="{route}",status="404"' in text
    assert 'route="unmatched",status="404"' in text
    assert "hello" not in text


async def test_health_and_the_openapi_document_are_served(gateway: Gateway) -> None:
    assert (await gateway.client.get("/livez")).text == "ok\n"
    assert (await gateway.client.get("/readyz")).text == "ok\n"
    assert (await gateway.client.get("/readyz?verbose")).text == "[+] database\nok\n"
    committed = Path(__file__).parents[3] / "openapi" / "openapi.json"
    assert (await gateway.client.get("/openapi.json")).json() == json.loads(committed.read_text(encoding="utf-8"))
