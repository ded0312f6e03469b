"""A request with an Idempotency-Key has one effect, however often it is sent."""

import asyncio

from tests.support.gateways.gateway import Gateway, jobs_path, manifest

KEY = {"Idempotency-Key": "k1"}


async def test_64_clients_with_one_key_make_one_job(gateway: Gateway) -> None:
    document = manifest("x") | {"metadata": {"generateName": "run-"}}
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(gateway.client.post(jobs_path(), json=document, headers=KEY)) for _ in range(64)]
    answers = [call.result() for call in calls]
    assert sorted({answer.status_code for answer in answers}) == [200, 201], answers[0].text
    assert [answer.status_code for answer in answers].count(201) == 1
    assert len({answer.content for answer in answers}) == 1
    for answer in answers:
        assert answer.headers.get("idempotency-replayed") == ("true" if answer.status_code == 200 else None)
        assert answer.headers["location"].endswith(answer.json()["name"])
    assert len((await gateway.client.get("/api/v1/jobs")).json()["items"]) == 1


async def test_64_clients_with_one_name_make_one_job(gateway: Gateway) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(gateway.client.post(jobs_path(), json=manifest("only"))) for _ in range(64)]
    statuses = sorted(call.result().status_code for call in calls)
    assert statuses == [201] + [409] * 63
    conflict = next(call.result().json() for call in calls if call.result().status_code == 409)
    assert conflict["code"] == "NameTaken"
    assert "only" in conflict["errors"][0]["detail"]


async def test_the_same_request_in_another_format_is_a_repetition(gateway: Gateway) -> None:
    first = await gateway.client.post(jobs_path(), json=manifest("a"), headers=KEY)
    yaml = """
        kind: GenericJob
        apiVersion: batch.tensorstack.dev/v1beta1
        metadata: {name: a}
        spec: {replicaSpecs: [{type: worker, replicas: 2, restartPolicy: {policy: Never},
          template: {spec: {containers: [{name: main, image: busybox, command: ['true']}]}}}]}
    """
    again = await gateway.client.post(jobs_path(), content=yaml, headers=KEY | {"Content-Type": "application/yaml"})
    assert (again.status_code, again.content) == (200, first.content)


async def test_a_key_of_another_request_is_refused(gateway: Gateway) -> None:
    await gateway.client.post(jobs_path(), json=manifest("a"), headers=KEY)
    other = await gateway.client.post(jobs_path(), json=manifest("b"), headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "IdempotencyKeyReused")
    elsewhere = await gateway.client.post(jobs_path("other"), json=manifest("a"), headers=KEY)
    assert elsewhere.status_code == 201  # the path is part of the scope


async def test_failed_requests_and_dry_runs_do_not_use_the_key(gateway: Gateway) -> None:
    assert (await gateway.client.post(jobs_path(), json={"kind": "x"}, headers=KEY)).status_code == 422
    dry = await gateway.client.post(jobs_path() + "?dryRun=All", json=manifest("a"), headers=KEY)
    assert dry.status_code == 200
    assert [item["kind"] for item in dry.json()["manifests"]].count("Pod") == 2
    assert dry.json()["plan"]["pods"] == ["a-worker-0", "a-worker-1"]
    assert (await gateway.client.get("/api/v1/jobs")).json()["items"] == []
    assert (await gateway.client.post(jobs_path(), json=manifest("a"), headers=KEY)).status_code == 201


async def test_the_first_answer_is_replayed_after_the_job_has_changed(gateway: Gateway) -> None:
    first = await gateway.client.post(jobs_path(), json=manifest("a"), headers=KEY)
    assert (await gateway.client.delete(first.headers["location"])).status_code == 202
    again = await gateway.client.post(jobs_path(), json=manifest("a"), headers=KEY)
    assert (again.status_code, again.content) == (200, first.content)
