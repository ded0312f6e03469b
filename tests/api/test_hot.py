"""The short way and the long way to the hot requests answer alike."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import httpx2
import pytest
import pytest_asyncio

from app.api.fast_path import HotPaths
from app.main import create_app
from tests.support.gateway import NAMESPACE, jobs_path, manifest, running_gateway
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNLIKE = {"x-request-id", "date", "server", "location", "etag"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ways(postgres_server_url: str, database_template: str) -> AsyncIterator[tuple[httpx2.AsyncClient, ...]]:
    """Clients of the short and the long way, to the same services, with a job `hello`."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url) as gateway,
    ):
        await gateway.submit("hello")
        short, long = create_app(gateway.services), create_app(gateway.services)
        long.user_middleware = [item for item in long.user_middleware if cast(Any, item.cls) is not HotPaths]
        assert len(long.user_middleware) < len(short.user_middleware)
        async with _client(short) as first, _client(long) as second:
            yield first, second


def _client(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://jobgate")


def shown(answer: httpx2.Response) -> tuple[int, Mapping[str, str]]:
    return answer.status_code, {name: value for name, value in answer.headers.items() if name not in UNLIKE}


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
async def test_both_ways_answer_alike(
    method: str, path: str, headers: dict[str, str], ways: tuple[httpx2.AsyncClient, ...]
) -> None:
    short, long = [await client.request(method, path, headers=headers) for client in ways]
    assert shown(short) == shown(long)
    assert short.content == long.content
    assert short.headers.get("etag") == long.headers.get("etag")


async def test_submissions_differ_in_what_was_drawn_alone(ways: tuple[httpx2.AsyncClient, ...]) -> None:
    drawn = {"name", "uid", "createdAt", "nativeStatus"}
    answers = [await way.post(jobs_path(), json=manifest(name)) for way, name in zip(ways, ("one", "two"), strict=True)]
    assert shown(answers[0]) == shown(answers[1])
    bodies = [{key: value for key, value in answer.json().items() if key not in drawn} for answer in answers]
    assert bodies[0] == bodies[1]


async def test_metrics_know_the_routes(ways: tuple[httpx2.AsyncClient, ...]) -> None:
    short, _ = ways
    await short.get(HELLO + "/status")
    text = (await short.get("/metrics")).text
    assert 'route="/api/v1/namespaces/{namespace}/jobs/{name}/status"' in text
