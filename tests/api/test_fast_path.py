"""The shortcut of plain polls, the fast path and the documented routes give the same answers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from app.api.fast_path import FastPath
from app.api.settings import HttpSettings
from app.http_server.shortcuts import Shortcut
from app.main import create_app
from app.services.freshness import FreshnessReader
from app.services.gateway import Services
from app.telemetry import tracing
from tests.http_server.test_connections import served
from tests.support.gateway import NAMESPACE, jobs_path, manifest, running_gateway
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

VARYING_HEADERS = {"x-request-id", "date", "server", "location", "etag"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(postgres_server_url: str, database_template: str) -> AsyncIterator[Services]:
    """Yield services with a job `hello`."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url) as gateway,
    ):
        await gateway.submit("hello")
        yield gateway.services


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(services: Services) -> AsyncIterator[tuple[httpx2.AsyncClient, ...]]:
    """Yield clients of servers with the shortcut, with only the fast path, and without both."""
    documented = create_app(services)
    kept = [item for item in documented.user_middleware if cast(Any, item.cls) is not FastPath]
    assert len(kept) == len(documented.user_middleware) - 1
    documented.user_middleware = kept
    plain = create_app(services)
    async with (
        _client(plain, plain.state.shortcut) as first,
        _client(create_app(services)) as second,
        _client(documented) as third,
    ):
        yield first, second, third


@asynccontextmanager
async def _client(app: FastAPI, shortcut: Shortcut | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    async with (
        served(app, shortcut=shortcut) as (host, port),
        httpx2.AsyncClient(base_url=f"http://{host}:{port}") as client,
    ):
        yield client


def shown(answer: httpx2.Response) -> tuple[int, Mapping[str, str]]:
    return answer.status_code, {name: value for name, value in answer.headers.items() if name not in VARYING_HEADERS}


HELLO = jobs_path(NAMESPACE, "hello")


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", HELLO, {}),
        ("GET", HELLO + "/status", {}),
        ("GET", HELLO, {"If-None-Match": "*"}),
        ("GET", HELLO, {"If-None-Match": ""}),
        ("GET", HELLO, {"If-None-Match": '"a", W/"b"'}),
        ("GET", HELLO, {"Accept-Encoding": "gzip"}),
        ("GET", HELLO, {"Accept-Encoding": "identity"}),
        ("GET", HELLO, {"Prefer": "respond-async"}),
        ("GET", HELLO, {"X-Request-Id": "a b"}),
        ("GET", jobs_path("kube-system", "hello"), {}),
        ("HEAD", HELLO + "/status", {}),
        ("GET", HELLO, {"If-None-Match": "unquoted"}),
        ("GET", HELLO + "/status", {"Prefer": "wait=5"}),
        ("GET", HELLO + "?x=1", {}),
        ("GET", HELLO + "/", {}),
        ("GET", jobs_path(NAMESPACE, "nobody"), {}),
        ("GET", jobs_path(NAMESPACE, "Upper"), {}),
        ("GET", jobs_path("a" * 64, "hello"), {}),
        ("GET", jobs_path("-a", "hello"), {}),
        ("GET", jobs_path("a-", "hello"), {}),
        ("POST", jobs_path(), {}),
        ("POST", jobs_path(), {"Content-Type": "application/json"}),
        ("POST", jobs_path(), {"Content-Type": "application/json", "Idempotency-Key": "a b"}),
        ("POST", HELLO, {}),
        ("DELETE", jobs_path(), {}),
        ("HEAD", HELLO, {}),
    ],
)
async def test_the_fast_path_answers_like_the_documented_routes(
    method: str, path: str, headers: dict[str, str], clients: tuple[httpx2.AsyncClient, ...]
) -> None:
    *others, documented = [await client.request(method, path, headers=headers) for client in clients]
    for other in others:
        assert shown(other) == shown(documented)
        assert other.content == documented.content
        assert other.headers.get("etag") == documented.headers.get("etag")
        assert sorted(other.headers) == sorted(documented.headers)


async def test_submissions_differ_only_in_generated_values(clients: tuple[httpx2.AsyncClient, ...]) -> None:
    generated = {"name", "uid", "createdAt", "nativeStatus"}
    answers = [
        await client.post(jobs_path(), json=manifest(name))
        for client, name in zip(clients, ("one", "two", "six"), strict=True)
    ]
    assert shown(answers[0]) == shown(answers[1]) == shown(answers[2])
    bodies = [{key: value for key, value in answer.json().items() if key not in generated} for answer in answers]
    assert bodies[0] == bodies[1] == bodies[2]


async def test_metrics_name_the_route_template(clients: tuple[httpx2.AsyncClient, ...]) -> None:
    for client in clients:
        await client.get(HELLO + "/status")
        text = (await client.get("/metrics")).text
        assert 'method="GET",route="/api/v1/namespaces/{namespace}/jobs/{name}/status",status="200"' in text


async def test_the_first_value_of_a_repeated_field_counts(clients: tuple[httpx2.AsyncClient, ...]) -> None:
    headers = [("If-None-Match", "*"), ("If-None-Match", '"other"'), ("X-Request-Id", "first"), ("X-Request-Id", "x")]
    for client in clients:
        answer = await client.get(HELLO, headers=headers)
        assert (answer.status_code, answer.headers["x-request-id"]) == (304, "first")


async def test_an_unexpected_exception_is_answered_in_the_same_way(
    clients: tuple[httpx2.AsyncClient, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(FreshnessReader, "read", broken)
    *others, documented = [await client.get(HELLO) for client in clients]
    assert documented.status_code == 500
    for other in others:
        assert (shown(other), other.content) == (shown(documented), documented.content)
        assert other.headers["x-request-id"]


async def test_polls_take_the_shortcut(
    clients: tuple[httpx2.AsyncClient, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server with the shortcut answers them without its application."""
    monkeypatch.setattr(FastPath, "__call__", None)
    statuses = [(await clients[0].get(path)).status_code for path in (HELLO, HELLO + "/status", HELLO + "?x=1")]
    assert statuses == [200, 200, 500]


@pytest.mark.parametrize("tagged", ["", "*", "--gzip"])
async def test_long_answers_are_compressed_in_the_same_way(services: Services, tagged: str) -> None:
    app = create_app(services, HttpSettings(gzip_min_bytes=200))
    shown_by = []
    async with _client(app, app.state.shortcut) as plain, _client(app) as other:
        for client in (plain, other):
            known = tagged
            if tagged == "--gzip":
                known = (await client.get(HELLO, headers={"Accept-Encoding": "gzip"})).headers["etag"]
                assert known.endswith('--gzip"')
            for path in (HELLO, HELLO + "/status", HELLO + "2"):
                for accepted in ("gzip", "gzip;q=0", "br, gzip", "identity"):
                    headers = {"Accept-Encoding": accepted, "If-None-Match": known}
                    answer = await client.get(path, headers=headers)
                    shown_by.append((shown(answer), answer.headers.get("etag"), answer.content))
    half = len(shown_by) // 2
    assert shown_by[:half] == shown_by[half:]


@pytest.mark.parametrize(
    ("method", "target", "fields", "is_plain"),
    [
        ("GET", HELLO, [], True),
        ("GET", HELLO + "/status", [("accept", "*/*")], True),
        ("HEAD", HELLO, [], False),
        ("POST", HELLO, [], False),
        ("GET", HELLO + "?", [], False),
        ("GET", HELLO + "#a", [], False),
        ("GET", HELLO + "%20", [], False),
        ("GET", HELLO + "/history", [], False),
        ("GET", jobs_path(), [], False),
        ("GET", "http://localhost" + HELLO, [], False),
        ("GET", jobs_path(NAMESPACE, "a" * 600), [], False),
        ("GET", HELLO, [("prefer", "wait=5")], False),
        ("GET", HELLO, [("content-length", "0")], False),
        ("GET", HELLO, [("transfer-encoding", "chunked")], False),
        ("GET", HELLO, [("expect", "100-continue")], False),
    ],
)
async def test_which_requests_are_plain_polls(
    method: str, target: str, fields: list[tuple[str, str]], *, is_plain: bool, services: Services
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in fields]
    shortcut: Shortcut = create_app(services).state.shortcut
    assert (shortcut(method.encode(), target.encode(), encoded, "") is not None) == is_plain


async def test_a_gateway_that_checks_hosts_or_origins_has_no_shortcut(services: Services) -> None:
    for settings in (HttpSettings(hosts=("gateway",)), HttpSettings(cors_origins=("https://ui.example.com",))):
        assert create_app(services, settings).state.shortcut is None
    assert create_app(services, serves_jobs=False).state.shortcut is None
    assert create_app().state.shortcut is None


async def test_a_gateway_that_exports_spans_has_no_shortcut(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create_app(services).state.shortcut is not None
    monkeypatch.setattr(tracing, "is_on", lambda: True)
    assert create_app(services).state.shortcut is None
