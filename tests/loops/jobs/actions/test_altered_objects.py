"""A webhook or policy that changes what jobgate knows its objects by: the status names it, and nothing stays behind."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.db.jobs import edits
from app.domain.access.actors import Actor
from app.domain.kubernetes import labels
from app.domain.reconcile import stepping
from app.domain.vocabulary import JobPhase, PendingCode
from tests.db.factories import stored
from tests.loops.harness import Harness
from tests.loops.jobs.test_reconciler import FIRST, attempt_of, started

# Kubernetes sets this one in each namespace.
ROOT_CA = "kube-root-ca.crt"


def with_labels(**changed: str | None) -> dict[str, Any]:
    return {
        "metadata": {"labels": {f"{labels.PREFIX}{key.replace('_', '-')}": value for key, value in changed.items()}}
    }


STRANGER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "theirs", "controller": True}
INJECTED = {
    "metadata": {"annotations": {labels.MAIN_CONTAINER: "proxy"}},
    "spec": {"containers": [{"name": "proxy", "image": "example.com/proxy:1"}]},
}
CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    ("no-labels", "pods", with_labels(installation=None, job_uid=None), labels.INSTALLATION),
    ("rank", "pods", with_labels(task_rank="7"), 'is "7" instead of "0"'),
    ("task", "pods", with_labels(task="ps"), labels.TASK),
    ("attempt", "pods", with_labels(attempt="9"), 'is "9" instead of "1"'),
    ("another-job", "pods", with_labels(job_uid=str(uuid4())), labels.JOB_UID),
    ("owner", "pods", {"metadata": {"ownerReferences": [STRANGER]}}, "metadata.ownerReferences"),
    ("no-owner", "pods", {"metadata": {"ownerReferences": None}}, "metadata.ownerReferences"),
    ("no-finalizer", "pods", {"metadata": {"finalizers": None}}, "metadata.finalizers"),
    ("name", "pods", {"metadata": {"name": "another-name"}}, "metadata.name"),
    ("restart-policy", "pods", {"spec": {"restartPolicy": "Always"}}, "spec.restartPolicy"),
    ("main-container", "pods", INJECTED, 'is "proxy" instead of missing'),
    ("service", "services", {"metadata": {"ownerReferences": None}}, "metadata.ownerReferences"),
    ("anchor", "configmaps", with_labels(installation=None), labels.INSTALLATION),
]


async def objects(harness: Harness) -> dict[str, list[str]]:
    """The names of the objects of the namespace that jobgate can make, by resource."""
    found = {
        resource: [
            item["metadata"]["name"] for item in (await harness.kube.get(f"{harness.path}/{resource}")).ok()["items"]
        ]
        for resource in ("pods", "services", "configmaps")
    }
    return {resource: [name for name in names if name != ROOT_CA] for resource, names in found.items()}


async def submitted(harness: Harness) -> UUID:
    """A job with a pod, a Service and an anchor."""
    return await harness.submit(replicas=1, service={"ports": [{"name": "rendezvous", "port": 2222}]})


@pytest.mark.parametrize(
    ("resource", "merge", "named"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
async def test_an_altered_object_is_named_deleted_and_created_again_after_a_back_off(
    harness: Harness, resource: str, merge: dict[str, Any], named: str
) -> None:
    await harness.inject(verb="create", resource=resource, subresource="", merge=merge)
    async with harness.reconciling():
        uid = await submitted(harness)
        await harness.hits(2)
        job = await harness.job_until(uid, lambda job: job.recorded.status.pending_reasons)
        (reason,) = job.recorded.status.pending_reasons
        assert (reason.code, named in reason.message) == (PendingCode.CHANGED_BY_CLUSTER, True), reason
        assert named in job.recorded.status.message
        assert len((await objects(harness))[resource]) <= 1
        await harness.heal()
        harness.clock.skip(60)
        harness.queue.add(str(uid))
        await harness.job_until(uid, lambda job: FIRST in job.recorded.replicas and attempt_of(job).pod_uid)
        await harness.kubelet.run("train-worker-0")
        await harness.phase(uid, JobPhase.RUNNING)
    assert attempt_of(await stored(harness.db, uid)).number == 1, "an altered pod is no attempt"


@pytest.mark.parametrize(("resource", "merge"), [case[1:3] for case in CHANGES], ids=[case[0] for case in CHANGES])
async def test_nothing_of_a_job_with_altered_objects_stays_after_its_removal(
    harness: Harness, resource: str, merge: dict[str, Any]
) -> None:
    await harness.inject(verb="create", resource=resource, subresource="", merge=merge)
    # While a delete fails, the object is remembered.
    await harness.inject(verb="delete", resource=resource, status=500, count=1)
    async with harness.reconciling():
        uid = await submitted(harness)
        await harness.hits(2)
        await edits.request_deletion(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        await harness.job_until(uid, lambda job: job.recorded.status.gone_at is not None)
    assert await objects(harness) == {"pods": [], "services": [], "configmaps": []}


async def test_a_pod_is_followed_by_its_name_if_a_policy_keeps_the_labels_from_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "UNFOLLOWED_EVERY", timedelta(seconds=0.1))
    without = with_labels(installation=None, job_uid=None)
    async with harness.reconciling():
        uid = await started(harness, replicas=1)
        await harness.inject(verb="patch", resource="pods", subresource="", merge=without)
        (await harness.kube.patch(f"{harness.path}/pods/train-worker-0", without)).ok()
        await harness.kubelet.finish("train-worker-0")
        job = await harness.job_until(uid, lambda job: job.recorded.status.quiet)
        assert (job.recorded.status.phase, attempt_of(job).number) == (JobPhase.SUCCEEDED, 1)
        assert not (await harness.pods())["train-worker-0"]["metadata"].get("finalizers")
        await edits.request_deletion(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        await harness.job_until(uid, lambda job: job.recorded.status.gone_at is not None)
    assert await objects(harness) == {"pods": [], "services": [], "configmaps": []}


async def test_a_job_is_not_gone_while_the_containers_of_an_altered_pod_stop(harness: Harness) -> None:
    """A pod with a node gets its grace period, although jobgate's finalizer does not hold it."""
    bound = {"metadata": {"labels": None}, "spec": {"nodeName": harness.kubelet.node}}
    await harness.inject(verb="create", resource="pods", subresource="", merge=bound)
    await harness.inject(verb="delete", resource="pods")
    async with harness.reconciling():
        uid = await submitted(harness)
        await harness.pods_until(lambda names: names == ["train-worker-0"])
        await edits.request_deletion(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        # The create, and a delete that was repeated because the pod is still there.
        await harness.hits(3)
        assert not (await harness.pods())["train-worker-0"]["metadata"].get("finalizers")
        assert not (await stored(harness.db, uid)).recorded.status.phase.is_terminal
        await harness.kubelet.terminate("train-worker-0")
        await harness.job_until(uid, lambda job: job.recorded.status.gone_at is not None)
    assert await objects(harness) == {"pods": [], "services": [], "configmaps": []}
