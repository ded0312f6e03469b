"""The limits on planned pods over HTTP: which requests are refused or wait, and when pods are free again."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from app.db.reservations import room_waits
from app.domain.kinds import registry
from app.domain.kinds.job_kind import Limits
from app.domain.reservations.pod_limits import PodLimits
from app.domain.vocabulary import JobPhase
from tests.support.gateways.gateway import Gateway, jobs_path, running_gateway
from tests.support.kinds import resizable_job

PATIENT = PodLimits(installation=50, namespace=4, waiting=3)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest_asyncio.fixture
async def tight(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    """Run a gateway with a limit of five pods in total, and of four in a namespace."""
    monkeypatch.setattr(registry, "JOB_KINDS", resizable_job.KINDS_WITH_RESIZABLE)
    limits = Limits(pods=PodLimits(installation=5, namespace=4))
    async with running_gateway(database_url, limits=limits) as gateway:
        yield gateway


@pytest_asyncio.fixture
async def patient(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    """Run a gateway with a limit of four pods in a namespace, in which three jobs may wait for room."""
    monkeypatch.setattr(registry, "JOB_KINDS", resizable_job.KINDS_WITH_RESIZABLE)
    async with running_gateway(database_url, limits=Limits(pods=PATIENT)) as gateway:
        yield gateway


async def post(gateway: Gateway, name: str, workers: int, namespace: str = "team") -> httpx2.Response:
    return await gateway.client.post(jobs_path(namespace), json=resizable_job.manifest(name, {"worker": workers}))


def refusal(answer: httpx2.Response) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (409, "TooManyPods")
    (error,) = answer.json()["errors"]
    return dict(error)


async def test_a_job_over_the_pod_limit_is_refused(tight: Gateway) -> None:
    assert (await post(tight, "first", 3)).status_code == 201
    error = refusal(await post(tight, "second", 2))
    assert error["pointer"] == "/spec"
    assert error["detail"] == ("2 more pods do not fit: the jobs of the namespace team that have not ended have 3 of 4")
    assert error["accepted"] == "at most 1 pod, or wait until other jobs end"
    assert (await post(tight, "other", 2, "other")).status_code == 201
    assert "this installation that have not ended have 5 of 5" in refusal(await post(tight, "third", 1))["detail"]


async def test_a_dry_run_does_not_compare_a_job_with_others(tight: Gateway) -> None:
    assert (await post(tight, "first", 3)).status_code == 201
    for name, code in (("first", "NameTaken"), ("second", "TooManyPods")):
        manifest = resizable_job.manifest(name, {"worker": 2})
        checked = await tight.client.post(jobs_path("team"), json=manifest, params={"dryRun": "All"})
        stored = await tight.client.post(jobs_path("team"), json=manifest)
        assert (checked.status_code, stored.status_code, stored.json()["code"]) == (200, 409, code)


async def test_a_list_over_the_pod_limit_is_refused_as_a_whole(tight: Gateway) -> None:
    items = [resizable_job.manifest(name, {"worker": 2}) for name in ("one", "two", "three")]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    error = refusal(await tight.client.post(jobs_path("team"), json=document))
    assert error["pointer"] == "/items/2/spec"
    assert (await tight.client.get(jobs_path("team"))).json()["items"] == []


async def test_scale_up_and_retry_need_free_pods_and_an_ended_job_frees_some(tight: Gateway) -> None:
    uid = (await post(tight, "first", 2)).json()["uid"]
    assert (await post(tight, "second", 2)).status_code == 201
    scale = f"{jobs_path('team', 'second')}/scale"
    assert refusal(await tight.client.post(scale, json={"replicas": 3}))["pointer"] == "/spec"
    await tight.conclude(uid, {"phase": JobPhase.FAILED, "finished_at": AT})
    assert (await tight.client.post(scale, json={"replicas": 3})).status_code == 202
    assert refusal(await tight.client.post(f"{jobs_path('team', 'first')}/retry"))["pointer"] == "/spec"
    assert (await tight.client.post(scale, json={"replicas": 2})).status_code == 202
    assert (await tight.client.post(f"{jobs_path('team', 'first')}/retry")).status_code == 201


async def give_room(gateway: Gateway) -> int:
    """Give room as the controller does. Return to how many jobs."""
    return len(await room_waits.start(gateway.db, await gateway.lease(), "team", PATIENT))


async def test_a_job_over_the_pod_limit_of_its_namespace_waits(patient: Gateway) -> None:
    first = (await post(patient, "first", 3)).json()["uid"]
    answers = [await post(patient, name, workers) for name, workers in (("second", 2), ("third", 1), ("larger", 5))]
    assert [answer.status_code for answer in answers] == [201, 201, 409]
    assert answers[0].json()["status"]["phase"] == "Queued"
    assert refusal(answers[2])["detail"] == "5 pods never fit: the jobs of the namespace team may have 4 together"
    scale = f"{jobs_path('team', 'first')}/scale"
    assert "2 jobs wait for room before" in refusal(await patient.client.post(scale, json={"replicas": 4}))["detail"]
    # What waits may change its size, and keeps its turn.
    scale = f"{jobs_path('team', 'second')}/scale"
    assert (await patient.client.post(scale, json={"replicas": 4})).status_code == 202
    assert refusal(await patient.client.post(scale, json={"replicas": 5}))["pointer"] == "/spec"
    assert await give_room(patient) == 0
    await patient.conclude(first, {"phase": JobPhase.FAILED, "finished_at": AT})
    retried = await patient.client.post(f"{jobs_path('team', 'first')}/retry")
    assert retried.status_code == 201
    assert refusal(await post(patient, "fourth", 1))["detail"].endswith("and 3 jobs wait for room before")
    assert await give_room(patient) == 1
    assert (await patient.client.delete(jobs_path("team", "third"))).status_code == 202
    await patient.conclude(answers[1].json()["uid"], {"phase": JobPhase.CANCELLED, "finished_at": AT})
    await patient.conclude(answers[0].json()["uid"], {"phase": JobPhase.SUCCEEDED, "finished_at": AT})
    assert await give_room(patient) == 1
    assert (await post(patient, "fifth", 1)).status_code == 201


async def test_a_list_waits_as_a_whole_for_room_for_each_of_its_jobs(patient: Gateway) -> None:
    items = [resizable_job.manifest(name, {"worker": 3}) for name in ("one", "two", "three")]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    assert (await patient.client.post(jobs_path("team"), json=document)).status_code == 201
    assert await give_room(patient) == 0
