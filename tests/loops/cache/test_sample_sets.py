"""Reconciles of SampleSets, from the first object to the last, on a real API server with simulated runtime servers."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.db.samples.rows import SampleRow
from app.domain.cache.manifests import stateful_set, storage
from app.domain.cache.reconcile.values import SetRecord
from app.domain.cache.vocabulary import RemovalStage
from app.domain.kinds.samples.kinds import SAMPLE_SET
from app.loops.cache import observation
from tests.loops.cache.stage import KEYS, Stage, a_stage
from tests.support.clusters.kube import Answer, Cluster
from tests.support.clusters.kueue import queues_of, require_kueue
from tests.support.waiting import until


def record_of(row: Any) -> SetRecord:
    record = row.record
    assert isinstance(record, SetRecord)
    return record


async def test_a_set_gets_ready_scales_and_leaves_nothing(stage: Stage) -> None:
    uid = await stage.ready(partitions=2)
    row = await stage.row(uid)
    assert record_of(row).runtime.ready == "2/2"
    assert record_of(row).cache is not None
    assert [(each.node, each.server, each.cached_bytes) for each in record_of(row).nodes] == [
        (stage.nodes[0], "imagenet-runtime-0", 100),
        (stage.nodes[1], "imagenet-runtime-1", 100),
    ]
    assert row.observed_at is not None
    assert row.cache_observed_at is not None
    assert stage.servers.posted("sync") == ["imagenet-runtime-0"]
    assert await stage.labels() == {
        stage.nodes[0]: "imagenet-runtime-0",
        stage.nodes[1]: "imagenet-runtime-1",
    }
    created = [f"Create{part}Successfully" for part in ("PV", "PVC", "TokenSecret", "Service", "StatefulSet")]
    reasons = [reason for reason in await stage.reasons(uid) if reason != "FailedScheduling"]
    assert reasons == [*created, "DoSyncJobSuccessfully"]

    await stage.edit("imagenet", {"partitions": 1})
    await stage.until(uid, lambda row: row.phase == "PartialReady")
    await stage.until(uid, lambda row: row.phase == "Ready")
    await stage.reconcile(uid)
    assert await stage.labels() == {stage.nodes[0]: "imagenet-runtime-0"}
    await stage.edit("imagenet", {"partitions": 2})
    await stage.until(uid, lambda row: row.phase == "PartialReady")
    await stage.until(uid, lambda row: row.phase == "Ready")

    await stage.delete()
    stages = []

    def gone(row: Any) -> bool:
        stages.append(record_of(row).stage)
        return row.gone_at is not None

    await stage.until(uid, gone)
    assert sorted(filter(None, stages), key=list(RemovalStage).index) == list(filter(None, stages))
    assert {RemovalStage.NODE_LABELS, RemovalStage.GONE} <= set(stages)
    assert await stage.left() == []
    assert await stage.labels() == {}


async def test_the_objects_of_a_set_of_an_earlier_version_are_replaced(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its volume and its servers have the directory that the manifest names, which other sets can name too."""
    base = "/var/cache/jobgate/digits"
    with monkeypatch.context() as earlier:
        earlier.setattr(storage, "mount_options", lambda *_: f"cache-dir={base}")
        earlier.setattr(stateful_set, "_own_dirs", lambda *_: {base: base})
        earlier.setattr(observation, "is_shared", lambda *_: False)
        uid = await stage.ready(cache={"levels": [{"mediumType": "SSD", "path": base}]})
    assert await stage.directories() == {base}
    row = await stage.until(uid, lambda row: row.reason == "CacheDirShared")
    assert (row.phase, record_of(row).synced) == ("", True)
    row = await stage.until(uid, lambda row: row.phase == "Ready")
    assert await stage.directories() == {f"{base}/{stage.namespace}/{uid}"}
    assert (row.reason, record_of(row).stage, len(record_of(row).made)) == ("", None, 5)
    assert stage.servers.posted("sync") == ["imagenet-runtime-0"]


async def test_a_failed_sync_is_tried_again_once_its_keys_are_others(stage: Stage) -> None:
    await stage.secret(**KEYS)
    stage.servers.outcome = {"status": "fail", "message": "403 Forbidden"}
    uid = await stage.a_set()
    await stage.until(uid, lambda row: row.phase == "SyncFailed")
    assert "ErrorDoSyncJob" in await stage.reasons(uid)
    first = record_of(await stage.reconcile(uid)).sync_job
    assert (await stage.row(uid)).phase == "SyncFailed"
    stage.servers.outcome = {"status": "success", "message": ""}
    await stage.secret(**{**KEYS, "secret-key": "an0ther"})
    row = await stage.until(uid, lambda row: row.phase == "Ready")
    assert record_of(row).sync_job not in ("", first)
    bodies = [body for has in stage.servers.options.values() for body in has.values()]
    assert [b"AKI:s3cr3t-key@" in body for body in bodies] == [True, False]
    assert b"AKI:an0ther@" in bodies[1]
    assert "s3cr3t-key" not in repr(await stage.row(uid))


SECRETS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "ErrorSecretNotExist", "secret storage is not exist"),
    ({"secretRef": {"name": "other", "namespace": "vault"}}, "ErrorSecretNotExist", "secret other is not exist"),
]


@pytest.mark.parametrize(("spec", "reason", "message"), SECRETS)
async def test_a_set_waits_for_its_secret(stage: Stage, spec: dict[str, Any], reason: str, message: str) -> None:
    uid = await stage.a_set(**spec)
    row = await stage.reconcile(uid)
    assert (row.phase, row.reason, row.message) == ("", reason, message)
    assert await stage.left() == []
    await stage.reconcile(uid)
    assert await stage.reasons(uid) == [reason]
    if not spec:
        await stage.secret()
        await stage.until(uid, lambda row: row.phase == "Ready")
        assert (await stage.row(uid)).reason == ""


async def test_an_incomplete_secret_is_reported(stage: Stage) -> None:
    await stage.secret(bucket="")
    uid = await stage.a_set()
    row = await stage.reconcile(uid)
    assert (row.reason, row.message) == ("ErrorCreatePV", "secret storage is not valid: it lacks bucket")


async def test_a_foreign_object_is_reported_and_left_alone(stage: Stage) -> None:
    await stage.secret()
    claim = {"metadata": {"name": "imagenet"}, "spec": _claim()}
    (await stage.kube.post(f"{stage.base}/persistentvolumeclaims", claim)).ok()
    uid = await stage.a_set()
    row = await stage.reconcile(uid)
    row = await stage.reconcile(uid)
    assert (row.phase, row.reason) == ("", "ErrorPVCAlreadyExist")
    await stage.delete()
    await stage.until(uid, lambda row: row.gone_at is not None)
    (await stage.kube.get(f"{stage.base}/persistentvolumeclaims/imagenet")).ok()
    assert await stage.left() == []


def _claim() -> dict[str, Any]:
    return {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}


async def test_a_refusal_of_the_cluster_is_reported(stage: Stage) -> None:
    await stage.secret()
    refusal = {"verb": "create", "resource": "services", "status": 403, "message": "exceeded quota: none"}
    (await stage.kube.post("/devcluster/faults", {**refusal, "namespace": stage.namespace})).ok()
    uid = await stage.a_set()
    row = await stage.until(uid, lambda row: row.reason == "ErrorCreateService")
    assert "exceeded quota" in row.message
    (await stage.kube.delete("/devcluster/faults")).ok()
    await stage.until(uid, lambda row: row.phase == "Ready")
    assert (await stage.reasons(uid)).count("ErrorCreateService") == 1


async def test_the_warnings_of_the_cluster_about_its_objects_stay_with_a_set(stage: Stage) -> None:
    await stage.secret()
    for resource in ("services", "statefulsets"):
        rule = {"verb": "create", "resource": resource, "namespace": stage.namespace, "warning": f"{resource}: old"}
        (await stage.kube.post("/devcluster/faults", rule)).ok()
    uid = await stage.a_set()
    row = await stage.until(uid, lambda row: row.phase == "Ready")
    (await stage.kube.delete("/devcluster/faults")).ok()
    found = [(one.source, one.message) for one in record_of(row).warnings]
    assert found == [("cluster", "services: old"), ("cluster", "statefulsets: old")]
    await stage.delete()
    row = await stage.until(uid, lambda row: row.gone_at is not None)
    assert len(SAMPLE_SET.warnings(row.manifest, row.record)) == 2


async def test_a_missing_runtime_image_is_reported(own_cluster: Cluster, database_url: str) -> None:
    async with a_stage(own_cluster, database_url, image="") as stage:
        await stage.secret()
        uid = await stage.a_set()
        row = await stage.until(uid, lambda row: row.reason == "ErrorCreateStatefulSet")
        assert row.message.endswith("is set: JOBGATE_RUNTIME_IMAGE of the controller")


async def test_the_newest_warning_of_the_first_pod_is_reported(stage: Stage) -> None:
    await stage.secret()
    uid = await stage.a_set()
    row = await stage.until(uid, lambda row: row.reason == "FailedScheduling", kubelet=False)
    assert row.phase == "Bound"
    pod = (await stage.kube.get(f"{stage.base}/pods/imagenet-runtime-0")).ok()
    await _warn(stage, pod, "FailedMount", "2126-01-01T00:00:00Z", "fuse is not there")
    await _warn(stage, {"metadata": {**pod["metadata"], "uid": "of-another"}}, "Old", "2126-02-01T00:00:00Z", "x")
    row = await stage.reconcile(uid)
    assert (row.reason, row.message) == ("FailedMount", "fuse is not there")
    await stage.until(uid, lambda row: row.phase == "Ready")


async def test_a_set_says_which_gates_keep_its_first_server_from_the_scheduler(stage: Stage) -> None:
    await require_kueue(stage.kube)
    async with queues_of(stage.kube, stage.namespace) as queues:
        await queues.add_flavor("none")
        # Kueue queues each pod of the namespace.
        await queues.add_queue("default", {"none": {"cpu": "0"}})
        await stage.secret()
        uid = await stage.a_set()
        row = await stage.until(uid, lambda row: row.reason == "SchedulingGated", kubelet=False)
        assert row.phase == "Bound"
        assert row.message.endswith("and admits this one when the LocalQueue default has quota for it"), row.message


async def test_a_set_that_has_a_server_says_why_another_one_does_not_start(stage: Stage) -> None:
    await require_kueue(stage.kube)
    uid = await stage.ready()
    async with queues_of(stage.kube, stage.namespace) as queues:
        await queues.add_flavor("none")
        await queues.add_queue("default", {"none": {"cpu": "0"}})
        await stage.edit("imagenet", {"partitions": 2})
        row = await stage.until(uid, lambda row: row.reason == "SchedulingGated", kubelet=False)
        assert (row.phase, "LocalQueue default has quota" in row.message) == ("PartialReady", True), row.message
        await stage.delete()
        await stage.until(uid, lambda row: row.gone_at is not None)


@pytest.mark.parametrize(("phase", "spec"), [("Syncing", {}), ("Mount", {"noSync": True})])
async def test_a_set_says_why_its_first_server_does_not_come_back(
    stage: Stage, phase: str, spec: dict[str, Any]
) -> None:
    await stage.secret()
    stage.servers.outcome, stage.servers.total = {}, 0
    uid = await stage.a_set(**spec)
    await stage.until(uid, lambda row: row.phase == phase)
    await stage.kube.delete(f"{stage.base}/pods/imagenet-runtime-0", {"gracePeriodSeconds": 0})
    # The nodes of a stage are cordoned.
    row = await stage.until(uid, lambda row: row.reason == "FailedScheduling", kubelet=False)
    assert (row.phase, "nodes are available" in row.message) == (phase, True), row.message
    stage.servers.outcome, stage.servers.total = {"status": "success", "message": ""}, 100
    await stage.until(uid, lambda row: row.phase == "Ready" and not row.reason)


async def test_without_a_server_the_newest_warning_about_the_stateful_set_is_reported(stage: Stage) -> None:
    await stage.secret()
    uid = await stage.a_set()
    path = "/apis/apps/v1" + f"{stage.base}/statefulsets/imagenet-runtime".removeprefix("/api/v1")
    await stage.until(uid, lambda row: row.reason == "FailedScheduling", kubelet=False)
    runtime = (await stage.kube.patch(path, {"spec": {"replicas": 0}})).ok()
    await stage.kube.eventually(f"{stage.base}/pods", lambda pods: not pods["items"])
    former = {"metadata": {**runtime["metadata"], "uid": "of-another"}}
    await _warn(stage, former, "FailedCreate", "2126-02-01T00:00:00Z", "exceeded quota", kind="StatefulSet")
    row = await stage.reconcile(uid)
    assert (row.phase, row.reason) == ("Bound", "")
    await _warn(stage, runtime, "FailedCreate", "2126-01-01T00:00:00Z", "no such account", kind="StatefulSet")
    row = await stage.reconcile(uid)
    assert (row.reason, row.message) == ("FailedCreate", "no such account")


async def test_the_result_of_a_sync_counts_although_no_events_can_be_listed(stage: Stage) -> None:
    await stage.secret()
    stage.servers.outcome = {}
    uid = await stage.a_set()
    await stage.until(uid, lambda row: row.phase == "Syncing")
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    (await stage.kube.patch(f"{stage.base}/pods/imagenet-runtime-0/status", unready)).ok()
    rule = {"verb": "list", "resource": "events", "namespace": stage.namespace, "status": 500, "message": "no"}
    (await stage.kube.post("/devcluster/faults", rule)).ok()
    stage.servers.outcome = {"status": "success", "message": ""}
    row = await stage.reconcile(uid)
    (hits,) = [each["hits"] for each in (await stage.kube.get("/devcluster/faults")).ok()["items"]]
    (await stage.kube.delete("/devcluster/faults")).ok()
    assert hits
    assert (row.phase, record_of(row).synced) == ("Mount", True)


async def _warn(stage: Stage, about: dict[str, Any], reason: str, at: str, message: str, *, kind: str = "Pod") -> None:
    involved = {"kind": kind, "namespace": stage.namespace}
    involved |= {key: about["metadata"][key] for key in ("name", "uid")}
    event = {
        "metadata": {"generateName": "e-", "namespace": stage.namespace},
        "involvedObject": involved,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": "kubelet"},
    }
    (await stage.kube.post(f"{stage.base}/events", event)).ok()


async def test_lost_objects_are_created_again_and_stale_labels_removed(stage: Stage) -> None:
    uid = await stage.ready()
    stray = await stage.node()
    key = f"paddlepaddle.org/juicefs-{stage.namespace}.imagenet"
    (await stage.kube.patch(f"/api/v1/nodes/{stray}", {"metadata": {"labels": {key: "gone"}}})).ok()
    await stage.kube.delete(f"{stage.base}/services/imagenet-runtime-service")
    await stage.until(uid, lambda row: row.event_count > 6)
    await stage.reconcile(uid)
    assert await stage.labels() == {stage.nodes[0]: "imagenet-runtime-0"}
    assert (await stage.reasons(uid)).count("CreateServiceSuccessfully") == 2


async def test_lost_sync_options_are_posted_again_and_a_silent_server_is_waited_for(stage: Stage) -> None:
    await stage.secret()
    stage.servers.outcome = {}
    uid = await stage.a_set()
    await stage.until(uid, lambda row: row.phase == "Syncing")
    pod = "imagenet-runtime-0"
    await stage.reconcile(uid)
    assert stage.servers.posted("sync") == [pod]
    stage.servers.silent.add(pod)
    row = await stage.reconcile(uid)
    assert row.phase == "Syncing"
    stage.servers.silent.clear()
    stage.servers.lose(pod)
    await stage.reconcile(uid)
    assert stage.servers.posted("sync") == [pod, pod]
    assert len({name for _, _, name in stage.servers.uploads}) == 1
    stage.servers.outcome = {"status": "success"}
    await stage.until(uid, lambda row: row.phase == "Ready")


async def test_removal_completes_without_the_namespace(stage: Stage) -> None:
    uid = await stage.ready()
    assert await stage.labels()
    await stage.kube.delete(f"/api/v1/namespaces/{stage.namespace}")

    async def namespace() -> Answer:
        await stage.run_pods()
        return await stage.kube.get(f"/api/v1/namespaces/{stage.namespace}")

    await until(namespace, lambda answer: answer.status == 404, what="the namespace is gone", every=0.05)
    await stage.delete()
    await stage.until(uid, lambda row: row.gone_at is not None, kubelet=False)
    assert await stage.left() == []
    assert await stage.labels() == {}


async def test_other_namespaces_are_left_alone(own_cluster: Cluster, database_url: str) -> None:
    async with a_stage(own_cluster, database_url, namespaces=("elsewhere",)) as stage:
        await stage.secret()
        ignored = await stage.a_set()
        served = await replace(stage, namespace="elsewhere").a_set()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(stage.sets.run())
            # The loop takes the oldest intent first, so it would have taken the set that was created before.
            await _seen(stage, served, lambda row: row.observed_at is not None)
            running.cancel()
        assert (await stage.row(ignored)).observed_at is None


async def test_the_running_loop_makes_a_set_ready_and_removes_it(stage: Stage) -> None:
    """EditResult intents, watches and due times trigger reconciles."""
    await stage.secret()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stage.sets.run())
        uid = await stage.a_set(noSync=True)
        await _seen(stage, uid, lambda row: row.phase == "Ready")
        await stage.delete()
        await _seen(stage, uid, lambda row: row.gone_at is not None)
        running.cancel()
    assert await stage.left() == []


async def _seen(stage: Stage, uid: Any, wanted: Any) -> None:
    async def row() -> SampleRow:
        await stage.run_pods()
        return await stage.row(uid)

    await until(row, wanted, what="the row is as wanted", within=90, every=0.05)
