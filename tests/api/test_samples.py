"""SampleSets and SampleJobs over HTTP: what is answered to what, and with which headers. One gateway for all of it:
each test has a namespace of its own.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import yaml

from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase
from tests.support.gateway import Gateway, jobs_path, manifest
from tests.support.samples import JOBS, PATCH, RESOURCES, SETS, conclude, path, sample, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = {SETS: "SampleSet", JOBS: "SampleJob"}
BOTH = pytest.mark.parametrize("resource", RESOURCES)


@dataclass(frozen=True)
class Place:
    """A namespace of the gateway that no other test uses."""

    gateway: Gateway
    namespace: str

    def path(self, resource: str, *more: str) -> str:
        return path(resource, *more, namespace=self.namespace)

    async def submit(self, resource: str, name: str = "one", **more: Any) -> dict[str, Any]:
        return await submit(self.gateway, resource, name, namespace=self.namespace, **more)

    async def get(self, resource: str, *more: str, **headers: str) -> Any:
        return await self.gateway.client.get(self.path(resource, *more), headers=headers)


@pytest.fixture
def place(hostile: Gateway) -> Place:
    return Place(hostile, f"ns-{uuid4().hex[:12]}")


async def test_what_is_new_has_every_field(place: Place) -> None:
    shown = await place.submit(SETS, labels={"team": "vision"})
    assert (shown["kind"], shown["generation"], shown["observedGeneration"]) == ("SampleSet", 1, 0)
    assert (shown["phase"], shown["reason"], shown["message"]) == ("", "", "")
    assert (shown["labels"], shown["createdBy"]) == ({"team": "vision"}, "anonymous")
    assert shown["runtime"] == {"ready": 0, "wanted": 2}
    assert shown["spec"]["csi"] == {"driver": "juicefs"}
    assert shown["nativeStatus"] == {"phase": ""}
    for absent in ("deletion", "observedAt", "cacheObservedAt", "cache", "jobs", "sampleJobs"):
        assert shown[absent] is None
    job = await place.submit(JOBS)
    assert (job["type"], job["sampleSet"], job["jobName"]) == ("warmup", "one", None)


@BOTH
async def test_a_submission(resource: str, place: Place) -> None:
    url = place.path(resource)
    answer = await place.gateway.client.post(url, json=sample(resource))
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{url}/one"
    assert answer.headers["cache-control"] == "no-store"
    read = await place.gateway.client.get(answer.headers["location"])
    assert read.json()["uid"] == answer.json()["uid"]
    text = yaml.safe_dump(sample(resource, "two"))
    as_yaml = await place.gateway.client.post(url, content=text, headers={"Content-Type": "application/yaml"})
    assert (as_yaml.status_code, as_yaml.json()["name"]) == (201, "two")
    drawn = sample(resource) | {"metadata": {"generateName": "run-", "namespace": place.namespace}}
    first, second = [(await place.gateway.client.post(url, json=drawn)).json()["name"] for _ in range(2)]
    assert first != second
    assert first.startswith("run-")


@BOTH
async def test_a_dry_run_stores_nothing(resource: str, place: Place) -> None:
    url = place.path(resource)
    answer = await place.gateway.client.post(f"{url}?dryRun=All", json=sample(resource))
    assert (answer.status_code, answer.json()["dryRun"]) == (200, True)
    assert answer.json()["manifest"]["metadata"] == {"name": "one", "namespace": place.namespace}
    assert (await place.get(resource)).json()["items"] == []
    wrong = await place.gateway.client.post(f"{url}?dryRun=All", json=sample(resource) | {"spec": {}})
    assert wrong.status_code == 422


@BOTH
async def test_a_key_makes_a_repetition_harmless(resource: str, place: Place) -> None:
    url, key = place.path(resource), {"Idempotency-Key": "k"}
    refused = await place.gateway.client.post(url, json=sample(resource) | {"spec": {}}, headers=key)
    assert refused.status_code == 422
    first = await place.gateway.client.post(url, json=sample(resource), headers=key)
    again = await place.gateway.client.post(url, json=sample(resource), headers=key)
    assert (first.status_code, again.status_code, again.content) == (201, 200, first.content)
    assert (again.headers["idempotency-replayed"], again.headers["location"]) == ("true", f"{url}/one")
    other = await place.gateway.client.post(url, json=sample(resource, "two"), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "IdempotencyKeyReused")


@BOTH
@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"spec": {}}, "InvalidManifest", "/spec"),
        ({"spec": {"extra": 1}}, "InvalidManifest", "/spec/extra"),
        ({"apiVersion": "batch.paddlepaddle.org/v1"}, "InvalidManifest", "/apiVersion"),
        ({"kind": "Sample"}, "InvalidManifest", "/kind"),
        ({"kind": None}, "InvalidManifest", "/kind"),
        ({"metadata": {}}, "InvalidManifest", "/metadata/name"),
        ({"metadata": {"name": "A_b"}}, "InvalidManifest", "/metadata/name"),
        ({"metadata": {"name": "one", "namespace": "other"}}, "InvalidManifest", "/metadata/namespace"),
        ({"metadata": {"name": "one", "annotations": {"jobgate.dev/autoscale": "false"}}}, "InvalidManifest", ""),
        ({"apiVersion": "v1", "kind": "List", "items": []}, "InvalidManifest", ""),
    ],
)
async def test_manifests_that_are_refused(
    changes: dict[str, Any], code: str, pointer: str, resource: str, place: Place
) -> None:
    answer = await place.gateway.client.post(place.path(resource), json=sample(resource) | changes)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text


@BOTH
@pytest.mark.parametrize(
    ("method", "url", "headers", "body", "status"),
    [
        ("POST", "", {"Content-Type": "application/json"}, b"{", 400),
        ("POST", "", {"Content-Type": "text/plain"}, b"{}", 415),
        ("POST", "", {"Content-Type": "application/yaml"}, b"a: 1\n---\nb: 2\n", 400),
        ("POST", "?dryRun=Some", {}, b"", 400),
        ("POST", "", {"Idempotency-Key": "a b"}, b"{}", 400),
        ("POST", "?force=true", {}, b"", 400),
        ("GET", "?phase=Queued", {}, b"", 400),
        ("GET", "?pageSize=0", {}, b"", 400),
        ("GET", "?pageToken=abc", {}, b"", 400),
        ("GET", "?labelSelector=a%3D%3D%3D", {}, b"", 400),
        ("GET", "?createdAfter=2026-01-01T00:00:00", {}, b"", 400),
        ("GET", "?kind=SampleSet", {}, b"", 400),
        ("GET", "/none", {}, b"", 404),
        ("GET", "/none/status", {}, b"", 404),
        ("GET", "/none/history", {}, b"", 404),
        ("GET", "/none/events", {}, b"", 404),
        ("GET", "/none/watch", {}, b"", 404),
        ("DELETE", "/none", {}, b"", 404),
        ("PATCH", "/none", PATCH, b"{}", 404),
        ("PATCH", "/none", {"Content-Type": "application/json"}, b"{}", 415),
        ("POST", "/none", {}, b"", 405),
    ],
)
async def test_requests_that_are_refused(
    method: str, url: str, headers: dict[str, str], body: bytes, status: int, resource: str, place: Place
) -> None:
    answer = await place.gateway.client.request(method, place.path(resource) + url, headers=headers, content=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@BOTH
async def test_a_name_is_taken_by_its_own_kind_alone(resource: str, place: Place) -> None:
    for other in RESOURCES:
        await place.submit(other)
    answer = await place.gateway.client.post(place.path(resource), json=sample(resource))
    assert (answer.status_code, answer.json()["code"]) == (409, "NameTaken")
    assert "one" in answer.json()["errors"][0]["detail"]


@BOTH
async def test_edits(resource: str, place: Place) -> None:
    await place.submit(resource)
    client, url = place.gateway.client, place.path(resource, "one")
    patch = {"spec": {"partitions": 3} if resource == SETS else {"warmupOptions": {"threads": 9}}}
    edited = await client.patch(url, json=patch, headers=PATCH)
    assert (edited.status_code, edited.json()["generation"]) == (202, 2), edited.text
    field = next(iter(patch["spec"]))
    assert (await client.get(url)).json()["spec"][field] == edited.json()["spec"][field]
    put = await client.put(url, json=sample(resource, labels={"a": "b"}))
    assert (put.status_code, put.json()["labels"], put.json()["generation"]) == (202, {"a": "b"}, 3)
    await conclude(place.gateway, put.json()["uid"])
    same = await client.put(url, json=sample(resource, labels={"a": "b"}))
    assert (same.status_code, same.json()["generation"]) == (200, 3)


@pytest.mark.parametrize(
    ("resource", "patch", "pointer", "code"),
    [
        (SETS, {"spec": {"csi": {"juiceFSMountOptions": {"metrics": "a:1"}}}}, "/spec/csi", "ImmutableField"),
        (SETS, {"spec": {"cache": {"levels": [{"mediumType": "MEM"}]}}}, "/spec/cache", "ImmutableField"),
        (SETS, {"spec": {"partitions": 0}}, "/spec/partitions", "InvalidManifest"),
        (SETS, {"spec": None}, "/spec", "InvalidManifest"),
        (SETS, {"kind": "SampleJob"}, "/kind", "InvalidManifest"),
        (JOBS, {"metadata": {"name": "two"}}, "/metadata/name", "ImmutableField"),
        (JOBS, {"spec": {"type": "clear"}}, "/spec/type", "ImmutableField"),
        (JOBS, {"spec": {"sampleSetRef": {"name": "two"}}}, "/spec/sampleSetRef", "ImmutableField"),
    ],
)
async def test_edits_that_are_refused(resource: str, patch: Any, pointer: str, code: str, place: Place) -> None:
    created = await place.submit(resource)
    answer = await place.gateway.client.patch(place.path(resource, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text
    assert (await place.get(resource, "one")).json()["spec"] == created["spec"]


async def test_a_source_is_history_once_it_has_been_synced(place: Place) -> None:
    created = await place.submit(SETS)
    await conclude(place.gateway, created["uid"], {"phase": SetPhase.READY, "synced": True})
    patch = {"spec": {"source": {"uri": "s3://elsewhere.example.com/train"}}}
    answer = await place.gateway.client.patch(place.path(SETS, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/spec/source")


async def test_a_job_that_has_succeeded_stays_as_it_is(place: Place) -> None:
    created = await place.submit(JOBS)
    await conclude(place.gateway, created["uid"], {"phase": SampleJobPhase.SUCCEEDED})
    patch = {"spec": {"warmupOptions": {"threads": 9}}}
    answer = await place.gateway.client.patch(place.path(JOBS, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["code"]) == (409, "AlreadyFinished")


@BOTH
async def test_edits_are_held_to_the_version_that_was_read(resource: str, place: Place) -> None:
    await place.submit(resource)
    client, url = place.gateway.client, place.path(resource, "one")
    tag = (await client.get(url)).headers["etag"]
    first = await client.patch(url, json={"metadata": {"labels": {"a": "b"}}}, headers=PATCH | {"If-Match": tag})
    assert first.status_code == 202
    refused = await client.patch(url, json={"metadata": {"labels": {"a": "c"}}}, headers=PATCH | {"If-Match": tag})
    assert (refused.status_code, refused.json()["code"]) == (412, "PreconditionFailed")
    assert KINDS[resource] in refused.json()["detail"]
    assert (await client.put(url, json=sample(resource), headers={"If-Match": tag})).status_code == 412
    assert (await client.delete(url, headers={"If-Match": tag})).status_code == 412
    assert (await client.delete(url, headers={"If-Match": f"W/{tag}"})).status_code == 412
    assert (await client.delete(url, headers={"If-Match": first.headers["etag"]})).status_code in (200, 202)


@BOTH
@pytest.mark.parametrize("more", [("one",), ("one", "status"), ()])
async def test_304_until_something_changes(more: tuple[str, ...], resource: str, place: Place) -> None:
    created = await place.submit(resource)
    first = await place.get(resource, *more)
    again = await place.get(resource, *more, **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for header in ("etag", "cache-control", "vary", "jobgate-stale"):
        assert again.headers[header] == first.headers[header]
    await conclude(place.gateway, created["uid"])  # carried out, and nothing else
    changed = await place.get(resource, *more, **{"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    tag = changed.headers["etag"]
    await conclude(place.gateway, created["uid"])  # looked at, and nothing seen
    assert (await place.get(resource, *more, **{"If-None-Match": tag})).status_code == 304


@BOTH
@pytest.mark.parametrize("more", [("one",), ("one", "status"), ()])
async def test_a_long_poll_ends_with_the_change(more: tuple[str, ...], resource: str, place: Place) -> None:
    created = await place.submit(resource)
    tag = (await place.get(resource, *more)).headers["etag"]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        poll = group.create_task(place.get(resource, *more, **{"If-None-Match": tag, "Prefer": "wait=30"}))
        while not place.gateway.services.lasting.count:
            await asyncio.sleep(0.01)
        await conclude(place.gateway, created["uid"], reason="ErrorSecretNotExist", message="secret a is not exist")
    assert poll.result().status_code == 200
    assert "ErrorSecretNotExist" in poll.result().text
    now = await place.get(resource, *more)
    brief = await place.get(resource, *more, **{"If-None-Match": now.headers["etag"], "Prefer": "wait=1"})
    assert brief.status_code == 304


async def test_a_deletion_shows_its_stage_until_nothing_is_left(place: Place) -> None:
    created = await place.submit(SETS)
    client, url = place.gateway.client, place.path(SETS, "one")
    answer = await client.delete(f"{url}?reason=old")
    assert (answer.status_code, answer.json()["deletion"]["stage"]) == (202, None)
    assert answer.json()["deletion"]["by"] == "anonymous"
    for stage in (RemovalStage.NODE_LABELS, RemovalStage.PODS, RemovalStage.VOLUME):
        await conclude(place.gateway, created["uid"], {"stage": stage})
        for shown in (await client.get(url), await client.get(f"{url}/status"), await client.delete(url)):
            assert shown.status_code in (200, 202)
            assert shown.json()["deletion"]["stage"] == stage
    taken = await client.post(place.path(SETS), json=sample(SETS))
    assert (taken.status_code, taken.json()["code"]) == (409, "BeingDeleted")
    edited = await client.patch(url, json={}, headers=PATCH)
    assert (edited.status_code, edited.json()["code"]) == (409, "BeingDeleted")
    await conclude(place.gateway, created["uid"], {"stage": RemovalStage.GONE}, gone=True)
    for gone in (await client.get(url), await client.get(f"{url}/status")):
        assert (gone.status_code, gone.json()["code"]) == (410, "Deleted")
    again = await client.delete(url)
    assert (again.status_code, again.json()["deletion"]["stage"]) == (200, "gone")
    reasons = [line["reason"] for line in (await client.get(f"{url}/history")).json()["items"]]
    assert reasons[-2:] == ["DeleteRequested", ""]
    assert (await client.get(place.path(SETS))).json()["items"] == []
    assert len((await client.get(f"{place.path(SETS)}?deleted=true")).json()["items"]) == 1
    assert (await place.submit(SETS))["uid"] != created["uid"]
    assert (await client.get(url)).status_code == 200


async def test_a_deleted_job_is_gone_at_once(place: Place) -> None:
    await place.submit(JOBS)
    answer = await place.gateway.client.delete(place.path(JOBS, "one"))
    assert (answer.status_code, answer.json()["deletion"]["stage"]) == (200, "gone")
    assert (await place.get(JOBS, "one")).status_code == 410
    assert (await place.get(JOBS, "one", "history")).status_code == 200
    await place.submit(JOBS)


async def test_who_has_to_do_with_a_set(place: Place) -> None:
    await place.submit(SETS)
    alone = await place.get(SETS, "one")
    assert (alone.json()["jobs"], alone.json()["sampleJobs"]) == ([], [])
    job = manifest("reader")
    pod = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "one"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    mounting = await place.gateway.client.post(jobs_path(place.namespace), json=job)
    assert mounting.status_code == 201, mounting.text
    await place.gateway.submit("stranger", place.namespace)
    warm = await place.submit(JOBS, "warm")
    await place.submit(JOBS, "elsewhere", sampleSetRef={"name": "two"})
    shown = await place.get(SETS, "one", **{"If-None-Match": alone.headers["etag"]})
    assert shown.status_code == 200
    reader = {"uid": mounting.json()["uid"], "name": "reader", "kind": "GenericJob", "phase": "Queued"}
    assert shown.json()["jobs"] == [reader]
    assert shown.json()["sampleJobs"] == [{"uid": warm["uid"], "name": "warm", "type": "warmup", "phase": ""}]
    # A job that comes or goes is no other version of the set.
    headers = PATCH | {"If-Match": alone.headers["etag"]}
    edited = await place.gateway.client.patch(
        place.path(SETS, "one"), content=json.dumps({"spec": {"partitions": 5}}), headers=headers
    )
    assert (edited.status_code, len(edited.json()["jobs"])) == (202, 1)
    await place.gateway.client.delete(jobs_path(place.namespace, "reader"))
    assert (await place.get(SETS, "one")).json()["jobs"] == []
