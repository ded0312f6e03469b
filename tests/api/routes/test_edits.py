"""Edits, actions and deletions: what may change, the answers, and the history."""

from typing import Any

import pytest

from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import Gateway, manifest

PATCH = {"Content-Type": "application/merge-patch+json"}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def gateway(own_namespace: Gateway) -> Gateway:
    return own_namespace


async def history(gateway: Gateway) -> list[tuple[str, str, str]]:
    items = (await gateway.client.get(gateway.path("hello", "history"))).json()["items"]
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    return [(item["reason"], item["message"], item["actor"]) for item in items]


async def test_mutable_fields_can_be_edited(gateway: Gateway) -> None:
    await gateway.submit()
    answer = await gateway.client.patch(gateway.path("hello"), json={"spec": {"cleanUpPolicy": "All"}}, headers=PATCH)
    assert answer.status_code == 202
    assert answer.json()["generation"] == 2
    assert answer.json()["spec"]["cleanUpPolicy"] == "All"
    same = await gateway.client.patch(gateway.path("hello"), json={"spec": {"cleanUpPolicy": "All"}}, headers=PATCH)
    assert same.json()["generation"] == 2
    put = await gateway.client.put(gateway.path("hello"), json=manifest("hello", labels={"a": "b"}))
    assert put.status_code == 202
    assert (put.json()["labels"], put.json()["spec"]["cleanUpPolicy"]) == ({"a": "b"}, "None")


_SPEC = {"cleanUpPolicy": "All"}
_LABELS = {"team": "vision"}
_DEADLINE = {"jobgate.dev/active-deadline-seconds": "60"}


@pytest.mark.parametrize(
    ("patch", "generation", "edited"),
    [
        pytest.param({"spec": _SPEC}, 2, True, id="spec"),
        pytest.param({"metadata": {"labels": _LABELS}}, 1, True, id="labels"),
        pytest.param({"metadata": {"annotations": _DEADLINE}}, 1, True, id="annotations"),
        pytest.param({"spec": _SPEC, "metadata": {"labels": _LABELS}}, 2, True, id="spec and labels"),
        pytest.param({"spec": {"cleanUpPolicy": "None"}}, 1, False, id="nothing new"),
    ],
)
async def test_only_an_edit_of_the_spec_raises_the_generation(
    patch: dict[str, Any],
    generation: int,
    edited: bool,  # noqa: FBT001
    gateway: Gateway,
) -> None:
    created = await gateway.submit()
    await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING, "observed_generation": 1})
    before = await gateway.client.get(gateway.path("hello"))
    answer = await gateway.client.patch(gateway.path("hello"), json=patch, headers=PATCH)
    after = await gateway.client.get(gateway.path("hello"))
    metadata = patch.get("metadata", {})
    assert (answer.status_code, answer.json()) == (202 if edited else 200, after.json())
    assert (after.headers["ETag"] != before.headers["ETag"]) is edited
    assert (after.json()["generation"], after.json()["status"]["observedGeneration"]) == (generation, 1)
    assert (await gateway.client.get(gateway.path("hello", "status"))).json()["generation"] == generation
    assert after.json()["labels"] == metadata.get("labels", {})
    assert after.json()["annotations"] == metadata.get("annotations", {})
    assert after.json()["spec"] == created["spec"] | patch.get("spec", {})
    selected = await gateway.client.get(gateway.path() + "?labelSelector=team%3Dvision")
    assert len(selected.json()["items"]) == int("labels" in metadata)
    assert ("Edited", "", "anonymous") in await history(gateway) or not edited


@pytest.mark.parametrize(
    ("patch", "pointer", "code"),
    [
        ({"spec": {"service": {"x": []}}}, "/spec/service", "InvalidManifest"),
        ({"spec": {"successRules": [{"worker": [0]}]}}, "/spec/successRules", "ImmutableField"),
        ({"kind": "MxJob"}, "/kind", "ImmutableField"),
        ({"metadata": {"name": "other"}}, "/metadata/name", "ImmutableField"),
        ({"spec": {"cleanUpPolicy": "Some"}}, "/spec/cleanUpPolicy", "InvalidManifest"),
        ({"spec": {"cleanUp": 1}}, "/spec/cleanUp", "InvalidManifest"),
        ({"spec": None}, "/spec", "InvalidManifest"),
    ],
)
async def test_other_edits_are_refused(patch: Any, pointer: str, code: str, gateway: Gateway) -> None:
    created = await gateway.submit()
    answer = await gateway.client.patch(gateway.path("hello"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text
    assert (await gateway.client.get(gateway.path("hello"))).json() == created


async def test_a_patch_requires_its_media_type(gateway: Gateway) -> None:
    await gateway.submit()
    assert (await gateway.client.patch(gateway.path("hello"), json={})).status_code == 415


async def test_a_job_is_paused_and_resumed(gateway: Gateway) -> None:
    created = await gateway.submit()
    paused = await gateway.client.post(gateway.path("hello", "pause"), json={"reason": "lunch"})
    assert paused.status_code == 202
    assert paused.json()["spec"]["runMode"]["pause"]["enabled"] is True
    again = await gateway.client.post(gateway.path("hello", "pause"))
    assert (again.status_code, again.json()["generation"]) == (202, 2)  # the controller has not carried it out yet
    await gateway.conclude(created["uid"], {"phase": JobPhase.PAUSED, "observed_generation": 2})
    assert (await gateway.client.post(gateway.path("hello", "pause"))).status_code == 200
    resumed = await gateway.client.post(gateway.path("hello", "resume"))
    assert (resumed.status_code, resumed.json()["generation"]) == (202, 3)
    assert [entry[:2] for entry in await history(gateway)] == [
        ("Submitted", ""),
        ("PauseRequested", "lunch"),
        ("ResumeRequested", ""),
    ]


async def test_a_job_is_cancelled_once(gateway: Gateway) -> None:
    created = await gateway.submit()
    assert (await gateway.client.post(gateway.path("hello", "cancel"), json={"reason": "enough"})).status_code == 202
    assert (await gateway.client.post(gateway.path("hello", "cancel"))).status_code == 202
    assert (await history(gateway))[1:] == [("CancelRequested", "enough", "anonymous")]
    await gateway.conclude(created["uid"], {"phase": JobPhase.CANCELLED})
    assert (await gateway.client.post(gateway.path("hello", "cancel"))).status_code == 200


@pytest.mark.parametrize("action", ["pause", "resume", "cancel"])
async def test_actions_on_an_ended_job_are_refused(action: str, gateway: Gateway) -> None:
    created = await gateway.submit()
    await gateway.conclude(created["uid"], {"phase": JobPhase.SUCCEEDED})
    answer = await gateway.client.post(gateway.path("hello", action))
    assert (answer.status_code, answer.json()["code"]) == (409, "AlreadyFinished")
    assert "patch" not in answer.json()["detail"], "the client did not send one"


async def test_delete_keeps_the_record(gateway: Gateway) -> None:
    created = await gateway.submit()
    answer = await gateway.client.delete(gateway.path("hello") + "?reason=old")
    assert answer.status_code == 202
    assert answer.json()["deletedAt"] is not None
    assert (await gateway.client.delete(gateway.path("hello"))).status_code == 202
    assert (await history(gateway))[-1] == ("DeleteRequested", "old", "anonymous")
    assert (await gateway.client.patch(gateway.path("hello"), json={}, headers=PATCH)).status_code == 409
    assert (await gateway.client.get(f"/api/v1/jobs/{created['uid']}")).status_code == 200


async def test_a_retry_creates_a_new_job(gateway: Gateway) -> None:
    created = await gateway.submit()
    early = await gateway.client.post(gateway.path("hello", "retry"))
    assert (early.status_code, early.json()["code"]) == (409, "NotFinished")
    await gateway.conclude(created["uid"], {"phase": JobPhase.FAILED})
    retried = await gateway.client.post(gateway.path("hello", "retry"), headers={"Idempotency-Key": "once"})
    assert retried.status_code == 201
    job = retried.json()
    assert job["name"].startswith("hello-")
    assert (job["retryOf"], job["spec"]) == (created["uid"], created["spec"])
    assert retried.headers["location"] == gateway.path(job["name"])
    again = await gateway.client.post(gateway.path("hello", "retry"), headers={"Idempotency-Key": "once"})
    assert (again.status_code, again.json()) == (200, job)
    same_name = await gateway.client.post(gateway.path("hello", "retry"), json={"name": "hello"})
    assert (same_name.status_code, same_name.json()["name"]) == (201, "hello")
    assert (await gateway.client.get(gateway.path("hello"))).json()["uid"] == same_name.json()["uid"]
    await gateway.conclude(job["uid"], {"phase": JobPhase.FAILED})
    third = (await gateway.client.post(gateway.path(job["name"], "retry"))).json()
    assert len(third["name"]) == len(job["name"])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [(b'{"why": "x"}', "/why"), (b'{"reason": 1}', "/reason"), (b"[]", ""), (b'{"reason": "\\u0000"}', "/reason")],
)
async def test_invalid_bodies_of_actions_are_refused(body: bytes, pointer: str, gateway: Gateway) -> None:
    await gateway.submit()
    answer = await gateway.client.post(
        gateway.path("hello", "cancel"), content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_errors_of_the_name_of_a_retry_point_to_the_body(gateway: Gateway) -> None:
    created = await gateway.submit("hello")
    await gateway.conclude(created["uid"], {"phase": JobPhase.FAILED})
    await gateway.submit("taken")
    for name, status, code in (("A b", 422, "InvalidName"), ("", 422, "InvalidName"), ("taken", 409, "NameTaken")):
        refused = await gateway.client.post(gateway.path("hello", "retry"), json={"name": name})
        [error] = refused.json()["errors"]
        assert (refused.status_code, error["pointer"], error["code"]) == (status, "/name", code)
