"""The PodGroups of other schedulers where the cluster has them, and what is said of a scheduler that it lacks."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import job, task
from tests.behaviour.stage import control_plane, fresh_namespace, running_gateway, running_node
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.plugins.workers import one_worker_at_a_time
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)  # some of it is waiting for one's turn

GROUP = "scheduler.tensorstack.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
API = f"{GROUP}/v1beta1 PodGroup"
QUEUED = {"t9kScheduler": {"queue": "research", "priority": 7}}
PATIENCE = 90.0
MAPPED = {"JOBGATE_SCHEDULER_NAMES": "t9k-scheduler=gang-scheduler"}


def definition(group: str, version: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


async def has_api(api: KubeClient, group: str = GROUP, version: str = "v1beta1") -> bool:
    return (await api.get(f"/apis/{group}/{version}")).status == 200


async def add_api(api: KubeClient, stack: AsyncExitStack, group: str, version: str) -> None:
    """To a real cluster; the embedded one is started with it."""
    if await has_api(api, group, version):
        return
    (await api.post(CRDS, definition(group, version))).ok()
    stack.push_async_callback(remove_api, api, group, version)
    await until(lambda: has_api(api, group, version), what="the API is served", within=PATIENCE)


async def remove_api(api: KubeClient, group: str, version: str) -> None:
    """Until nobody is told of it any more: the next test would take it for its own."""
    path = f"{CRDS}/podgroups.{group}"
    await api.delete(path)
    await api.gone(path)
    served = partial(has_api, api, group, version)
    await until(served, lambda served: not served, what="the API is gone", within=PATIENCE)


@pytest_asyncio.fixture
async def clusters() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(autouse=True)
def alone(stage: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real cluster has the API for everybody or nobody, so the workers of one run take turns."""
    if not stage.real:
        yield
        return
    with one_worker_at_a_time(tmp_path_factory, "gang"):
        yield


class Setting:
    """Builds a gateway on a cluster with or without the API, with or without a scheduler for it."""

    def __init__(self, stack: AsyncExitStack, stage: Cluster, server_url: str, template: str, path: Path) -> None:
        self._stack, self._stage, self._server, self._template, self._path = stack, stage, server_url, template, path

    async def jobs(self, *, api: bool, mapped: bool, group: str = GROUP, version: str = "v1beta1") -> Jobs:
        stack, cluster = self._stack, self._stage
        if api and not cluster.real:
            cluster = stack.enter_context(control_plane(self._path / "cluster", "--pod-groups"))
            stack.enter_context(running_node(cluster, self._path / "node"))
        kube = await stack.enter_async_context(connect(cluster))
        if api:
            await add_api(kube, stack, group, version)
        namespace = await stack.enter_async_context(fresh_namespace(kube))
        names = MAPPED if mapped else {}
        gateway = await stack.enter_async_context(
            running_gateway(cluster, self._server, self._template, self._path / "gateway", **names)
        )
        http = await stack.enter_async_context(httpx2.AsyncClient(base_url=gateway.url, timeout=60))
        return Jobs(http=http, kube=kube, namespace=namespace)


@pytest.fixture
def setting(
    clusters: AsyncExitStack, stage: Cluster, postgres_server_url: str, database_template: str, tmp_path: Path
) -> Setting:
    return Setting(clusters, stage, postgres_server_url, database_template, tmp_path)


async def test_with_the_api_the_job_has_a_pod_group_and_labels_and_loses_both(setting: Setting) -> None:
    jobs = await setting.jobs(api=True, mapped=True)
    uid = (await jobs.submit(job("gang", task(replicas=2), task(kind="ps"), scheduler=QUEUED)))["uid"]
    await jobs.pending("gang", "NotScheduled")
    path = f"/apis/{GROUP}/v1beta1/namespaces/{jobs.namespace}/podgroups/gang"
    group = (await jobs.kube.get(path)).ok()
    assert group["spec"] == {"minMember": 3, "queue": "research", "priority": 7}
    [anchor] = await jobs.of_job("configmaps", uid)
    assert group["metadata"]["ownerReferences"][0]["uid"] == anchor["metadata"]["uid"]
    assert group["metadata"]["labels"]["jobgate.dev/job-uid"] == uid
    await jobs.until_objects("pods", uid, lambda pods: len(pods) == 3)
    pod = await jobs.pod("gang-worker-1")
    assert pod["spec"]["schedulerName"] == "gang-scheduler"
    labels = pod["metadata"]["labels"]
    assert {key: labels[f"{GROUP}/{key}"] for key in ("group-name", "queue", "role")} == {
        "group-name": "gang",
        "queue": "research",
        "role": "worker",
    }
    assert "SchedulerUnavailable" not in await jobs.conditions("gang")
    await jobs.delete("gang")
    await jobs.kube.gone(path)


@pytest.mark.parametrize(
    ("scheduler", "group", "version", "place"),
    [
        ("volcano", "scheduling.volcano.sh", "v1beta1", ("annotations", "scheduling.k8s.io/group-name")),
        (
            "scheduler-plugins-scheduler",
            "scheduling.x-k8s.io",
            "v1alpha1",
            ("labels", "scheduling.x-k8s.io/pod-group"),
        ),
    ],
)
async def test_the_pods_of_a_job_name_the_pod_group_that_their_scheduler_reads(
    setting: Setting, scheduler: str, group: str, version: str, place: tuple[str, str]
) -> None:
    jobs = await setting.jobs(api=True, mapped=False, group=group, version=version)
    body = job("gang", task(replicas=2, schedulerName=scheduler))
    url = f"/api/v1/namespaces/{jobs.namespace}/jobs/dry-run"
    shown = (await jobs.http.post(url, json=body)).json()["items"][0]["manifests"]
    uid = (await jobs.submit(body))["uid"]
    pods = await jobs.until_objects("pods", uid, lambda pods: len(pods) == 2)
    # As these schedulers report that there is no room for all members.
    message = "3/3 tasks in gang unschedulable"
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    for pod in pods:
        path = f"{jobs.objects('pods', pod['metadata']['name'])}/status"
        (await jobs.kube.patch(path, {"status": {"conditions": [unplaced]}})).ok()
    reason = await jobs.pending("gang", "GangUnschedulable", count=2)
    assert (reason["message"], reason["count"]) == (message, 2)
    name, (field, key) = f"jobgate-{uid}-2", place
    assert [pod["metadata"][field][key] for pod in pods] == [name, name]
    path = f"/apis/{group}/{version}/namespaces/{jobs.namespace}/podgroups/{name}"
    found = (await jobs.kube.get(path)).ok()
    [planned] = [one for one in shown if one["kind"] == "PodGroup"]
    assert found["spec"] == planned["spec"] == {"minMember": 2}
    listed = (await jobs.read("gang", "manifests"))["items"]
    assert [one["metadata"]["name"] for one in listed if one["kind"] == "PodGroup"] == [name]
    assert all(one["metadata"][field][key] == name for one in listed if one["kind"] == "Pod")
    await jobs.delete("gang")
    await jobs.kube.gone(path)


@pytest.mark.parametrize(
    ("api", "mapped", "reason", "words", "scheduler"),
    [
        (False, False, "NoSuchApi", f"this cluster has no {API}: the default scheduler", "default-scheduler"),
        (False, True, "NoSuchApi", f"this cluster has no {API}: gang-scheduler", "gang-scheduler"),
        (True, False, "NoScheduler", f"no scheduler is configured for {API}: the default one", "default-scheduler"),
    ],
)
async def test_what_is_lacking_is_said_and_is_true(
    setting: Setting, *, api: bool, mapped: bool, reason: str, words: str, scheduler: str
) -> None:
    jobs = await setting.jobs(api=api, mapped=mapped)
    if not api and await has_api(jobs.kube):
        pytest.skip("this cluster has the PodGroup API: `make test` runs the test on one without it")
    uid = (await jobs.submit(job("lone", scheduler=QUEUED)))["uid"]
    [pod] = await jobs.until_objects("pods", uid, bool)
    assert pod["spec"]["schedulerName"] == scheduler
    condition = (await jobs.conditions("lone"))["SchedulerUnavailable"]
    assert (condition["status"], condition["reason"]) == ("True", reason)
    assert condition["message"].startswith(words)
    if not mapped:
        await jobs.until("lone", "Running")
