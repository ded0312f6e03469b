"""The table of pods that violate controls of the Pod Security Standards is the truth of a real control plane."""

import asyncio

import pytest

from tests.support.kube import Cluster, KubeClient
from tests.support.pod_security import CASES

ENFORCE = "pod-security.kubernetes.io/enforce"
FORBIDDEN = "violates PodSecurity"


@pytest.mark.parametrize("level", ["baseline", "restricted"])
async def test_admission_agrees_with_the_table(cluster: Cluster, api: KubeClient, namespace: str, level: str) -> None:
    if not cluster.real:
        pytest.skip("the embedded cluster has no Pod Security admission; give a real one in JOBGATE_TEST_KUBECONFIG")
    label = {"metadata": {"labels": {ENFORCE: level}}}
    assert (await api.patch(f"/api/v1/namespaces/{namespace}", label)).status == 200
    await api.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda body: body["metadata"])
    wrong = {}
    for name, case in CASES.items():
        template = case.template()
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "one"}}
        answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
        expected = case.baseline if level == "baseline" else case.violates_restricted
        message = str(answer.body.get("message", ""))
        refused = answer.status == 403 and FORBIDDEN in message
        if answer.status not in (201, 403) or refused != bool(expected):
            wrong[name] = (answer.status, message, expected)
        await asyncio.sleep(0)
    assert wrong == {}
