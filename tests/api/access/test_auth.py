"""Access by role, verb and namespace: the namespace of the token, another one, and all."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio

from app.db.installation import tokens
from app.domain.access.namespaces import NamespaceSet
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.kinds.samples import PATCH, RESOURCES, path, sample
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE, THEIRS = "mine", "theirs"
EVERY_RESOURCE = ("jobs", *RESOURCES)
MANIFESTS = {"jobs": manifest("there")} | {resource: sample(resource, "there") for resource in RESOURCES}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def closed(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """Run a gateway with an object `there` of each resource in each namespace."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, closed=True) as running,
    ):
        admin = await running.token("admin", "*")
        for namespace in (MINE, THEIRS):
            for resource, document in MANIFESTS.items():
                collection = path(resource, namespace=namespace)
                answer = await running.client.post(collection, json=document, headers=admin)
                assert answer.status_code == 201, answer.text
        yield running


async def act(client: httpx2.AsyncClient, verb: str, resource: str, namespace: str, headers: dict[str, str]) -> int:
    """Send the request and return the status. An authorized change is refused for its body, so that nothing changes."""
    method, more, body = REQUESTS.get(verb, ("GET", f"/there/{verb}", None))
    url = path(resource, namespace=namespace) + more
    if verb == "watch":
        async with client.stream(method, url, headers=headers) as stream:
            return stream.status_code
    headers = headers | (PATCH if verb == "patch" else {}) | ({"If-Match": '"no"'} if verb in HELD else {})
    return (await client.request(method, url, headers=headers, json=body)).status_code


# Method, path below the collection, and body of the verbs that are not `GET …/there/{verb}`.
REQUESTS: dict[str, tuple[str, str, object]] = {
    "list": ("GET", "", None),
    "get": ("GET", "/there", None),
    "submit": ("POST", "", {}),
    "dry-run": ("POST", "?dryRun=All", {}),
    "replace": ("PUT", "/there", {}),
    "patch": ("PATCH", "/there", {"kind": "x"}),
    "delete": ("DELETE", "/there", None),
    **{verb: ("POST", f"/there/{verb}", None) for verb in ("retry", "pause", "resume", "cancel")},
}
HELD = {"delete", "pause", "resume", "cancel"}  # refused by their precondition
READS = dict.fromkeys(("list", "get", "status", "history", "events", "watch"), 200)
WRITES = {"submit": 422, "dry-run": 422, "replace": 422, "patch": 422, "delete": 412}
JOB_READS = {"replicas": 200, "scale-records": 200, "manifests": 200, "logs": 404}  # the job has not started
JOB_WRITES = {"retry": 409, "pause": 412, "resume": 412, "cancel": 412}


@pytest.mark.parametrize("resource", EVERY_RESOURCE)
@pytest.mark.parametrize("role", ["viewer", "submitter", "admin"])
async def test_a_role_permits_exactly_its_verbs_in_its_namespaces(role: str, resource: str, closed: Gateway) -> None:
    own, everywhere = await closed.token(role, MINE), await closed.token(role, "*")
    reads = READS | (JOB_READS if resource == "jobs" else {})
    writes = WRITES | (JOB_WRITES if resource == "jobs" else {})
    for verb, allowed in (reads | writes).items():
        expected = 403 if role == "viewer" and verb in writes else allowed
        assert await act(closed.client, verb, resource, MINE, own) == expected, verb
        assert await act(closed.client, verb, resource, THEIRS, own) == 404, verb
        assert await act(closed.client, verb, resource, THEIRS, everywhere) == expected, verb
        assert await act(closed.client, verb, resource, MINE, {}) == 401, verb


@pytest.mark.parametrize("resource", EVERY_RESOURCE)
async def test_lists_contain_only_visible_namespaces(resource: str, closed: Gateway) -> None:
    for namespaces, expected in (
        ((MINE,), [MINE]),
        ((MINE, THEIRS), [THEIRS, MINE]),
        (("*",), [THEIRS, MINE]),
        ((), []),
    ):
        headers = await closed.token("viewer", *namespaces)
        items = (await closed.client.get(f"/api/v1/{resource}", headers=headers)).json()["items"]
        assert [item["namespace"] for item in items] == expected
    own = await closed.token("viewer", MINE)
    for url in (f"/api/v1/{resource}?namespace={THEIRS}", f"/api/v1/{resource}/watch?namespace={THEIRS}"):
        assert (await closed.client.get(url, headers=own)).status_code == 404


async def test_only_served_namespaces_are_accessible(postgres_server_url: str, database_template: str) -> None:
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, namespaces=NamespaceSet.of(MINE)) as narrow,
    ):
        for resource, document in MANIFESTS.items():
            for namespace, expected in ((MINE, 201), (THEIRS, 404)):
                answer = await narrow.client.post(path(resource, namespace=namespace), json=document)
                assert answer.status_code == expected, answer.text


@pytest.mark.parametrize(
    "detail", ["", "/status", "/replicas", "/history", "/scale-records", "/events", "/manifests", "/logs"]
)
async def test_a_uid_of_an_invisible_namespace_is_not_found(detail: str, closed: Gateway) -> None:
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
async def test_an_invalid_token_is_unauthorized(authorization: str, closed: Gateway) -> None:
    answer = await closed.client.get("/api/v1/jobs", headers={b"Authorization": authorization.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_health_needs_no_token(closed: Gateway) -> None:
    for url in ("/livez", "/readyz", "/readyz?verbose", "/metrics"):
        assert (await closed.client.get(url)).status_code == 200
    assert (await closed.client.get("/api/v1/kinds")).status_code == 401
    kinds = await closed.client.get("/api/v1/kinds", headers=await closed.token("viewer"))
    assert kinds.json()["items"][0]["kind"] == "GenericJob"


async def test_created_by_is_the_name_of_the_token(closed: Gateway) -> None:
    headers = await closed.token("submitter", MINE)
    created = await closed.client.post(jobs_path(MINE), json=manifest(f"signed-{uuid4().hex[:8]}"), headers=headers)
    assert created.json()["createdBy"] in {token.name for token in await tokens.list_all(closed.db)}
