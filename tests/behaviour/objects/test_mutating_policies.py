"""MutatingAdmissionPolicies that change the fields by which jobgate identifies its pods.

The status names the change, each further create waits longer, and nothing of the job stays.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import container, job, task, until_marked
from tests.support.clusters.cluster import require_real
from tests.support.waiting import until

API = "/apis/admissionregistration.k8s.io/v1"
OTHER_UID = "6f1c4c66-0000-4000-8000-000000000000"
# Seconds between the creates of a pod that is refused each time, less one for the resolution of creationTimestamp.
LEAST_GAPS = (0, 1, 3)
LABELS = "/metadata/labels/jobgate.dev~1"
# Removes the labels from every object that has some, so that a later create of the namespace passes too.
STRIP_LABELS = 'has(object.metadata.labels) ? [JSONPatch{op: "remove", path: "/metadata/labels"}] : []'
# What a probe has and a policy can change.
PROBE: Body = {
    "name": "probe",
    "labels": {f"jobgate.dev/{key}": "1" for key in ("job-uid", "task-rank", "attempt")},
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "probe", "uid": OTHER_UID[::-1]}],
    "finalizers": ["jobgate.dev/probe"],
}


def replace(path: str, value: str) -> str:
    return f'[JSONPatch{{op: "replace", path: "{path}", value: "{value}"}}]'


def remove(path: str) -> str:
    return f'[JSONPatch{{op: "remove", path: "{path}"}}]'


CHANGES = {
    "rank": (replace(f"{LABELS}task-rank", "7"), 'metadata.labels[jobgate.dev/task-rank] is "7" instead of "0"'),
    "attempt": (replace(f"{LABELS}attempt", "9"), 'metadata.labels[jobgate.dev/attempt] is "9" instead of "1"'),
    "another job": (replace(f"{LABELS}job-uid", OTHER_UID), f'metadata.labels[jobgate.dev/job-uid] is "{OTHER_UID}"'),
    "no labels": (STRIP_LABELS, "metadata.labels[jobgate.dev/job-uid] is missing"),
    "another owner": (replace("/metadata/ownerReferences/0/uid", OTHER_UID), "metadata.ownerReferences names"),
    "no owner": (remove("/metadata/ownerReferences"), "metadata.ownerReferences names nothing as the controller"),
    "no finalizer": (remove("/metadata/finalizers"), "metadata.finalizers lacks jobgate.dev/evidence"),
    "name": (replace("/metadata/name", "another"), 'metadata.name is "another"'),
}


@asynccontextmanager
async def policy(jobs: Jobs, expression: str, operation: str = "CREATE") -> AsyncIterator[None]:
    """Have the cluster apply a JSON patch to the pods of the namespace during the block."""
    require_real(jobs.kube.cluster, "MutatingAdmissionPolicy")
    policies, bindings = f"{API}/mutatingadmissionpolicies", f"{API}/mutatingadmissionpolicybindings"
    if (await jobs.kube.get(policies)).status == 404:
        pytest.skip(f"the cluster does not serve {policies}")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["pods"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": jobs.namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    name = {"name": jobs.namespace}
    (await jobs.kube.post(policies, {"metadata": name, "spec": spec})).ok()
    try:
        (await jobs.kube.post(bindings, {"metadata": name, "spec": {"policyName": jobs.namespace}})).ok()
        yield
    finally:
        await jobs.kube.delete(f"{bindings}/{jobs.namespace}")
        await jobs.kube.delete(f"{policies}/{jobs.namespace}")


async def changes_new_pods(jobs: Jobs) -> bool:
    """Whether the API server enforces a policy: it does so a moment after the policy was created."""
    pod = {"metadata": PROBE, "spec": {"containers": [container()]}}
    answer = (await jobs.kube.post(jobs.objects("pods"), pod, dryRun="All")).ok()
    return any(answer["metadata"].get(key) != value for key, value in PROBE.items())


async def created_pods(jobs: Jobs, version: str) -> list[Body]:
    """The metadata of all pods that were created in the namespace after this resourceVersion."""
    path = jobs.objects("pods")
    async with jobs.kube.watch(path, resourceVersion=version, timeoutSeconds="1") as watch:
        return [event["object"]["metadata"] for event in await watch.rest() if event["type"] == "ADDED"]


def gaps(pods: Sequence[Body]) -> list[float]:
    """Seconds between the creations."""
    created = [datetime.fromisoformat(pod["creationTimestamp"]) for pod in pods]
    return [(after - before).total_seconds() for before, after in pairwise(created)]


async def pods(jobs: Jobs) -> list[Body]:
    """All pods of the namespace: without labels, those of a job cannot be told."""
    found: list[Body] = (await jobs.kube.get(jobs.objects("pods"))).ok()["items"]
    return found


@pytest.mark.parametrize(("expression", "named"), CHANGES.values(), ids=CHANGES)
async def test_a_changed_pod_is_named_and_created_ever_more_rarely_and_nothing_of_it_stays(
    jobs: Jobs, expression: str, named: str
) -> None:
    version = (await jobs.kube.get(jobs.objects("pods"))).ok()["metadata"]["resourceVersion"]
    async with policy(jobs, expression):
        await until(lambda: changes_new_pods(jobs))
        uid = (await jobs.submit(job("altered", task("exit 0"))))["uid"]
        reason = await jobs.pending("altered", "ChangedByCluster")
        assert named in reason["message"]
        created: list[Any] = await until(
            lambda: created_pods(jobs, version), lambda found: len(found) > len(LEAST_GAPS)
        )
        assert all(gap >= least for gap, least in zip(gaps(created), LEAST_GAPS, strict=False)), created
        assert len(await pods(jobs)) <= 1, "an altered pod is deleted before the next one is created"
        await jobs.delete("altered")
        await jobs.kube.gone(jobs.objects("configmaps", f"jobgate-{uid}"))
    await until(lambda: pods(jobs), lambda found: not found)


async def test_a_job_continues_with_its_first_attempt_after_the_policy_is_gone(jobs: Jobs) -> None:
    async with policy(jobs, STRIP_LABELS):
        await until(lambda: changes_new_pods(jobs))
        await jobs.submit(job("healed", task("exit 0")))
        await jobs.pending("healed", "ChangedByCluster")
    await jobs.until("healed", "Succeeded")
    assert (await jobs.replica("healed"))["attempt"] == 1
    assert len(await pods(jobs)) == 1


async def test_a_running_pod_that_loses_its_labels_for_good_ends_its_job(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "go-on"
    await jobs.submit(job("stripped", task(until_marked(mark, "exit 3"))))
    await jobs.until("stripped", "Running")
    path = jobs.objects("pods", "stripped-worker-0")

    async def update() -> Body:
        found: Body = (await jobs.kube.patch(path, {"metadata": {"annotations": {"example.com/any": "update"}}})).ok()
        return found

    async with policy(jobs, STRIP_LABELS, "UPDATE"):
        await until(update, lambda pod: not pod["metadata"].get("labels"))
        mark.touch()
        status = await jobs.until("stripped", "Failed")
        assert "exit code 3" in status["message"]
        assert (await jobs.replica("stripped"))["attempt"] == 1
        await jobs.delete("stripped")
        await jobs.kube.gone(path)
