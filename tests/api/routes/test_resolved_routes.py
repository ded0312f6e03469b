"""The routes whose arguments FastAPI does not resolve answer as their documentation says."""

from typing import Any

import httpx2
import pytest
import pytest_asyncio

from app.api.routers import ResolvedRoute
from app.running.application import create_app
from tests.support.documents.openapi import committed_document
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest

HELLO = jobs_path(NAMESPACE, "hello")
BY_UID = "/api/v1/jobs/{uid}"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(shared_gateway: Gateway) -> Gateway:
    """A gateway that has a job, which no test changes."""
    await shared_gateway.submit("hello")
    return shared_gateway


async def test_reads_by_name_and_submissions_are_resolved_routes() -> None:
    found = {(route.name, *(route.methods or ())) for route in create_app().routes if isinstance(route, ResolvedRoute)}
    nouns = ("job", "sample_set", "sample_job")
    reads = {(f"get_{noun}{view}", "GET") for noun in nouns for view in ("", "_status")}
    assert found == reads | {(f"submit_{noun}", "POST") for noun in nouns}
    documented = {each["operationId"] for path in committed_document()["paths"].values() for each in path.values()}
    assert {name for name, _ in found} <= documented


@pytest.mark.parametrize(
    ("path", "headers", "pointers"),
    [
        (jobs_path("a" * 64, "hello"), {}, ["/path/namespace"]),
        (jobs_path("-a", "hello"), {}, ["/path/namespace"]),
        (jobs_path(NAMESPACE, "a" * 254), {}, ["/path/name"]),
        (jobs_path(NAMESPACE, "a%00"), {}, ["/path/name"]),
        (jobs_path("a" * 64, "a" * 254), {}, ["/path/namespace", "/path/name"]),
        (BY_UID.format(uid="1"), {}, ["/path/uid"]),
        (BY_UID.format(uid="1") + "/status", {}, ["/path/uid"]),
        (HELLO + "?x=1", {}, ["/query/x"]),
        (HELLO + "/status?dryRun=All", {}, ["/query/dryRun"]),
        (HELLO, {"If-None-Match": "unquoted"}, ["/header/If-None-Match"]),
    ],
)
async def test_a_read_with_an_invalid_parameter_names_it(
    path: str, headers: dict[str, str], pointers: list[str], gateway: Gateway
) -> None:
    await assert_invalid(await gateway.client.get(path, headers=headers), pointers)


@pytest.mark.parametrize(
    ("path", "headers", "pointers"),
    [
        (jobs_path(), {"Idempotency-Key": "a b"}, ["/header/Idempotency-Key"]),
        (jobs_path(), {"Idempotency-Key": "a" * 256}, ["/header/Idempotency-Key"]),
        (jobs_path(), {"Idempotency-Key": ""}, ["/header/Idempotency-Key"]),
        (jobs_path() + "?dryRun=yes", {}, ["/query/dryRun"]),
        (jobs_path() + "?dryRun=All&dryRun=Local", {}, ["/query/dryRun"]),
        (jobs_path() + "?unknown=1", {}, ["/query/unknown"]),
        (jobs_path("a" * 64), {"Idempotency-Key": ""}, ["/path/namespace", "/header/Idempotency-Key"]),
    ],
)
async def test_a_submission_with_an_invalid_parameter_names_it(
    path: str, headers: dict[str, str], pointers: list[str], gateway: Gateway
) -> None:
    await assert_invalid(await gateway.client.post(path, headers=headers, json=manifest("refused")), pointers)
    assert (await gateway.client.get(jobs_path(NAMESPACE, "refused"))).status_code == 404


async def assert_invalid(answer: httpx2.Response, pointers: list[str]) -> None:
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, [error["pointer"] for error in problem["errors"]]) == (400, pointers), problem
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("HEAD", HELLO, 200, None),
        ("HEAD", HELLO + "/status", 200, None),
        ("POST", HELLO, 405, "GET, HEAD, PUT, PATCH, DELETE"),
        ("DELETE", HELLO + "/status", 405, "GET, HEAD"),
        ("GET", HELLO + "/", 404, None),
        ("GET", jobs_path(NAMESPACE, "Upper"), 404, None),
        ("GET", jobs_path("kube-system", "hello"), 404, None),
    ],
)
async def test_other_methods_and_paths(
    method: str, path: str, status: int, allowed: str | None, gateway: Gateway
) -> None:
    answer = await gateway.client.request(method, path)
    assert (answer.status_code, answer.headers.get("allow")) == (status, allowed)
    assert (answer.content == b"") == (method == "HEAD")


async def test_the_first_value_of_a_repeated_field_counts(gateway: Gateway) -> None:
    headers = [("If-None-Match", "*"), ("If-None-Match", '"other"'), ("X-Request-Id", "first"), ("X-Request-Id", "x")]
    answer = await gateway.client.get(HELLO, headers=headers)
    assert (answer.status_code, answer.headers["x-request-id"]) == (304, "first")


async def test_metrics_name_the_template_of_the_path(gateway: Gateway) -> None:
    await gateway.client.get(HELLO + "/status")
    text = (await gateway.client.get("/metrics")).text
    assert 'method="GET",route="/api/v1/namespaces/{namespace}/jobs/{name}/status",status="200"' in text
