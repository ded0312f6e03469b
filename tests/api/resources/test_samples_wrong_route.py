"""A manifest that is posted to the route of another resource is refused, and the error names the right route."""

from typing import Any

import pytest
import yaml

from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest
from tests.support.kinds.samples import JOBS, SETS, path, sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = {"jobs": manifest(), SETS: sample(SETS), JOBS: sample(JOBS)}
ROUTES = {"jobs": jobs_path(), SETS: path(SETS), JOBS: path(JOBS)}


def names_the_route(problem: Any, kind: str, right: str, pointer: str = "/kind") -> bool:
    (error,) = problem["errors"]
    found = (error["pointer"], error["code"], error["accepted"])
    return found == (pointer, "WrongRoute", f"POST {ROUTES[right]}") and kind in error["detail"]


@pytest.mark.parametrize(("posted", "to"), [(kind, route) for kind in DOCUMENTS for route in ROUTES if kind != route])
@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_a_manifest_of_another_resource_is_refused_with_its_route(
    posted: str, to: str, query: str, shared_gateway: Gateway
) -> None:
    document = DOCUMENTS[posted]
    answer = await shared_gateway.client.post(ROUTES[to] + query, json=document)
    assert (answer.status_code, answer.json()["code"]) == (422, "WrongRoute"), answer.text
    assert names_the_route(answer.json(), document["kind"], posted)
    assert ROUTES[posted] in answer.json()["detail"]
    text = yaml.safe_dump(document)
    as_yaml = await shared_gateway.client.post(
        ROUTES[to] + query, content=text, headers={"Content-Type": "application/yaml"}
    )
    assert as_yaml.json() == answer.json()


@pytest.mark.parametrize("posted", [SETS, JOBS])
async def test_a_sample_in_a_list_of_jobs_is_refused_with_its_route(posted: str, shared_gateway: Gateway) -> None:
    items = [manifest("first"), DOCUMENTS[posted]]
    together = await shared_gateway.client.post(jobs_path(), json={"apiVersion": "v1", "kind": "List", "items": items})
    assert (together.status_code, together.json()["code"]) == (422, "InvalidManifest")
    assert names_the_route(together.json(), DOCUMENTS[posted]["kind"], posted, "/items/1/kind")
    assert (await shared_gateway.client.get(jobs_path())).json()["items"] == []


@pytest.mark.parametrize("posted", [SETS, JOBS])
async def test_a_sample_in_a_batch_of_jobs_is_refused_with_its_route(posted: str, shared_gateway: Gateway) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [DOCUMENTS[posted], {"kind": "None"}]}
    answer = await shared_gateway.client.post(jobs_path(NAMESPACE, "batch"), json=listed)
    wrong, unknown = (item["problem"] for item in answer.json()["items"])
    assert (wrong["status"], wrong["code"]) == (422, "WrongRoute")
    assert names_the_route(wrong, DOCUMENTS[posted]["kind"], posted)
    assert unknown["code"] == "InvalidManifest"


@pytest.mark.parametrize("resource", [SETS, JOBS])
async def test_an_unknown_version_is_refused_with_the_route(resource: str, shared_gateway: Gateway) -> None:
    for version in ("batch.paddlepaddle.org/v2", "v1", None):
        answer = await shared_gateway.client.post(jobs_path(), json=DOCUMENTS[resource] | {"apiVersion": version})
        assert answer.json()["code"] == "WrongRoute"
    other = await shared_gateway.client.post(path(resource), json=manifest() | {"kind": "MxJob"})
    assert names_the_route(other.json(), "MxJob", "jobs")
