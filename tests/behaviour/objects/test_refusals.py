"""Refusals of the cluster: a job waits if time may help, and is otherwise Failed with the message of the cluster."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
import yaml

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import container, job, task
from tests.behaviour.stage import running_gateway
from tests.support.clusters.cluster import require_faults, require_real
from tests.support.clusters.kube import DEADLINE, Cluster
from tests.support.waiting import until


async def test_a_spent_quota_is_waited_for(jobs: Jobs) -> None:
    quota = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "0"}}}
    (await jobs.kube.post(jobs.objects("resourcequotas"), quota)).ok()
    await jobs.kube.eventually(jobs.objects("resourcequotas", "pods"), lambda found: found["status"].get("hard"))
    await jobs.submit(job("frugal", task("exit 0", replicas=2)))
    reason = await jobs.pending("frugal", "QuotaExceeded")
    assert "exceeded quota: pods" in reason["message"]
    assert (await jobs.status("frugal"))["phase"] == "Creating"
    (await jobs.kube.patch(jobs.objects("resourcequotas", "pods"), {"spec": {"hard": {"pods": "5"}}})).ok()
    await jobs.until("frugal", "Succeeded")
    assert (await jobs.replica("frugal"))["restartCount"] == 0


@pytest.mark.parametrize(
    ("hard", "resources", "words"),
    [
        ({"limits.cpu": "8"}, {}, "failed quota: compute: must specify limits.cpu"),
        ({"requests.memory": "8Gi"}, {}, "failed quota: compute: must specify requests.memory"),
        ({"requests.cpu": "1"}, {"requests": {"cpu": "2"}}, "exceeded quota: compute, requested: requests.cpu=2"),
        (
            {"limits.memory": "1Gi"},
            {"limits": {"memory": "2Gi"}},
            "exceeded quota: compute, requested: limits.memory=2",
        ),
    ],
)
async def test_a_pod_that_no_quota_of_this_kind_accepts_fails_its_job(
    jobs: Jobs, hard: dict[str, str], resources: dict[str, dict[str, str]], words: str
) -> None:
    quota = {"metadata": {"name": "compute"}, "spec": {"hard": hard}}
    (await jobs.kube.post(jobs.objects("resourcequotas"), quota)).ok()
    await jobs.kube.eventually(jobs.objects("resourcequotas", "compute"), lambda found: found["status"].get("hard"))
    await jobs.submit(job("unfit", task(containers=[container("exit 0", resources=resources)])))
    status = await jobs.until("unfit", "Failed")
    assert status["reason"] == "RefusedByCluster"
    assert words in status["message"]


@pytest.mark.parametrize(
    ("limit", "resources", "words"),
    [
        ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"min": {"memory": "1Gi"}}, {"requests": {"memory": "1Mi"}}, "minimum memory usage per Container is 1Gi"),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4",
        ),
    ],
)
async def test_a_pod_outside_a_limit_range_fails_its_job(
    jobs: Jobs, limit: dict[str, dict[str, str]], resources: dict[str, dict[str, str]], words: str
) -> None:
    require_real(jobs.kube.cluster, "LimitRanges")
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", **limit}]}}
    (await jobs.kube.post(jobs.objects("limitranges"), body)).ok()
    await jobs.submit(job("outside", task(containers=[container("exit 0", resources=resources)])))
    status = await jobs.until("outside", "Failed")
    assert (status["reason"], words in status["message"]) == ("RefusedByCluster", True), status["message"]


@pytest.mark.parametrize(
    ("hard", "scopes"), [({"count/pods": "0"}, []), ({"count/configmaps": "0"}, []), ({"pods": "0"}, ["BestEffort"])]
)
async def test_a_quota_that_counts_objects_is_waited_for(jobs: Jobs, hard: dict[str, str], scopes: list[str]) -> None:
    require_real(jobs.kube.cluster, "quotas for other objects and for scopes")
    quota = {"metadata": {"name": "closed"}, "spec": {"hard": hard, "scopes": scopes}}
    (await jobs.kube.post(jobs.objects("resourcequotas"), quota)).ok()
    await jobs.kube.eventually(jobs.objects("resourcequotas", "closed"), lambda found: found["status"].get("hard"))
    await jobs.submit(job("counted", task("exit 0")))
    reason = await jobs.pending("counted", "QuotaExceeded")
    assert "exceeded quota: closed" in reason["message"]
    (await jobs.kube.delete(jobs.objects("resourcequotas", "closed"))).ok()
    await jobs.until("counted", "Succeeded")


async def test_a_missing_service_account_is_waited_for(jobs: Jobs) -> None:
    await jobs.submit(job("account", task("exit 0", serviceAccountName="trainer")))
    reason = await jobs.pending("account", "ServiceAccountNotFound")
    assert "trainer" in reason["message"]
    (await jobs.kube.post(jobs.objects("serviceaccounts"), {"metadata": {"name": "trainer"}})).ok()
    await jobs.until("account", "Succeeded")


async def test_a_missing_namespace_is_waited_for(jobs: Jobs) -> None:
    jobs.namespace = f"behaviour-{secrets.token_hex(4)}"
    await jobs.submit(job("early", task("exit 0")))
    reason = await jobs.pending("early", "NamespaceNotFound")
    assert jobs.namespace in reason["message"]
    (await jobs.kube.post("/api/v1/namespaces", {"metadata": {"name": jobs.namespace}})).ok()
    try:
        await jobs.until("early", "Succeeded")
    finally:
        await jobs.kube.delete(f"/api/v1/namespaces/{jobs.namespace}")


async def test_a_403_that_nobody_knows_is_waited_for(jobs: Jobs) -> None:
    require_faults(jobs.kube.cluster)
    words = 'pods "odd" is forbidden: the freeze of project research has not been lifted'
    await jobs.fault(verb="create", resource="pods", status=403, message=words)
    try:
        await jobs.submit(job("odd", task("exit 0")))
        reason = await jobs.pending("odd", "RefusedByCluster")
        assert reason["message"] == words
        assert (await jobs.status("odd"))["phase"] == "Creating"
    finally:
        await jobs.no_faults()
    await jobs.until("odd", "Succeeded")


INVALID = "spec.activeDeadlineSeconds"
SPOILT = "spoilt"
POLICIES = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture
async def strict(jobs: Jobs) -> AsyncIterator[Jobs]:
    """On a cluster that calls the pods with the label `spoilt` invalid; the embedded one says it of each pod."""
    if jobs.kube.cluster.real:
        async with spoiling_policy(jobs):
            yield jobs
        return
    message = f'Pod "x" is invalid: {INVALID}: Invalid value: 0: must be between 1 and 2147483647, inclusive'
    await jobs.fault(verb="create", resource="pods", status=422, message=message)
    yield jobs
    await jobs.no_faults()


@asynccontextmanager
async def spoiling_policy(jobs: Jobs) -> AsyncIterator[None]:
    """A policy of the cluster that makes pods invalid after jobgate has checked them, as a faulty webhook does."""
    name = jobs.namespace
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/spec/activeDeadlineSeconds", value: 0}]'},
    }
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [rule],
                "namespaceSelector": selector,
                "objectSelector": {"matchLabels": {SPOILT: "true"}},
            },
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [mutation],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    probe = {
        "metadata": {"name": "probe", "labels": {SPOILT: "true"}},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "automountServiceAccountToken": False},
    }
    (await jobs.kube.post(f"{POLICIES}/mutatingadmissionpolicies", policy)).ok()
    try:
        (await jobs.kube.post(f"{POLICIES}/mutatingadmissionpolicybindings", binding)).ok()

        async def is_active() -> bool:
            return (await jobs.kube.post(jobs.objects("pods"), probe, dryRun="All")).status == 422

        await until(is_active, within=DEADLINE)
        yield
    finally:
        await jobs.kube.delete(f"{POLICIES}/mutatingadmissionpolicybindings/{name}")
        await jobs.kube.delete(f"{POLICIES}/mutatingadmissionpolicies/{name}")


async def test_a_pod_that_the_cluster_calls_invalid_fails_the_job_with_its_words(strict: Jobs) -> None:
    uid = (await strict.submit(job("invalid", task(labels={SPOILT: "true"}))))["uid"]
    status = await strict.until("invalid", "Failed")
    assert status["reason"] == "RefusedByCluster"
    assert INVALID in status["message"]
    assert await strict.names("pods", uid) == []
    assert (await strict.conditions("invalid"))["Failed"]["status"] == "True"
    assert "RefusedByCluster" in await strict.reasons("invalid")


async def test_one_refused_pod_ends_the_job_and_leaves_nothing_running(strict: Jobs) -> None:
    """Whatever the clean-up policy: no rule has ended this job, so nobody waits for its other pods."""
    require_real(strict.kube.cluster, "mutating admission policies")
    uid = (await strict.submit(job("mixed", task(), task(kind="bad", labels={SPOILT: "true"}))))["uid"]
    await strict.until("mixed", "Failed")
    await strict.until_objects("pods", uid, lambda pods: not pods)
    # The gateway hears of it in its own time.
    await strict.until_replicas("mixed", lambda found: {item["phase"] for item in found.values()} == {"Deleted"})


@pytest_asyncio.fixture
async def denied(
    stage: Cluster, jobs: Jobs, postgres_server_url: str, database_template: str, tmp_path: Path
) -> AsyncIterator[Jobs]:
    """A client of a gateway that may do everything but create pods."""
    if not stage.real:
        words = 'pods is forbidden: User "gateway" cannot create resource "pods" in API group "" at the cluster scope'
        await jobs.fault(verb="create", resource="pods", status=403, message=words)
        yield jobs
        await jobs.no_faults()
        return
    async with (
        limited_user(jobs, stage, tmp_path) as limited,
        running_gateway(limited, postgres_server_url, database_template, tmp_path / "gateway") as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http,
    ):
        yield Jobs(http=http, kube=jobs.kube, namespace=jobs.namespace)


@asynccontextmanager
async def limited_user(jobs: Jobs, cluster: Cluster, directory: Path) -> AsyncIterator[Cluster]:
    """The cluster as a ServiceAccount of the test's own sees it."""
    (await jobs.kube.post(jobs.objects("serviceaccounts"), {"metadata": {"name": "limited"}})).ok()
    core = ["configmaps", "services", "nodes", "namespaces", "events"]
    rules = [
        {"apiGroups": [""], "resources": core, "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "delete"]},
    ]
    path = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": jobs.namespace}, "rules": rules}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": jobs.namespace}
    subjects = [{"kind": "ServiceAccount", "name": "limited", "namespace": jobs.namespace}]
    binding = {"metadata": {"name": jobs.namespace}, "roleRef": reference, "subjects": subjects}
    (await jobs.kube.post(f"{path}/clusterroles", role)).ok()
    (await jobs.kube.post(f"{path}/clusterrolebindings", binding)).ok()
    request = (await jobs.kube.post(jobs.objects("serviceaccounts", "limited", "token"), {"spec": {}})).ok()
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in document["users"]:
        user["user"] = {"token": request["status"]["token"]}
    kubeconfig = directory / "limited.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    try:
        yield replace(cluster, kubeconfig=kubeconfig)
    finally:
        await jobs.kube.delete(f"{path}/clusterrolebindings/{jobs.namespace}")
        await jobs.kube.delete(f"{path}/clusterroles/{jobs.namespace}")


async def test_a_right_that_the_gateway_lacks_is_waited_for(denied: Jobs) -> None:
    await denied.submit(job("powerless", task("exit 0")))
    reason = await denied.pending("powerless", "ClusterDenied")
    assert 'cannot create resource "pods"' in reason["message"]
    assert (await denied.status("powerless"))["phase"] == "Creating"


async def test_pod_security_fails_the_job_with_its_words(jobs: Jobs) -> None:
    require_real(jobs.kube.cluster, "Pod Security admission")
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    (await jobs.kube.patch(f"/api/v1/namespaces/{jobs.namespace}", label)).ok()
    await jobs.submit(job("rooted"))
    status = await jobs.until("rooted", "Failed")
    assert status["reason"] == "RefusedByCluster"
    assert 'violates PodSecurity "restricted:latest"' in status["message"]


async def test_a_namespace_deleted_under_a_running_job_fails_it_and_keeps_its_history(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("orphan", task("echo words; exec sleep 600", policy="OnFailure", limit=3))))["uid"]
    await jobs.until_log("orphan", "words")
    await jobs.until("orphan", "Running")
    (await jobs.kube.delete(f"/api/v1/namespaces/{jobs.namespace}")).ok()
    status = await jobs.until("orphan", "Failed")
    assert status["reason"] in ("NamespaceTerminating", "NamespaceDeleted")
    deleted = (f"the namespace {jobs.namespace} is being deleted", f"the namespace {jobs.namespace} has been deleted")
    assert status["message"].startswith(deleted)
    await jobs.kube.gone(f"/api/v1/namespaces/{jobs.namespace}", within=120)
    reasons = [row["reason"] for row in (await jobs.read_uid(uid, "history"))["items"]]
    assert "ReplicasStarted" in reasons
    [replica] = (await jobs.read_uid(uid, "replicas"))["items"]
    assert replica["restartCount"] == 0
    assert (await jobs.log("orphan", attempt="1")).text == "words\n"
