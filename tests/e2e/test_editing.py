"""Dry run, edits, pause and retry of jobs, and repeated submissions after a restart."""

import httpx2

from tests.e2e.user import DEADLINE, User, job
from tests.support.clusters.kube import KubeClient
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until

FOREVER = "exec sleep 600"


async def test_a_dry_run_shows_the_objects_and_creates_none(user: User, api: KubeClient) -> None:
    manifest = job("dry", FOREVER, replicas=2)
    shown = (await user.call("POST", "?dryRun=All", json=manifest)).json()
    assert (shown["dryRun"], shown["plan"]["pods"]) == (True, ["dry-worker-0", "dry-worker-1"])
    await user.call("GET", "/dry", status=404)
    assert (await user.read(""))["items"] == []
    for item in shown["manifests"]:
        if item["kind"] == "Pod":
            path = f"/api/v1/namespaces/{user.namespace}/pods"
            owners = item["metadata"].pop("ownerReferences", None)
            accepted = (await api.post(path, item, dryRun="All", fieldValidation="Strict")).ok()
            assert accepted["metadata"]["name"] in shown["plan"]["pods"], owners
    assert (await api.get(f"/api/v1/namespaces/{user.namespace}/pods")).ok()["items"] == []
    refused = (
        await user.call("POST", "?dryRun=All", status=422, json=job("dry", FOREVER, cleanUpPolicy="Some"))
    ).json()
    assert refused["errors"][0]["pointer"] == "/spec/cleanUpPolicy"


async def test_put_and_patch_change_mutable_fields_only(user: User) -> None:
    await user.submit(job("edited", FOREVER))
    await user.until("edited", "Running")
    before = await user.call("GET", "/edited")
    merge = {"Content-Type": "application/merge-patch+json"}
    body = b'{"metadata": {"labels": {"team": "vision"}}}'
    patched = (await user.call("PATCH", "/edited", 202, content=body, headers=merge)).json()
    assert (patched["labels"], patched["generation"]) == ({"team": "vision"}, 1)
    stale = {"If-Match": before.headers["ETag"]}
    await user.call("PUT", "/edited", 412, json=job("edited", FOREVER), headers=stale)
    pause = {"pause": {"enabled": True}}
    await user.call("PUT", "/edited", 202, json=job("edited", FOREVER, runMode=pause, cleanUpPolicy="All"))
    paused = await user.until("edited", "Paused")
    now = await user.read("/edited")
    assert (now["labels"], now["spec"]["cleanUpPolicy"], now["generation"]) == ({}, "All", 2)
    assert paused["observedGeneration"] == 2
    refused = (await user.call("PUT", "/edited", 422, json=job("edited", "exec sleep 5", runMode=pause))).json()
    assert {error["code"] for error in refused["errors"]} == {"Immutable"}
    assert "/spec/replicaSpecs/0" in refused["errors"][0]["pointer"]
    assert (await user.read("/edited"))["generation"] == 2
    await user.call("POST", "/edited/resume", 202)
    await user.until("edited", "Running")
    await user.call("DELETE", "/edited", 202)
    await user.until("edited", "Cancelled")


async def test_retry_repeats_a_job_under_another_name(user: User) -> None:
    first = await user.submit(job("tried", "exit 9"))
    assert (await user.ended("tried"))["phase"] == "Failed"
    again = (await user.call("POST", "/tried/retry", 201, json={"name": "tried-again"})).json()
    assert (again["retryOf"], again["spec"]) == (first["uid"], first["spec"])
    assert (await user.ended("tried-again"))["phase"] == "Failed"


async def test_a_new_job_of_the_same_name_waits_until_the_old_objects_are_deleted(user: User, api: KubeClient) -> None:
    manifest = job("again", FOREVER)
    path = f"/api/v1/namespaces/{user.namespace}/pods/again-worker-0"
    first = await user.submit(manifest)
    await user.until("again", "Running")
    taken = (await user.call("POST", status=409, json=manifest)).json()
    assert taken["code"] == "NameTaken"
    held = {"metadata": {"finalizers": ["jobgate.dev/evidence", "example.com/hold"]}}
    (await api.patch(path, held)).ok()
    await user.call("POST", "/again/cancel", 202)
    await user.until("again", "Cancelled")
    second = await user.submit(manifest)
    await until(
        lambda: user.read("/again/status"),
        lambda found: found["status"]["reason"] == "PreviousObjects",
        what="the new job waits for the old pod",
        within=DEADLINE,
    )
    (await api.patch(path, {"metadata": {"finalizers": None}})).ok()
    await user.until("again", "Running")
    pod = (await api.get(path)).ok()
    assert pod["metadata"]["labels"]["jobgate.dev/job-uid"] == second["uid"] != first["uid"]
    await user.call("DELETE", "/again", 202)


async def test_a_submission_repeated_after_a_restart_creates_no_second_job(
    own_gateway: GatewayProcess, namespace: str, api: KubeClient
) -> None:
    key = {"Idempotency-Key": "once"}
    manifest = job("once", FOREVER)
    url = await own_gateway.start()
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        user = User(http, namespace)
        first = await user.call("POST", status=201, json=manifest, headers=key)
        await user.until("once", "Running")
        pod = (await api.get(f"/api/v1/namespaces/{namespace}/pods/once-worker-0")).ok()["metadata"]["uid"]
    assert await own_gateway.stop() == 0
    assert await own_gateway.start() == url
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        user = User(http, namespace)
        again = await user.call("POST", status=200, json=manifest, headers=key)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.content == first.content
        other = (await user.call("POST", status=422, json=job("once", "true"), headers=key)).json()
        assert other["code"] == "IdempotencyKeyReused"
        assert len((await user.read(""))["items"]) == 1
        await _still_runs(user, api, pod)
        await user.call("DELETE", "/once", 202)
        await user.until("once", "Cancelled")


async def _still_runs(user: User, api: KubeClient, pod: str) -> None:
    """Require that the pod survived the restart of the gateway, and that the gateway observes it again."""
    await until(
        lambda: user.call("GET", "/once/status"),
        lambda answer: answer.headers["Jobgate-Stale"] == "false",
        what="a fresh status",
        within=120,
    )
    found = (await api.get(f"/api/v1/namespaces/{user.namespace}/pods/once-worker-0")).ok()
    assert found["metadata"]["uid"] == pod
    assert (await user.read("/once/replicas"))["items"][0]["attempt"] == 1
