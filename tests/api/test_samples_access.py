"""Who may do what with SampleSets and SampleJobs: what holds for jobs holds for them."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from app.domain.access.namespaces import NamespaceSet
from tests.support.gateway import Gateway, running_gateway
from tests.support.postgres import fresh_database
from tests.support.samples import PATCH, RESOURCES, path, sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE, THEIRS = "mine", "theirs"
READS = dict.fromkeys(("list", "get", "status", "history", "events", "watch"), 200)
WRITES = {"submit": 422, "dry-run": 422, "replace": 422, "patch": 422, "delete": 412}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def closed(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """With one `there` of each resource in either namespace."""
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, closed=True) as running,
    ):
        admin = await running.token("admin", "*")
        for namespace in (MINE, THEIRS):
            for resource in RESOURCES:
                at = path(resource, namespace=namespace)
                answer = await running.client.post(at, json=sample(resource, "there"), headers=admin)
                assert answer.status_code == 201
        yield running


async def act(client: httpx2.AsyncClient, verb: str, resource: str, namespace: str, headers: dict[str, str]) -> int:
    """Try it and return the status. What would change something is refused for its body once the caller is let in."""
    everything, one = path(resource, namespace=namespace), path(resource, "there", namespace=namespace)
    match verb:
        case "list":
            answer = await client.get(everything, headers=headers)
        case "submit":
            answer = await client.post(everything, headers=headers, json={})
        case "dry-run":
            answer = await client.post(f"{everything}?dryRun=All", headers=headers, json={})
        case "replace":
            answer = await client.put(one, headers=headers, json={})
        case "patch":
            answer = await client.patch(one, headers=headers | PATCH, json={"kind": "x"})
        case "delete":
            answer = await client.delete(one, headers=headers | {"If-Match": '"no"'})
        case "get":
            answer = await client.get(one, headers=headers)
        case "watch":
            async with client.stream("GET", f"{one}/watch", headers=headers) as stream:
                return stream.status_code
        case _:
            answer = await client.get(f"{one}/{verb}", headers=headers)
    return answer.status_code


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("role", ["viewer", "submitter", "admin"])
async def test_the_matrix(role: str, resource: str, closed: Gateway) -> None:
    own, everywhere = await closed.token(role, MINE), await closed.token(role, "*")
    for verb, allowed in (READS | WRITES).items():
        expected = 403 if role == "viewer" and verb in WRITES else allowed
        assert await act(closed.client, verb, resource, MINE, own) == expected, verb
        assert await act(closed.client, verb, resource, THEIRS, own) == 404, verb
        assert await act(closed.client, verb, resource, THEIRS, everywhere) == expected, verb
        assert await act(closed.client, verb, resource, MINE, {}) == 401, verb


@pytest.mark.parametrize("resource", RESOURCES)
async def test_lists_show_what_may_be_seen(resource: str, closed: Gateway) -> None:
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


@pytest.mark.parametrize("resource", RESOURCES)
async def test_a_gateway_of_some_namespaces_serves_no_others(
    resource: str, postgres_server_url: str, database_template: str
) -> None:
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, namespaces=NamespaceSet.of(MINE)) as narrow,
    ):
        for namespace, expected in ((MINE, 201), (THEIRS, 404)):
            answer = await narrow.client.post(path(resource, namespace=namespace), json=sample(resource))
            assert answer.status_code == expected
