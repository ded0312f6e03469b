"""SampleSets and SampleJobs over HTTP. All tests share one gateway; each test has its own namespace."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.api.resources.samples import SampleResource
from app.domain.cache.reconcile.cache_status import NodeCache, ServerReport, aggregate
from app.domain.cache.reconcile.progress import OperationProgress
from app.domain.cache.reconcile.values import Complaint, RuntimeStatus
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase
from app.domain.plan import JobWarning
from app.domain.vocabulary import WarningSource
from tests.support.gateways.gateway import Gateway, jobs_path, manifest
from tests.support.kinds.samples import JOBS, PATCH, RESOURCES, SETS, conclude, path, sample, submit
from tests.support.lists import examine_few

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_SECRET = Complaint(reason="ErrorSecretNotExist", message="secret a is not exist")
BOTH = pytest.mark.parametrize("resource", RESOURCES)


@dataclass(frozen=True)
class Place:
    """A namespace that no other test uses."""

    gateway: Gateway
    namespace: str

    def path(self, resource: str, *more: str) -> str:
        return path(resource, *more, namespace=self.namespace)

    async def submit(self, resource: str, name: str = "one", **more: Any) -> dict[str, Any]:
        return await submit(self.gateway, resource, name, namespace=self.namespace, **more)

    async def get(self, resource: str, *more: str, **headers: str) -> Any:
        return await self.gateway.client.get(self.path(resource, *more), headers=headers)


@pytest.fixture
def place(shared_gateway: Gateway) -> Place:
    return Place(shared_gateway, f"ns-{uuid4().hex[:12]}")


async def test_warnings_are_part_of_the_status(place: Place) -> None:
    level = {"mediumType": "MEM", "cacheSize": 10}
    shown = await place.submit(SETS, cache={"levels": [level, level | {"path": "/var/cache/jobgate/a"}]})
    own = {"source": "jobgate", "task": None, "pointer": "/spec/cache/levels/0"}
    (found,) = shown["status"]["warnings"]
    assert found == own | {"message": "the level has no effect: a level without a path names no directory"}
    cluster = JobWarning(source=WarningSource.CLUSTER, message="old")
    await conclude(place.gateway, shown["uid"], {"warnings": (cluster,)})
    status = (await place.get(SETS, "one", "status")).json()["status"]
    assert [item["message"] for item in status["warnings"]] == [found["message"], "old"]
    manifest = sample(SETS, "two", cache=shown["spec"]["cache"])
    answer = await place.gateway.client.post(place.path(SETS, "dry-run"), json=manifest)
    assert answer.json()["items"][0]["warnings"] == [found]
    job = await place.submit(JOBS, syncOptions={"threads": 1}, secretRef={"name": "a"})
    assert [item["pointer"] for item in job["status"]["warnings"]] == ["/spec/syncOptions", "/spec/secretRef"]


async def test_a_new_object_has_every_field(place: Place) -> None:
    shown = await place.submit(SETS, labels={"team": "vision"})
    status = shown["status"]
    assert (shown["kind"], shown["generation"], status["observedGeneration"]) == ("SampleSet", 1, 0)
    assert (status["phase"], status["reason"], status["message"]) == ("", "", "")
    assert (shown["labels"], shown["createdBy"]) == ({"team": "vision"}, "anonymous")
    assert status["runtime"] == {"ready": 0, "wanted": 2}
    assert shown["spec"]["csi"] == {"driver": "juicefs"}
    assert shown["nativeStatus"] == {"phase": ""}
    for absent in ("removal", "observedAt", "cache", "sync", "startedAt", "finishedAt"):
        assert status[absent] is None
    assert shown["nodes"] == []
    job = (await place.submit(JOBS))["status"]
    assert (job["type"], job["sampleSet"], job["jobName"], job["progress"]) == ("warmup", "one", None, None)


async def test_results_of_the_controller_are_in_status_and_conditions(place: Place) -> None:
    created = await place.submit(SETS)
    cache = aggregate([ServerReport(node="n", total_size="10", cached_size="10")])
    assert cache is not None
    await conclude(place.gateway, created["uid"], {"phase": SetPhase.BOUND, "complaint": NO_SECRET})
    waiting = (await place.get(SETS, "one")).json()["conditions"]
    assert [(item["type"], item["status"], item["reason"]) for item in waiting] == [
        ("Ready", "False", NO_SECRET.reason)
    ]
    seen = datetime(2026, 1, 1, tzinfo=UTC)
    runtime = RuntimeStatus(spec_replicas=1, ready_replicas=1)
    record = {"phase": SetPhase.READY, "synced": True, "cache": cache, "complaint": None, "runtime": runtime}
    await conclude(place.gateway, created["uid"], record, cache_observed_at=seen)
    shown = (await place.get(SETS, "one", "status")).json()
    assert shown["status"]["cache"] == {
        "totalBytes": cache.total_bytes,
        "cachedBytes": cache.cached_bytes,
        "whole": cache.is_whole,
        "observedAt": "2026-01-01T00:00:00Z",
    }
    assert {item["type"]: item["status"] for item in shown["conditions"]} == {"Ready": "True", "Synced": "True"}


async def test_the_caches_of_nodes_are_in_the_whole_object_only(place: Place) -> None:
    created = await place.submit(SETS)
    nodes = (
        NodeCache(node="n0", server="one-runtime-0", cached_bytes=5),
        NodeCache(node="n1", server="one-runtime-1", cached_bytes=None, message="the server does not answer"),
    )
    await conclude(place.gateway, created["uid"], {"phase": SetPhase.READY, "nodes": nodes})
    whole = await place.get(SETS, "one")
    assert whole.json()["nodes"] == [
        {"node": "n0", "server": "one-runtime-0", "cachedBytes": 5, "message": ""},
        {"node": "n1", "server": "one-runtime-1", "cachedBytes": None, "message": "the server does not answer"},
    ]
    listed = (await place.gateway.client.get(f"{place.path(SETS)}?view=summary")).json()["items"]
    for short in ((await place.get(SETS, "one", "status")).json(), listed[0]):
        assert "nodes" not in short
        assert "n0" not in str(short)


async def test_the_progress_of_an_operation_is_in_its_status(place: Place) -> None:
    progress = OperationProgress(files_done=3, files_total=None, bytes_done=2**40, reporting=1, servers=2)
    shown = {"filesDone": 3, "filesTotal": None, "bytesDone": 2**40, "serversReporting": 1, "servers": 2}
    sample_set, job = await place.submit(SETS), await place.submit(JOBS)
    await conclude(place.gateway, sample_set["uid"], {"phase": SetPhase.SYNCING, "sync_progress": progress})
    await conclude(place.gateway, job["uid"], {"phase": SampleJobPhase.RUNNING, "progress": progress})
    assert (await place.get(SETS, "one", "status")).json()["status"]["sync"] == shown
    assert (await place.get(JOBS, "one", "status")).json()["status"]["progress"] == shown


async def test_a_record_of_an_older_version_has_no_nodes_and_no_progress(place: Place) -> None:
    for resource in (SETS, JOBS):
        created = await place.submit(resource)
        async with place.gateway.db.begin() as connection:
            older = "(record::jsonb - 'nodes' - 'sync_progress' - 'progress')::json"
            await connection.execute(f"UPDATE samples SET record = {older} WHERE uid = $1", UUID(created["uid"]))
        shown = (await place.get(resource, "one")).json()
        assert (shown.get("nodes", []), shown["status"].get("sync"), shown["status"].get("progress")) == (
            [],
            None,
            None,
        )


async def test_a_sample_job_starts_and_ends_like_a_job(place: Place) -> None:
    created = await place.submit(JOBS)
    for phase, conditions in (
        (SampleJobPhase.PENDING, {}),
        (SampleJobPhase.RUNNING, {"Running": "True"}),
        (SampleJobPhase.FAILED, {"Running": "False", "Completed": "False", "Failed": "True"}),
    ):
        await conclude(place.gateway, created["uid"], {"phase": phase})
        shown = (await place.get(JOBS, "one")).json()
        assert {item["type"]: item["status"] for item in shown["conditions"]} == conditions
        assert shown["status"]["startedAt"] is not None
        assert (shown["status"]["finishedAt"] is not None) == (phase is SampleJobPhase.FAILED)
    listed = await place.gateway.client.get(f"{place.path(JOBS)}?finishedAfter=2020-01-01T00:00:00Z")
    assert [item["name"] for item in listed.json()["items"]] == ["one"]
    await conclude(place.gateway, created["uid"], {"phase": SampleJobPhase.NONE})
    again = (await place.get(JOBS, "one")).json()
    assert {item["status"] for item in again["conditions"]} == {"False"}
    assert (again["status"]["startedAt"], again["status"]["finishedAt"]) == (None, None)


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
async def test_invalid_manifests_are_refused(
    changes: dict[str, Any], code: str, pointer: str, resource: str, place: Place
) -> None:
    answer = await place.gateway.client.post(place.path(resource), json=sample(resource) | changes)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text


@BOTH
async def test_names_are_unique_within_a_kind(resource: str, place: Place) -> None:
    for other in RESOURCES:
        await place.submit(other)
    answer = await place.gateway.client.post(place.path(resource), json=sample(resource))
    assert (answer.status_code, answer.json()["code"]) == (409, "NameTaken")
    assert "one" in answer.json()["errors"][0]["detail"]


@BOTH
async def test_edits_change_the_spec_and_the_generation(resource: str, place: Place) -> None:
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
        (SETS, {"kind": "SampleJob"}, "/kind", "ImmutableField"),
        (JOBS, {"metadata": {"name": "two"}}, "/metadata/name", "ImmutableField"),
        (JOBS, {"spec": {"type": "clear"}}, "/spec/type", "ImmutableField"),
        (JOBS, {"spec": {"sampleSetRef": {"name": "two"}}}, "/spec/sampleSetRef", "ImmutableField"),
    ],
)
async def test_edits_of_immutable_fields_are_refused(
    resource: str, patch: Any, pointer: str, code: str, place: Place
) -> None:
    created = await place.submit(resource)
    answer = await place.gateway.client.patch(place.path(resource, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"]), answer.text
    assert (await place.get(resource, "one")).json()["spec"] == created["spec"]


async def test_the_source_of_a_synced_set_is_immutable(place: Place) -> None:
    created = await place.submit(SETS)
    await conclude(place.gateway, created["uid"], {"phase": SetPhase.READY, "synced": True})
    patch = {"spec": {"source": {"uri": "s3://elsewhere.example.com/train"}}}
    answer = await place.gateway.client.patch(place.path(SETS, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/spec/source")


async def test_a_succeeded_job_cannot_be_edited(place: Place) -> None:
    created = await place.submit(JOBS)
    await conclude(place.gateway, created["uid"], {"phase": SampleJobPhase.SUCCEEDED})
    patch = {"spec": {"warmupOptions": {"threads": 9}}}
    answer = await place.gateway.client.patch(place.path(JOBS, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["code"]) == (409, "AlreadyFinished")
    taken = await place.gateway.client.post(place.path(JOBS), json=sample(JOBS))
    assert (taken.status_code, taken.json()["errors"][0]["accepted"]) == (409, "another name, or delete that one")


async def test_an_edit_retries_a_job_that_has_failed(place: Place) -> None:
    created = await place.submit(JOBS)
    await conclude(place.gateway, created["uid"], {"phase": SampleJobPhase.FAILED})
    patch = {"spec": {"warmupOptions": {"threads": 9}}}
    answer = await place.gateway.client.patch(place.path(JOBS, "one"), json=patch, headers=PATCH)
    assert (answer.status_code, answer.json()["generation"]) == (202, 2), answer.text


@BOTH
@pytest.mark.parametrize("more", [("one",), ("one", "status"), ()])
async def test_a_poll_answers_304_until_the_object_changes(more: tuple[str, ...], resource: str, place: Place) -> None:
    created = await place.submit(resource)
    first = await place.get(resource, *more)
    again = await place.get(resource, *more, **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for header in ("etag", "cache-control", "vary", "jobgate-stale"):
        assert again.headers[header] == first.headers[header]
    await conclude(place.gateway, created["uid"])  # the controller observes the generation
    changed = await place.get(resource, *more, **{"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    tag = changed.headers["etag"]
    await conclude(place.gateway, created["uid"])  # the controller reconciles without a change
    assert (await place.get(resource, *more, **{"If-None-Match": tag})).status_code == 304


@BOTH
@pytest.mark.parametrize("more", [(), ("status",)], ids=["whole", "status"])
async def test_a_304_renders_nothing(
    resource: str, more: tuple[str, ...], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.submit(resource)
    first = await place.get(resource, "one", *more)
    for method in ("view_of", "status_of"):
        monkeypatch.setattr(SampleResource, method, None)
    again = await place.get(resource, "one", *more, **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])


async def test_a_deletion_shows_its_removal_stage(place: Place) -> None:
    created = await place.submit(SETS)
    client, url = place.gateway.client, place.path(SETS, "one")
    answer = await client.delete(f"{url}?reason=old")
    assert (answer.status_code, answer.json()["status"]["removal"]) == (202, None)
    for stage in (RemovalStage.NODE_LABELS, RemovalStage.PODS, RemovalStage.VOLUME):
        await conclude(place.gateway, created["uid"], {"stage": stage})
        for shown in (await client.get(url), await client.get(f"{url}/status"), await client.delete(url)):
            assert shown.status_code in (200, 202)
            assert shown.json()["status"]["removal"] == stage
    taken = await client.post(place.path(SETS), json=sample(SETS))
    assert (taken.status_code, taken.json()["code"]) == (409, "NameTaken")
    (error,) = taken.json()["errors"]
    assert "free once its objects are deleted" in error["detail"]
    assert error["accepted"] == "another name, or wait until nothing of that one is left"
    await conclude(place.gateway, created["uid"], {"stage": RemovalStage.GONE}, gone=True)
    gone = await client.get(url)
    assert (gone.status_code, gone.json()["status"]["removal"]) == (200, "gone")
    assert (await client.delete(url)).status_code == 200
    history = (await client.get(f"{url}/history")).json()["items"]
    assert [(entry["reason"], entry["actor"]) for entry in history[-2:]] == [
        ("DeleteRequested", "anonymous"),
        ("", "jobgate"),
    ]
    assert (await place.submit(SETS))["uid"] != created["uid"]


async def test_the_name_of_a_deleted_job_is_free_at_once(place: Place) -> None:
    await place.submit(JOBS)
    assert (await place.gateway.client.delete(place.path(JOBS, "one"))).status_code == 200
    await place.submit(JOBS)


async def test_dependents_include_a_sample_job_older_than_many_deleted_ones(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    examine_few(monkeypatch, 2, first=1)
    await place.submit(SETS)
    old = await place.submit(JOBS, "old")
    for number in range(5):
        await place.submit(JOBS, f"deleted-{number}")
        await place.gateway.client.delete(place.path(JOBS, f"deleted-{number}"))
    shown = (await place.get(SETS, "one", "dependents")).json()["sampleJobs"]
    assert [job["uid"] for job in shown] == [old["uid"]]


async def test_dependents_are_mounting_jobs_and_sample_jobs(place: Place) -> None:
    created = await place.submit(SETS)
    assert (await place.get(SETS, "one", "dependents")).json() == {"jobs": [], "sampleJobs": []}
    job = manifest("reader")
    pod = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "one"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    mounting = await place.gateway.client.post(jobs_path(place.namespace), json=job)
    assert mounting.status_code == 201, mounting.text
    await place.gateway.submit("unrelated", place.namespace)
    warm = await place.submit(JOBS, "warm")
    await place.submit(JOBS, "elsewhere", sampleSetRef={"name": "two"})
    reader = {"uid": mounting.json()["uid"], "name": "reader", "kind": "GenericJob", "phase": "Queued"}
    of_set = {"uid": warm["uid"], "name": "warm", "type": "warmup", "phase": "", "progress": None}
    shown = await place.get(SETS, "one", "dependents")
    assert shown.json() == {"jobs": [reader], "sampleJobs": [of_set]}
    by_uid = await place.gateway.client.get(f"/api/v1/samplesets/{created['uid']}/dependents")
    assert by_uid.json() == shown.json()
    await place.gateway.client.delete(jobs_path(place.namespace, "reader"))
    assert (await place.get(SETS, "one", "dependents")).json()["jobs"] == []
    await place.gateway.client.delete(place.path(SETS, "one"))
    assert (await place.get(SETS, "one", "dependents")).json()["sampleJobs"] == [of_set]
    await conclude(place.gateway, created["uid"], {"stage": RemovalStage.GONE}, gone=True)
    await place.submit(SETS)
    of_gone = await place.gateway.client.get(f"/api/v1/samplesets/{created['uid']}/dependents")
    assert of_gone.json() == {"jobs": [], "sampleJobs": []}
    assert (await place.get(SETS, "one", "dependents")).json()["sampleJobs"] == [of_set]
