"""jobgate and the Pod Security admission of a real control plane refuse the same pods."""

import pytest

from app.domain.policy import DeclaredTemplate, Level, PodPolicy
from tests.support.clusters.cluster import require_real
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.pod_templates.security import CASES

ENFORCE = "pod-security.kubernetes.io/enforce"
FORBIDDEN = "violates PodSecurity"


@pytest.mark.parametrize("level", [Level.BASELINE, Level.RESTRICTED])
async def test_admission_agrees_with_the_policy(
    cluster: Cluster, api: KubeClient, namespace: str, level: Level
) -> None:
    require_real(cluster, "Pod Security admission")
    label = {"metadata": {"labels": {ENFORCE: level}}}
    assert (await api.patch(f"/api/v1/namespaces/{namespace}", label)).status == 200
    await api.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda body: body["metadata"])
    wrong = {}
    for name, case in CASES.items():
        template = case.template()
        pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "one"}}
        answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
        declared = DeclaredTemplate.at(template, "")
        policy = PodPolicy(level=level, user_namespaces=True)
        expected = [error.code for error in policy.violations([declared])]
        message = str(answer.body.get("message", ""))
        refused = answer.status == 403 and FORBIDDEN in message
        if answer.status not in (201, 403) or refused != bool(expected):
            wrong[name] = (answer.status, message, expected)
    assert wrong == {}
