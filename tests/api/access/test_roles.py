"""Access of every role to every route of the OpenAPI document: in its namespace, another one and a reserved one."""

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio

from app.domain.access.actors import Actor
from app.domain.access.namespaces import NamespaceSet
from app.services.submitting.objects import SubmitRequest
from tests.support.documents.openapi import committed_document
from tests.support.gateways.gateway import Gateway, jobs_path, manifest, running_gateway
from tests.support.kinds.samples import RESOURCES, path, sample
from tests.support.postgres import fresh_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE, THEIRS, LISTED, SYSTEM = "mine", "theirs", "monitoring", "kube-system"
RESERVED: Final = (SYSTEM, "kube-public", LISTED)
ROLES: Final = ("viewer", "submitter", "admin")
WRITES: Final = frozenset({"put", "patch", "delete", "post"})
# The least role of the routes for which it does not follow from the method.
LEAST_ROLES: Final = dict.fromkeys(
    ("rehearse_autoscaler", "redact_job", "redact_sample_set", "redact_sample_job"), "admin"
)
# Routes for the pods of one job. They accept no token of `jobgate token create`.
OF_JOBS: Final = "/v2alpha1/"
# Routes that need no token.
OPEN: Final = ("/livez", "/readyz", "/metrics", "/api/v1/oidc", "/api/v1/oidc/token")


def operations() -> list[tuple[str, str, str]]:
    """Return (operation id, method, path) of every route that requires a token of `jobgate token create`."""
    return [
        (operation["operationId"], method, route)
        for route, item in committed_document()["paths"].items()
        for method, operation in item.items()
        if route not in OPEN and not route.startswith(OF_JOBS)
    ]


def least_role(operation: str, method: str) -> str:
    return LEAST_ROLES.get(operation, "submitter" if method in WRITES else "viewer")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def closed(postgres_server_url: str, database_template: str) -> AsyncIterator[Gateway]:
    """Run a gateway with a job, a set and a sample job `there` in each namespace, reserved ones included.

    The objects in reserved namespaces were created before the namespaces were reserved.
    """
    served = NamespaceSet(never=frozenset({LISTED}))
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url) as before,
        running_gateway(url, closed=True, namespaces=served) as running,
    ):
        for namespace in (MINE, THEIRS, LISTED):
            answer = await before.client.post(jobs_path(namespace), json=manifest("there"))
            assert answer.status_code == 201, answer.text
            for resource in RESOURCES:
                at = path(resource, namespace=namespace)
                answer = await before.client.post(at, json=sample(resource, "there"))
                assert answer.status_code == 201, answer.text
        await before.services.submitter.submit(
            manifest("there"),
            SubmitRequest(namespace=SYSTEM, actor=Actor("a test")),
            key=None,
            render=lambda prepared: str(prepared.new.uid).encode(),
        )
        yield running


async def send(gateway: Gateway, method: str, route: str, namespace: str, headers: dict[str, str]) -> httpx2.Response:
    """Send a request whose body or precondition is refused if the caller is authorized, so that nothing changes."""
    url = route.format(namespace=namespace, name="there", uid="00000000-0000-4000-8000-000000000000")
    if method == "get" and url.endswith("/watch"):
        async with gateway.client.stream("GET", url, headers=headers) as stream:
            return httpx2.Response(stream.status_code)
    if method == "patch":
        headers = headers | {"Content-Type": "application/merge-patch+json"}
    body: Any = {} if method in WRITES else None
    match = {"If-Match": '"no"'} if method != "get" else {}
    return await gateway.client.request(method.upper(), url, headers=headers | match, json=body)


@pytest.mark.parametrize(("operation", "method", "route"), operations())
async def test_a_route_accepts_the_roles_of_the_table(operation: str, method: str, route: str, closed: Gateway) -> None:
    least = ROLES.index(least_role(operation, method))
    for rank, role in enumerate(ROLES):
        answer = await send(closed, method, route, MINE, await closed.token(role, "*"))
        assert (answer.status_code == 403) == (rank < least), (role, answer.status_code, answer.text)
        assert answer.status_code != 401
    assert (await send(closed, method, route, MINE, {})).status_code == 401


NAMESPACED = [operation for operation in operations() if "{namespace}" in operation[2]]


@pytest.mark.parametrize(("operation", "method", "route"), NAMESPACED)
async def test_no_route_gives_access_to_other_namespaces(
    operation: str, method: str, route: str, closed: Gateway
) -> None:
    for role in ROLES:
        elsewhere = await send(closed, method, route, THEIRS, await closed.token(role, MINE))
        assert elsewhere.status_code == 404, (operation, role, elsewhere.text)
        nowhere = await send(closed, method, route, MINE, await closed.token(role))
        assert nowhere.status_code == 404, (operation, role, nowhere.text)


@pytest.mark.parametrize(("operation", "method", "route"), NAMESPACED)
async def test_no_token_gives_access_to_a_reserved_namespace(
    operation: str, method: str, route: str, closed: Gateway
) -> None:
    everywhere, named = await closed.token("admin", "*"), await closed.token("admin", *RESERVED)
    for namespace in RESERVED:
        for headers in (everywhere, named):
            refused = await send(closed, method, route, namespace, headers)
            assert refused.status_code == 404, (operation, namespace, refused.text)


@pytest.mark.parametrize("resource", ["jobs", *RESOURCES])
async def test_lists_omit_reserved_namespaces(resource: str, closed: Gateway) -> None:
    for namespaces in (("*",), (MINE, THEIRS, *RESERVED)):
        headers = await closed.token("admin", *namespaces)
        items = (await closed.client.get(f"/api/v1/{resource}", headers=headers)).json()["items"]
        assert {item["namespace"] for item in items} == {MINE, THEIRS}
        listed = await closed.client.get(f"/api/v1/{resource}", params={"namespace": LISTED}, headers=headers)
        assert listed.status_code == 404


async def test_a_uid_of_a_reserved_namespace_is_not_found(closed: Gateway) -> None:
    headers = await closed.token("admin", "*")
    async with closed.db.read() as connection:
        rows = await connection.fetch("SELECT uid FROM jobs WHERE namespace = ANY($1)", [SYSTEM, LISTED])
    assert len(rows) == 2
    for row in rows:
        for detail in ("", "/status", "/replicas", "/history", "/scale-records", "/events", "/manifests", "/logs"):
            answer = await closed.client.get(f"/api/v1/jobs/{row['uid']}{detail}", headers=headers)
            assert answer.status_code == 404, detail


async def test_only_an_admin_of_all_namespaces_sees_the_capacity_of_the_cluster(closed: Gateway) -> None:
    for role, namespace, status in (("admin", MINE, 403), ("submitter", "*", 403), ("admin", "*", 404)):
        answer = await closed.client.post("/api/v1/autoscaler/dry-run", headers=await closed.token(role, namespace))
        assert answer.status_code == status, (role, namespace)
