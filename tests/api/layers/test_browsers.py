"""A gateway without tokens refuses the requests of web pages through their visitors' browsers."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from app.api.layers.browsers import host_name
from app.settings import Settings
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = "https://page.example"
UI = "http://localhost:3000"
OPEN = Settings(
    open_access=True,
    cors_origins=(UI,),
    allowed_hosts=("gateway.lan",),
    server_url="http://host.internal:8080",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, settings=OPEN.http()) as running,
    ):
        await running.submit("target")
        yield running


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost.:8080", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:8080", "[::1]"),
        ("evil.example:8080", "evil.example"),
        ("127.0.0.1.evil.example", "127.0.0.1.evil.example"),
        ("", ""),
    ],
)
async def test_host_name_drops_port_case_and_trailing_dot(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9000", 200),  # the port may be forwarded
        ("localhost", 200),
        ("[::1]:8080", 200),
        ("gateway.lan", 200),
        ("host.internal:8080", 200),
        ("rebound.page.example", 421),
        ("localhost.page.example:8080", 421),
        ("127.0.0.1@page.example", 400),
        ("", 421),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/livez", jobs_path(NAMESPACE, "target")])
async def test_only_hosts_of_the_gateway_are_accepted(host: str, status: int, path: str, guarded: Gateway) -> None:
    answer = await guarded.client.get(path, headers={"Host": host})
    assert answer.status_code == status, answer.text
    if status == 421:
        assert answer.json()["errors"][0]["pointer"] == "/header/Host"
        assert "localhost" in answer.json()["errors"][0]["accepted"]
        assert answer.headers["x-request-id"]


FROM_A_PAGE = [
    {"Origin": PAGE},
    {"Origin": "null"},
    {"Origin": "http://localhost:3001", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FROM_A_PAGE, ids=str)
@pytest.mark.parametrize("action", ["pause", "cancel", "retry"])
async def test_a_page_of_another_origin_changes_nothing(headers: dict[str, str], action: str, guarded: Gateway) -> None:
    before = (await guarded.client.get(jobs_path(NAMESPACE, "target"))).headers["etag"]
    answer = await guarded.client.post(jobs_path(NAMESPACE, "target", action), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "CrossOrigin")
    body = json.dumps(manifest("planted"))
    planted = await guarded.client.post(
        jobs_path(), content=body, headers=headers | {"Content-Type": "application/json"}
    )
    assert planted.status_code == 403
    assert (await guarded.client.get(jobs_path(NAMESPACE, "target"))).headers["etag"] == before
    assert (await guarded.client.get(jobs_path(NAMESPACE, "planted"))).status_code == 404


async def test_same_origin_configured_origins_and_programs_are_accepted(guarded: Gateway) -> None:
    own = guarded.url
    for headers in (
        {"Origin": own, "Sec-Fetch-Site": "same-origin"},
        {"Origin": UI, "Sec-Fetch-Site": "cross-site"},
        {},
    ):
        answer = await guarded.client.post(f"{jobs_path()}?dryRun=All", json=manifest(), headers=headers)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain;application/json",
    ],
)
@pytest.mark.parametrize("body", [json.dumps(manifest("planted")).encode(), b"{}", b""])
@pytest.mark.parametrize(
    "path",
    [jobs_path(), f"{jobs_path()}?dryRun=All", jobs_path(NAMESPACE, "batch"), jobs_path(NAMESPACE, "target", "pause"),
     jobs_path(NAMESPACE, "target", "scale"), f"/api/v1/namespaces/{NAMESPACE}/samplesets"],
)  # fmt: skip
async def test_content_types_without_cors_preflight_are_refused(
    content_type: str, body: bytes, path: str, guarded: Gateway
) -> None:
    answer = await guarded.client.post(path, content=body, headers={"Content-Type": content_type})
    assert answer.status_code == 415, answer.text
    assert "application/json" in answer.json()["errors"][0]["accepted"]


async def test_an_action_without_a_body_needs_no_content_type(guarded: Gateway) -> None:
    name = f"acted-on-{uuid4().hex[:8]}"
    await guarded.submit(name)
    for action in ("pause", "resume"):
        answer = await guarded.client.post(jobs_path(NAMESPACE, name, action))
        assert answer.status_code in (200, 202), answer.text


def _with_tokens() -> Settings:
    return Settings(allowed_hosts=("gateway.lan",))


async def test_a_gateway_with_tokens_accepts_any_host() -> None:
    assert _with_tokens().http().hosts == ()
