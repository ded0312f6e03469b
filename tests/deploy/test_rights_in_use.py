"""The life of a job and an uninstall use every right of deploy/rbac.yaml and of the chart. The life uses no other.

gateway ──▶ proxy that takes notes ──▶ cluster        the user `gateway` on a real one, where its kubeconfig is given
"""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.domain.kubernetes import labels
from app.running import controlling
from app.settings import Settings
from tests.deploy.chart import core_grants
from tests.deploy.rights import Right, apply, granted, used
from tests.support.clusters.cluster import REAL_GATEWAY, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.kube_proxy import KubeProxy, kube_proxy
from tests.support.clusters.nodes import some_node
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

GANG = "scheduler.tensorstack.dev"
NAMESPACE = "default"
JOBS = f"/api/v1/namespaces/{NAMESPACE}/jobs"


@pytest.fixture
def cluster_with_node(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    if cluster.real:
        with some_node(cluster, tmp_path / "node"):
            yield cluster
        return
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "1", "--pod-groups") as own:
        yield own


def as_gateway(cluster: Cluster) -> Cluster:
    """The same cluster for the user `gateway`; the embedded one knows one user."""
    if not cluster.real:
        return cluster
    if given := os.environ.get(REAL_GATEWAY):
        return Cluster.read(Path(given), real=True)
    beside = cluster.kubeconfig.with_name("gateway.kubeconfig")
    if not beside.exists():
        pytest.skip(f"a real cluster needs a kubeconfig of the user gateway: set {REAL_GATEWAY} or create {beside}")
    return Cluster.read(beside, real=True)


def a_job(name: str) -> dict[str, Any]:
    """It needs a gang and Services, fails once, and then runs until it is told to go."""
    command = 'test "$ATTEMPT" != 1 || exit 3; sleep 600'
    attempt = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['jobgate.dev/attempt']"}}}
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command], "env": [attempt]}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "service": {"ports": [{"name": "rendezvous", "port": 7000}]},
            "scheduler": {"t9kScheduler": {"queue": "default"}},
            "replicaSpecs": [
                {
                    "type": "worker",
                    "restartPolicy": {"policy": "OnFailure", "limit": 3},
                    "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}},
                }
            ],
        },
    }


@asynccontextmanager
async def serving(kubeconfig: Path, database_url: str, directory: Path) -> AsyncIterator[httpx2.AsyncClient]:
    # Queues have rights of their own, and the embedded cluster plays Kueue.
    settings = {**STEADY, "JOBGATE_QUEUES": "off"}
    async with gateway_process(database_url, kubeconfig, directory / "gateway", **settings) as gateway:
        url = await gateway.start()
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            yield client


async def until_status(client: httpx2.AsyncClient, job: str, key: str, value: object) -> None:
    """Poll until a field of the status is as wanted; nothing may be refused on the way."""

    async def status() -> dict[str, Any]:
        found: dict[str, Any] = (await client.get(f"{job}/status")).json()["status"]
        assert "ClusterDenied" not in {reason["code"] for reason in found["pendingReasons"]}, found
        return found

    await until(status, lambda found: found.get(key) == value, what=f"{key}={value} of {job}", within=120)


async def until_attempt(client: httpx2.AsyncClient, job: str, number: int) -> None:
    await until(
        lambda: client.get(f"{job}/replicas"),
        lambda answer: answer.json()["items"][0]["attempt"] == number,
        what=f"attempt {number}",
        within=120,
    )
    await until_status(client, job, "phase", "Running")


async def live(client: httpx2.AsyncClient, name: str, proxy: KubeProxy, admin: KubeClient) -> None:
    """Submitted, restarted, without a label of its pod, paused, resumed, read, cancelled, marked as ended, deleted."""
    job = f"{JOBS}/{name}"
    assert (await client.post(JOBS, json=a_job(name))).status_code == 201
    await until_status(client, job, "phase", "Running")
    await until_attempt(client, job, 2)
    # The gateway asks the API server whether a pod that the watch no longer shows is really gone.
    pod = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}-worker-0"
    (await admin.patch(pod, {"metadata": {"labels": {labels.JOB_UID: None}}})).ok()
    await admin.eventually(pod, lambda found: labels.JOB_UID in found["metadata"]["labels"])
    assert (await client.post(f"{job}/pause")).status_code == 202
    await until_status(client, job, "phase", "Paused")
    assert (await client.post(f"{job}/resume")).status_code == 202
    await until_status(client, job, "observedGeneration", 3)
    assert (await client.get(f"{job}/logs?attempt=1")).status_code == 200
    assert (await client.post(f"{job}/cancel")).status_code == 202
    await until_status(client, job, "phase", "Cancelled")
    anchor = f"/configmaps/jobgate-{(await client.get(job)).json()['uid']}".encode()
    await until(
        lambda: any(line.startswith(b"PATCH") and anchor in line for line in proxy.requests),
        what="the anchor is patched",
        within=120,
    )
    assert (await client.delete(job)).status_code == 202
    # 202 for as long as objects are left.
    await until(
        lambda: client.delete(job),
        lambda answer: answer.status_code == 200,
        what="all objects are removed",
        within=120,
    )


@pytest.mark.timeout(600)
async def test_a_jobs_life_and_an_uninstall_use_every_right_and_no_other(
    cluster_with_node: Cluster, database_url: str, tmp_path: Path
) -> None:
    user = as_gateway(cluster_with_node)
    async with connect(cluster_with_node) as admin, kube_proxy(user) as proxy:
        if cluster_with_node.real:
            await apply(admin, *core_grants().values())
        else:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
        # The code for the PodGroups of all APIs is the same, so a job with those of one API needs every right.
        served = [GANG] if (await admin.get(f"/apis/{GANG}/v1beta1")).status == 200 else []
        kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")
        async with serving(kubeconfig, database_url, tmp_path) as client:
            await live(client, f"rights-{secrets.token_hex(3)}", proxy, admin)
        needed = rights_used(proxy)
        await controlling.uninstall(Settings(database_url=database_url, kubeconfig=str(kubeconfig)))
        for source, found in core_grants().items():
            given = granted("gateway", found)
            expected = {right for right in given if right.resource != "podgroups" or right.group in served}
            more, unused = needed - expected, expected - rights_used(proxy)
            assert not more, f"the code asks for more than {source} grants: {more}"
            assert not unused, f"{source} grants what neither a job's life nor an uninstall needs: {unused}"


def rights_used(proxy: KubeProxy) -> set[Right]:
    return {right for request in proxy.requests if (right := used(request)) is not None}


@pytest.mark.parametrize(
    ("request_line", "right"),
    [
        (b"GET /api/v1/pods?labelSelector=a HTTP/1.1", Right("", "pods", "list")),
        (b"GET /api/v1/pods?watch=1 HTTP/1.1", Right("", "pods", "watch")),
        (b"GET /api/v1/namespaces/a/pods/b HTTP/1.1", Right("", "pods", "get")),
        (b"GET /api/v1/namespaces/a/pods/b/log?follow=false HTTP/1.1", Right("", "pods/log", "get")),
        (b"GET /api/v1/namespaces/kube-system HTTP/1.1", Right("", "namespaces", "get", ("kube-system",))),
        (b"POST /api/v1/namespaces HTTP/1.1", Right("", "namespaces", "create")),
        (f"DELETE /apis/{GANG}/v1beta1/namespaces/a/podgroups/b HTTP/1.1".encode(), Right(GANG, "podgroups", "delete")),
        (f"GET /apis/{GANG}/v1beta1 HTTP/1.1".encode(), None),
    ],
)
def test_requests_are_told_apart(request_line: bytes, right: Right | None) -> None:
    assert used(request_line) == right
