"""Numbers of objects by phase and by kind, with the filters of lists."""

import asyncio
from typing import Any

import pytest

from app.api.resources.jobs import JOBS_RESOURCE
from app.db.lists import counting
from app.domain.kinds.base import JOBS
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, until_followed
from tests.support.kinds.every_kind import Collection

COUNTS = "/api/v1/jobs/counts"


async def counted(gateway: Gateway, query: str = "", **headers: str) -> dict[str, dict[str, int]]:
    """The numbers above 0, all of which are exact."""
    answer = await gateway.client.get(f"{COUNTS}?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return positive(answer.json())


def positive(body: dict[str, Any]) -> dict[str, dict[str, int]]:
    assert all(entry["isComplete"] for entry in [*body["phases"], *body["kinds"]])
    return {
        "phases": {entry["phase"]: entry["count"] for entry in body["phases"] if entry["count"]},
        "kinds": {entry["kind"]: entry["count"] for entry in body["kinds"] if entry["count"]},
    }


@pytest.mark.asyncio(loop_scope="module")
async def test_every_resource_is_counted(of: Collection) -> None:
    path = f"/api/v1/{of.resource}/counts"
    for name in ("a", "b"):
        await of.submit(name)
    body = (await of.gateway.client.get(path, params={"namespace": of.namespace})).json()
    phase = "Queued" if of.resource == JOBS else ""
    assert positive(body) == {"phases": {phase: 2}, "kinds": {of.kind: 2}}
    assert len(body["phases"]) == len({entry["phase"] for entry in body["phases"]}) >= 5
    one = (await of.gateway.client.get(path, params={"namespace": of.namespace, "name": "a"})).json()
    assert positive(one) == {"phases": {phase: 1}, "kinds": {of.kind: 1}}


async def test_each_facet_ignores_its_own_filter(gateway: Gateway) -> None:
    first = await gateway.submit("first")
    await gateway.submit("second")
    await gateway.submit("third", "other")
    await gateway.conclude(first["uid"], {"phase": JobPhase.RUNNING})
    everything = {"phases": {"Queued": 2, "Running": 1}, "kinds": {"GenericJob": 3}}
    assert await counted(gateway) == everything
    assert await counted(gateway, "phase=Running") == everything | {"kinds": {"GenericJob": 1}}
    assert await counted(gateway, "kind=GenericJob") == everything
    assert await counted(gateway, "kind=MxJob") == everything | {"phases": {}}
    assert await counted(gateway, "kind=MxJob&phase=Running") == {"phases": {}, "kinds": {"GenericJob": 1}}
    assert await counted(gateway, f"namespace={NAMESPACE}&search=second") == {
        "phases": {"Queued": 1},
        "kinds": {"GenericJob": 1},
    }


async def test_all_phases_and_kinds_are_listed(gateway: Gateway) -> None:
    body = (await gateway.client.get(COUNTS)).json()
    assert [entry["phase"] for entry in body["phases"]] == list(JobPhase)
    assert [entry["kind"] for entry in body["kinds"]] == JOBS_RESOURCE.kinds
    assert set(body["phases"][0]) == {"phase", "count", "isComplete"}


async def test_a_number_beyond_the_bound_is_not_complete(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "COUNTED", 2)
    for name in ("a", "b", "c"):
        created = await gateway.submit(name)
        await gateway.conclude(created["uid"], {"phase": JobPhase.SUCCEEDED})
    body = (await gateway.client.get(COUNTS)).json()
    assert {"phase": "Succeeded", "count": 2, "isComplete": False} in body["phases"]
    assert {"kind": "GenericJob", "count": 2, "isComplete": False} in body["kinds"]
    assert {"phase": "Running", "count": 0, "isComplete": True} in body["phases"]


async def test_a_token_counts_only_what_it_reaches(closed_gateway: Gateway) -> None:
    submitter = await closed_gateway.token("submitter", "*")
    for namespace in ("team", "other"):
        path = jobs_path(namespace)
        body = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "GenericJob", "metadata": {"name": "a"}}
        spec = {"replicaSpecs": [{"type": "w", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]}
        answer = await closed_gateway.client.post(path, json=body | {"spec": spec}, headers=submitter)
        assert answer.status_code == 201, answer.text
    viewer = await closed_gateway.token("viewer", "team")
    assert (await counted(closed_gateway, **viewer))["kinds"] == {"GenericJob": 1}
    assert (await counted(closed_gateway, **submitter))["kinds"] == {"GenericJob": 2}
    refused = await closed_gateway.client.get(f"{COUNTS}?namespace=other", headers=viewer)
    assert (refused.status_code, refused.json()["code"]) == (404, "NotFound")
    assert (await closed_gateway.client.get(COUNTS)).status_code == 401


async def test_counts_can_be_polled(gateway: Gateway) -> None:
    """Also a change by which an object no longer matches ends the wait."""
    created = await gateway.submit("one")
    await until_followed(gateway)
    before = await gateway.client.get(f"{COUNTS}?phase=Queued")
    assert "jobgate-feed-position" in before.headers
    known = {"If-None-Match": before.headers["etag"]}
    assert (await gateway.client.get(f"{COUNTS}?phase=Queued", headers=known)).status_code == 304
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        polling = group.create_task(gateway.client.get(f"{COUNTS}?phase=Queued", headers=known | {"Prefer": "wait=50"}))
        await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING})
    after = polling.result()
    assert (after.status_code, positive(after.json())) == (200, {"phases": {"Running": 1}, "kinds": {}})
    known = {"If-None-Match": after.headers["etag"], "Prefer": "wait=50"}
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        polling = group.create_task(gateway.client.get(f"{COUNTS}?phase=Queued", headers=known))
        assert (await gateway.client.delete(jobs_path(NAMESPACE, "one"))).status_code == 202
    assert positive(polling.result().json()) == {"phases": {}, "kinds": {}}


async def test_a_job_may_have_the_name_of_the_route(gateway: Gateway) -> None:
    await gateway.submit("counts")
    assert (await gateway.client.get(jobs_path(NAMESPACE, "counts"))).json()["name"] == "counts"


async def test_a_page_size_is_no_parameter_of_counts(gateway: Gateway) -> None:
    answer = await gateway.client.get(f"{COUNTS}?pageSize=3")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "UnknownParameter")
