"""The fast path and the documented routes give the same answers."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import httpx2
import pytest
import pytest_asyncio

from app.api.fast_path import FastPath
from app.main import create_app
from tests.support.gateway import NAMESPACE, jobs_path, manifest, running_gateway
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

VARYING_HEADERS = {"x-request-id", "date", "server", "location", "etag"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients(postgres_server_url: str, database_template: str) -> AsyncIterator[tuple[httpx2.AsyncClient, ...]]:
    """Yield clients of applications with the fast path and without, on the same services with a job `hello`."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url) as gateway,
    ):
        await gateway.submit("hello")
        fast, documented = create_app(gateway.services), create_app(gateway.services)
        documented.user_middleware = [
            item for item in documented.user_middleware if cast(Any, item.cls) is not FastPath
        ]
        assert len(documented.user_middleware) < len(fast.user_middleware)
        async with _client(fast) as first, _client(documented) as second:
            yield first, second


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
    fast, documented = [await client.request(method, path, headers=headers) for client in clients]
    assert shown(fast) == shown(documented)
    assert fast.content == documented.content
    assert fast.headers.get("etag") == documented.headers.get("etag")


async def test_submissions_differ_only_in_generated_values(clients: tuple[httpx2.AsyncClient, ...]) -> None:
    generated = {"name", "uid", "createdAt", "nativeStatus"}
    answers = [
        await client.post(jobs_path(), json=manifest(name))
        for client, name in zip(clients, ("one", "two"), strict=True)
    ]
    assert shown(answers[0]) == shown(answers[1])
    bodies = [{key: value for key, value in answer.json().items() if key not in generated} for answer in answers]
    assert bodies[0] == bodies[1]


async def test_metrics_name_the_route_template(clients: tuple[httpx2.AsyncClient, ...]) -> None:
    fast, _ = clients
    await fast.get(HELLO + "/status")
    text = (await fast.get("/metrics")).text
    assert 'route="/api/v1/namespaces/{namespace}/jobs/{name}/status"' in text
