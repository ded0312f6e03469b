"""In a dry run the cluster checks the objects of a job, and creates none of them."""

from functools import partial
from typing import Any

from tests.behaviour.client import DEADLINE, Jobs
from tests.behaviour.manifests import job, task
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster
from tests.support.waiting import until


async def dry_run(jobs: Jobs, manifest: Any, mode: str = "All", namespace: str | None = None) -> Any:
    path = f"/api/v1/namespaces/{namespace or jobs.namespace}/jobs"
    answer = await jobs.http.post(path, params={"dryRun": mode}, json=manifest)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_job_that_the_cluster_accepts_has_no_findings(jobs: Jobs) -> None:
    shown = await dry_run(jobs, job("fine", task(replicas=3), task(kind="chief")))
    assert shown["cluster"] == {"isComplete": True, "detail": "", "findings": []}
    for plural in ("pods", "configmaps", "services"):
        listed = (await jobs.kube.get(jobs.objects(plural))).ok()["items"]
        assert [one for one in listed if "fine" in one["metadata"]["name"]] == []
    assert (await dry_run(jobs, job("fine", task()), "Local"))["cluster"] is None


async def test_a_quota_is_reported_for_each_task(jobs: Jobs) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    (await jobs.kube.post(jobs.objects("resourcequotas"), quota)).ok()
    await jobs.kube.eventually(
        jobs.objects("resourcequotas", "none"), lambda found: "pods" in found.get("status", {}).get("hard", {})
    )
    shown = await dry_run(jobs, job("big", task(replicas=400), task(kind="chief")))
    found = [(one["effect"], one["code"], one["task"], one["pointer"]) for one in shown["cluster"]["findings"]]
    assert found == [
        ("Waits", "QuotaExceeded", "worker", "/spec/replicaSpecs/0/template"),
        ("Waits", "QuotaExceeded", "chief", "/spec/replicaSpecs/1/template"),
    ]
    assert "exceeded quota: none" in shown["cluster"]["findings"][0]["detail"]
    assert shown["cluster"]["isComplete"] is True


async def test_a_missing_namespace_is_reported(jobs: Jobs) -> None:
    shown = await dry_run(jobs, job("lost", task()), namespace="no-such-namespace")
    codes = {(one["effect"], one["code"]) for one in shown["cluster"]["findings"]}
    assert codes == {("Waits", "NamespaceNotFound")}


async def test_pod_security_refuses_and_warns(jobs: Jobs, stage: Cluster) -> None:
    require_real(stage, "Pod Security admission")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for level in ("warn", "enforce"):
        await jobs.kube.patch(
            f"/api/v1/namespaces/{jobs.namespace}",
            {"metadata": {"labels": {f"pod-security.kubernetes.io/{level}": "restricted"}}},
        )
        effect = "Fails" if level == "enforce" else "Warns"
        # Admission reads namespaces from a cache.
        findings = await until(partial(_findings, jobs, effect), what=level, within=DEADLINE)
        assert all('PodSecurity "restricted:latest"' in one["detail"] for one in findings)
        found[level] = [(one["effect"], one["code"], one["pointer"]) for one in findings]
    template = "/spec/replicaSpecs/0/template"
    assert found == {"warn": [("Warns", "Warning", template)], "enforce": [("Fails", "RefusedByCluster", template)]}


async def _findings(jobs: Jobs, effect: str) -> list[dict[str, Any]]:
    check = (await dry_run(jobs, job("loose", task())))["cluster"]
    assert check["isComplete"]
    return [one for one in check["findings"] if one["effect"] == effect]
