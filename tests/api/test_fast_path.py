"""Plain polls, the fast path and the documented routes give the same answers."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from app.api.fast_path import FastPath
from app.api.plain_polls import PlainPolls
from app.api.settings import HttpSettings
from app.main import create_app
from app.services.freshness import FreshnessReader
from app.services.gateway import Services
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
    """Yield clients of applications with plain polls, with only the fast path, and without both."""
    plain, fast, documented = [create_app(services) for _ in range(3)]
    _remove(fast, PlainPolls)
    _remove(documented, PlainPolls, FastPath)
    async with _client(plain) as first, _client(fast) as second, _client(documented) as third:
        yield first, second, third


def _remove(app: FastAPI, *kinds: type) -> None:
    kept = [item for item in app.user_middleware if cast(Any, item.cls) not in kinds]
    assert len(kept) == len(app.user_middleware) - len(kinds)
    app.user_middleware = kept


def _client(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://jobgate")


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
        ("GET", HELLO, {"Content-Length": "99999999999"}),
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
        assert list(other.headers) == list(documented.headers)


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


async def test_a_gateway_that_checks_hosts_or_origins_has_no_plain_polls(services: Services) -> None:
    for settings in (HttpSettings(hosts=("gateway",)), HttpSettings(cors_origins=("https://ui.example.com",))):
        app = create_app(services, settings)
        assert PlainPolls not in [cast(Any, item.cls) for item in app.user_middleware]
