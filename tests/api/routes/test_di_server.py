"""The REST API of DI-orchestrator's server: envelope, token of the job, addresses, scaling and profilings."""

import asyncio
from typing import Any

import pytest

from app.domain.access.namespaces import NamespaceSet
from app.domain.plan import Rank
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ReplicaPhase
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, running_gateway
from tests.support.kinds.di_jobs import at, di_job, own, refused, said, submit


async def collectors(gateway: Gateway) -> int:
    tasks = (await gateway.client.get(jobs_path(NAMESPACE, "atari"))).json()["spec"]["tasks"]
    return int(next(task["replicas"] for task in tasks if task["type"] == "collector"))


async def scale_records(gateway: Gateway) -> list[tuple[str, int, int, str]]:
    found = (await gateway.client.get(jobs_path(NAMESPACE, "atari", "scale-records"))).json()["items"]
    return [(item["task"], item["fromReplicas"], item["toReplicas"], item["actor"]) for item in found]


def running(task: str, rank: int, ip: str | None) -> Replica:
    attempt = Attempt(number=1, pod_uid=f"{task}-{rank}", phase=ReplicaPhase.RUNNING, pod_ip=ip)
    return Replica(key=Rank(task, rank), attempt=attempt)


async def test_replicas_are_addresses_by_global_rank(gateway: Gateway) -> None:
    job = await submit(gateway)
    before = await gateway.client.get(at("replicas"), headers=own(gateway, job))
    assert said(before, "successfully get replicas") == ["", "", "", ""]
    replicas = [
        running("learner", 0, "10.0.0.1"),
        running("collector", 0, None),
        running("collector", 1, "10.0.0.3"),
        running("evaluator", 0, "10.0.0.4"),
    ]
    await gateway.conclude(job["uid"], {"phase": JobPhase.RUNNING}, replicas=replicas)
    after = await gateway.client.get(at("replicas"), headers=own(gateway, job))
    assert said(after, "successfully get replicas") == ["10.0.0.1:22270", "", "10.0.0.3:22270", "10.0.0.4:22270"]


async def test_a_job_scales_itself(gateway: Gateway) -> None:
    job = await submit(gateway)
    headers = own(gateway, job)
    added = await gateway.client.post(at("replicas"), headers=headers, json={"replicas": 3, "task": "collector"})
    assert said(added, "successfully add replicas") is None
    assert await collectors(gateway) == 5
    removed = await gateway.client.request(
        "DELETE", at("replicas"), headers=headers, json={"replicas": 1, "task": "collector"}
    )
    assert said(removed, "successfully delete replicas") is None
    assert await collectors(gateway) == 4
    assert await scale_records(gateway) == [("collector", 2, 5, "job/atari"), ("collector", 5, 4, "job/atari")]


async def test_concurrent_scale_requests_all_count(gateway: Gateway) -> None:
    job = await submit(gateway)
    headers = own(gateway, job)
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(gateway.client.post(at("replicas"), headers=headers, json={"replicas": 1}))
    assert await collectors(gateway) == 6
    assert [record[1:3] for record in await scale_records(gateway)] == [(2, 3), (3, 4), (4, 5), (5, 6)]


async def test_the_default_task_is_the_collector(gateway: Gateway) -> None:
    job = await submit(gateway)
    answer = await gateway.client.post(at("replicas"), headers=own(gateway, job), json={"replicas": 1})
    assert said(answer, "successfully add replicas") is None
    assert await collectors(gateway) == 3


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("POST", {"replicas": 2}),
        ("DELETE", {"replicas": 2, "task": "collector"}),
        ("DELETE", {"replicas": 1, "task": "learner"}),
    ],
)
async def test_a_size_beyond_the_bounds_is_refused(method: str, asked: dict[str, Any], gateway: Gateway) -> None:
    job = await submit(gateway, minReplicas=3, maxReplicas=5)
    answer = await gateway.client.request(method, at("replicas"), headers=own(gateway, job), json=asked)
    assert refused(answer, 409)
    assert await scale_records(gateway) == []


async def test_an_ended_job_keeps_its_size(gateway: Gateway) -> None:
    job = await submit(gateway)
    await gateway.conclude(job["uid"], {"phase": JobPhase.SUCCEEDED})
    answer = await gateway.client.post(at("replicas"), headers=own(gateway, job), json={"replicas": 1})
    assert "ended" in refused(answer, 409)


@pytest.mark.parametrize("deleted", [False, True])
async def test_an_ended_job_accepts_no_report(gateway: Gateway, *, deleted: bool) -> None:
    job = await submit(gateway)
    headers = own(gateway, job)
    said(
        await gateway.client.post(at("profilings"), headers=headers, json={"fps": 1}), "successfully report profilings"
    )
    if deleted:
        assert (await gateway.client.delete(jobs_path(NAMESPACE, "atari"))).status_code == 202
    await gateway.conclude(job["uid"], {"phase": JobPhase.CANCELLED if deleted else JobPhase.SUCCEEDED})
    before = (await gateway.client.get(f"/api/v1/jobs/{job['uid']}")).json()
    for report in ({"fps": 2}, {"fps": 1}):
        answer = await gateway.client.post(at("profilings"), headers=headers, json=report)
        assert "ended" in refused(answer, 409)
    for method in ("POST", "DELETE"):
        answer = await gateway.client.request(method, at("replicas"), headers=headers, json={"replicas": 1})
        assert refused(answer, 409)
    after = (await gateway.client.get(f"/api/v1/jobs/{job['uid']}")).json()
    assert after == before
    assert after["nativeStatus"]["profilings"] == {"fps": 1}


async def test_profilings_are_stored_and_served(gateway: Gateway) -> None:
    job = await submit(gateway)
    headers = own(gateway, job)
    assert said(await gateway.client.get(at("profilings"), headers=headers), "successfully get profilings") == {}
    for report in ({"collector": {"fps": 12.5}, "steps": [1, 2]}, {"later": True}):
        answer = await gateway.client.post(at("profilings"), headers=headers, json=report)
        assert said(answer, "successfully report profilings") is None
        kept = await gateway.client.get(at("profilings"), headers=headers)
        assert said(kept, "successfully get profilings") == report
        native = (await gateway.client.get(jobs_path(NAMESPACE, "atari"))).json()["nativeStatus"]
        assert native["profilings"] == report


async def test_a_body_needs_no_content_type(gateway: Gateway) -> None:
    job = await submit(gateway)
    answer = await gateway.client.post(at("profilings"), headers=own(gateway, job), content=b'{"a": 1}')
    assert said(answer, "successfully report profilings") is None


EVERYTHING = [("GET", "replicas"), ("POST", "replicas"), ("DELETE", "replicas"), ("GET", "profilings")]
EVERYTHING += [("POST", "profilings")]


@pytest.mark.parametrize(("method", "what"), EVERYTHING)
async def test_only_the_token_of_the_job_works(method: str, what: str, closed_gateway: Gateway) -> None:
    gateway = closed_gateway
    admin = await gateway.token("admin", "*")
    jobs = {}
    for name in ("atari", "other"):
        jobs[name] = (await gateway.client.post(jobs_path(), json=di_job(name), headers=admin)).json()
    other_tokens = [
        {},
        admin,
        await gateway.token("submitter", NAMESPACE),
        own(gateway, jobs["other"]),
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer " + "a" * 9999},
        {"Authorization": own(gateway, jobs["atari"])["Authorization"] + "x"},
    ]
    for headers in other_tokens:
        answer = await gateway.client.request(method, at(what), headers=headers, json={"replicas": 1})
        assert refused(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    own_token = await gateway.client.request(
        method, at(what), headers=own(gateway, jobs["atari"]), json={"replicas": 1}
    )
    assert own_token.status_code == 200
    elsewhere = await gateway.client.get("/api/v1/jobs", headers=own(gateway, jobs["atari"]))
    assert elsewhere.status_code == 401


async def test_a_gateway_without_tokens_still_requires_the_token_of_the_job(gateway: Gateway) -> None:
    job = await submit(gateway)
    assert refused(await gateway.client.get(at("replicas")), 401)
    assert (await gateway.client.get(at("replicas"), headers=own(gateway, job))).status_code == 200


async def test_the_token_of_a_former_job_with_the_same_name_is_refused(gateway: Gateway) -> None:
    former = await submit(gateway)
    await gateway.conclude(former["uid"], {"phase": JobPhase.SUCCEEDED})
    assert (await gateway.client.get(at("replicas"), headers=own(gateway, former))).status_code == 200
    present = await submit(gateway)
    assert refused(await gateway.client.get(at("replicas"), headers=own(gateway, former)), 401)
    assert (await gateway.client.get(at("replicas"), headers=own(gateway, present))).status_code == 200


async def test_a_job_of_another_kind_is_not_found(gateway: Gateway) -> None:
    job = await gateway.submit("generic")
    answer = await gateway.client.get(at("replicas", f"{NAMESPACE}.generic"), headers=own(gateway, job))
    assert refused(answer, 404)


async def test_profilings_of_the_maximum_size_are_stored(gateway: Gateway) -> None:
    job = await submit(gateway)
    body = b'{"a":"' + b"x" * (64 * 1024 - 8) + b'"}'
    answer = await gateway.client.post(at("profilings"), headers=own(gateway, job), content=body)
    assert said(answer, "successfully report profilings") is None


async def test_an_unexpected_exception_is_enveloped_and_reveals_nothing(gateway: Gateway) -> None:
    job = await submit(gateway)

    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    gateway.services.di_server.addresses = broken  # type: ignore[assignment, method-assign]
    answer = await gateway.client.get(at("replicas"), headers=own(gateway, job))
    assert "secret" not in refused(answer, 500)
    assert answer.headers["x-request-id"]


async def test_only_jobs_of_served_namespaces_are_accessible(database_url: str) -> None:
    async with running_gateway(database_url) as gateway:
        elsewhere = own(gateway, await submit(gateway))
    async with running_gateway(database_url, namespaces=NamespaceSet.of("served")) as gateway:
        answer = await gateway.client.post(jobs_path("served"), json=di_job())
        headers = own(gateway, answer.json())
        assert (await gateway.client.get(at("replicas", "served.atari"), headers=headers)).status_code == 200
        assert "does not serve" in refused(await gateway.client.get(at("replicas"), headers=elsewhere), 404)
        assert refused(await gateway.client.get(at("replicas"), headers=headers), 401)


async def test_metrics_name_the_route(gateway: Gateway) -> None:
    job = await submit(gateway)
    await gateway.client.get(at("replicas"), headers=own(gateway, job))
    text = (await gateway.client.get("/metrics")).text
    assert 'method="GET",route="/v2alpha1/job/{job_id}/replicas",status="200"' in text
    assert "atari" not in text
