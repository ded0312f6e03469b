"""Invalid requests to the REST API of DI-orchestrator's server are refused in its envelope and store nothing."""

from collections.abc import AsyncIterator
from typing import TypeAlias

import pytest
import pytest_asyncio

from tests.support.gateways.gateway import NAMESPACE, Gateway, running_gateway
from tests.support.kinds.di_jobs import at, own, refused, submit
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

Refusing: TypeAlias = tuple[Gateway, dict[str, str]]

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024
GUESSED = {"Authorization": "Bearer guessed"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def refusing(postgres_server_url: str, database_template: str) -> AsyncIterator[Refusing]:
    """Run a gateway with one job, and yield both the gateway and the headers with the token of the job."""
    async with fresh_database(postgres_server_url, template=database_template) as url, running_gateway(url) as gateway:
        await gateway.submit("of-another-kind")
        yield gateway, own(gateway, await submit(gateway))


@pytest.mark.parametrize(
    "job_id",
    [
        "atari",
        ".atari",
        f"{NAMESPACE}.",
        "Team.atari",
        "a" * 64 + ".b",
        "a" * 400,
        f"{NAMESPACE}.atari.1",
        f"{NAMESPACE}.%00",
    ],
)
async def test_an_invalid_job_id_is_refused(job_id: str, refusing: Refusing) -> None:
    gateway, headers = refusing
    assert refused(await gateway.client.get(at("replicas", job_id), headers=headers), 400)


@pytest.mark.parametrize("job_id", [f"{NAMESPACE}.nobody", "elsewhere.atari", f"{NAMESPACE}.of-another-kind"])
@pytest.mark.parametrize("token", ["of another job", "guessed", None])
async def test_the_error_does_not_reveal_whether_another_job_exists(
    job_id: str, token: str | None, refusing: Refusing
) -> None:
    gateway, headers = refusing
    other = {"of another job": headers, "guessed": GUESSED, None: {}}[token]
    missing = refused(await gateway.client.get(at("replicas", job_id), headers=other), 401)
    existing = await gateway.client.get(at("replicas"), headers=other if token != "of another job" else GUESSED)
    assert missing == refused(existing, 401)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[1]", "object"),
        (b"{}", "/replicas"),
        (b'{"replicas": 0}', "/replicas: the number is too small (accepted: 1 or more)"),
        (b'{"replicas": -1}', "/replicas"),
        (b'{"replicas": "1"}', "/replicas"),
        (b'{"replicas": true}', "/replicas"),
        (b'{"replicas": 1.5}', "/replicas"),
        (b'{"replicas": 99999999999999999999}', ""),
        (b'{"replicas": 1, "tasks": "collector"}', 'did you mean "task"'),
        (b'{"replicas": 1, "task": "nothing"}', '"nothing" (accepted: one of '),
        (b'{"replicas": 1, "replicas": 2}', ""),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_an_invalid_body_is_refused(method: str, body: bytes, words: str, refusing: Refusing) -> None:
    gateway, headers = refusing
    answer = await gateway.client.request(method, at("replicas"), headers=headers | JSON, content=body)
    assert words in refused(answer, 400)


@pytest.mark.parametrize(
    "body", [b"", b"nothing", b"[]", b'"a"', b"null", b'{"a": NaN}', b'{"a": "\\u0000"}', b"[" * 9999]
)
async def test_profilings_must_be_an_object(body: bytes, refusing: Refusing) -> None:
    gateway, headers = refusing
    assert refused(await gateway.client.post(at("profilings"), headers=headers | JSON, content=body), 400)


@pytest.mark.parametrize("size", [64 * 1024 + 1, 4 * MIB])
@pytest.mark.parametrize("what", ["replicas", "profilings"])
async def test_a_body_over_the_limit_is_refused(what: str, size: int, refusing: Refusing) -> None:
    gateway, headers = refusing
    body = b'{"a": "' + b"x" * (size - 9) + b'"}'
    assert "larger than" in refused(await gateway.client.post(at(what), headers=headers, content=body), 413)


async def test_unknown_routes_methods_and_parameters_are_refused_in_the_envelope(refusing: Refusing) -> None:
    gateway, headers = refusing
    assert refused(await gateway.client.get("/v2alpha1/nothing", headers=headers), 404)
    assert refused(await gateway.client.put(at("replicas"), headers=headers, json={}), 501)
    assert "/query/generation" in refused(
        await gateway.client.get(at("replicas") + "?generation=1", headers=headers), 400
    )
    outside = await gateway.client.get("/v2alpha2/nothing")
    assert outside.headers["content-type"] == "application/problem+json"
