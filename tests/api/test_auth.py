"""Who may do what where: every role, every verb, in a namespace of its own, another one and all."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from app.db import tokens
from tests.support.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE, THEIRS = "mine", "theirs"
PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def closed(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """With a job `there` in either namespace."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, closed=True) as running,
    ):
        admin = await running.token("admin", "*")
        for namespace in (MINE, THEIRS):
            answer = await running.client.post(jobs_path(namespace), json=manifest("there"), headers=admin)
            assert answer.status_code == 201
        yield running


async def act(client: httpx2.AsyncClient, verb: str, namespace: str, headers: dict[str, str]) -> int:
    """Try it and return the status. What would change something is refused for its body once the caller is let in."""
    one = jobs_path(namespace, "there")
    match verb:
        case "list":
            answer = await client.get(jobs_path(namespace), headers=headers)
        case "submit":
            answer = await client.post(jobs_path(namespace), headers=headers, json={})
        case "retry":
            answer = await client.post(one + "/retry", headers=headers)
        case "replace":
            answer = await client.put(one, headers=headers, json={})
        case "patch":
            answer = await client.patch(one, headers=headers | PATCH, json={"kind": "x"})
        case "delete":
            answer = await client.delete(one, headers=headers | {"If-Match": '"no"'})
        case "pause" | "resume" | "cancel":
            answer = await client.post(f"{one}/{verb}", headers=headers | {"If-Match": '"no"'})
        case "get":
            answer = await client.get(one, headers=headers)
        case "watch":
            async with client.stream("GET", f"{one}/watch", headers=headers) as stream:
                return stream.status_code
        case _:
            answer = await client.get(f"{one}/{verb}", headers=headers)
    return answer.status_code


READS = dict.fromkeys(("list", "get", "status", "replicas", "history", "events", "manifests", "watch"), 200)
READS["scale-records"] = 200
READS["logs"] = 404  # of a job that has not started
WRITES = {"submit": 422, "replace": 422, "patch": 422, "retry": 409}
WRITES |= dict.fromkeys(("delete", "pause", "resume", "cancel"), 412)


@pytest.mark.parametrize("verb", [*READS, *WRITES])
@pytest.mark.parametrize("role", ["viewer", "submitter", "admin"])
async def test_the_matrix(role: str, verb: str, closed: Gateway) -> None:
    own, everywhere = await closed.token(role, MINE), await closed.token(role, "*")
    allowed = READS[verb] if verb in READS else WRITES[verb]
    expected = 403 if role == "viewer" and verb in WRITES else allowed
    assert await act(closed.client, verb, MINE, own) == expected
    assert await act(closed.client, verb, THEIRS, own) == 404
    assert await act(closed.client, verb, THEIRS, everywhere) == expected
    assert await act(closed.client, verb, MINE, {}) == 401


async def test_lists_show_what_may_be_seen(closed: Gateway) -> None:
    for namespaces, expected in (
        ((MINE,), [MINE]),
        ((MINE, THEIRS), [THEIRS, MINE]),
        (("*",), [THEIRS, MINE]),
        ((), []),
    ):
        headers = await closed.token("viewer", *namespaces)
        items = (await closed.client.get("/api/v1/jobs", headers=headers)).json()["items"]
        assert [item["namespace"] for item in items] == expected


@pytest.mark.parametrize(
    "detail", ["", "/status", "/replicas", "/history", "/scale-records", "/events", "/manifests", "/logs"]
)
async def test_a_uid_of_another_namespace_leads_nowhere(detail: str, closed: Gateway) -> None:
    everywhere, own = await closed.token("viewer", "*"), await closed.token("viewer", MINE)
    found = (await closed.client.get(jobs_path(THEIRS), headers=everywhere)).json()["items"][0]
    url = f"/api/v1/jobs/{found['uid']}{detail}"
    assert (await closed.client.get(url, headers=everywhere)).status_code == (404 if detail == "/logs" else 200)
    refused = await closed.client.get(url, headers=own)
    assert refused.status_code == 404
    assert "theirs" not in refused.text


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Basic YTpi", "Bearer jg_a_b", "Bearer jg_a", "Bearer \xff", "Bearer " + "a" * 9999]
)
async def test_who_is_nobody(authorization: str, closed: Gateway) -> None:
    answer = await closed.client.get("/api/v1/jobs", headers={b"Authorization": authorization.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_health_needs_no_token(closed: Gateway) -> None:
    for path in ("/livez", "/readyz", "/readyz?verbose", "/metrics"):
        assert (await closed.client.get(path)).status_code == 200
    assert (await closed.client.get("/api/v1/kinds")).status_code == 401
    kinds = await closed.client.get("/api/v1/kinds", headers=await closed.token("viewer"))
    assert kinds.json()["items"][0]["kind"] == "GenericJob"


async def test_the_creator_is_the_token(closed: Gateway) -> None:
    headers = await closed.token("submitter", MINE)
    created = await closed.client.post(jobs_path(MINE), json=manifest("signed"), headers=headers)
    assert created.json()["createdBy"] == "a submitter"
    assert all(token.name != "" for token in await tokens.list_all(closed.db))
