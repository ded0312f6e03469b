"""The Helm chart of deploy/: its files, and the objects that `helm template` renders from them."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.rights import DEPLOY, RBAC, SAMPLE_SETS, documents

CHART = DEPLOY / "helm" / "jobgate"
TEMPLATES = CHART / "templates"
HELM = "JOBGATE_TEST_HELM"
NO_HELM = f"there is no helm: docs/testing.md says how to get it; then set {HELM} or PATH"
# The names of objects are then those of deploy/.
RELEASE = "jobgate"
# A helm that `go install` builds does not know a version of Kubernetes.
KUBERNETES = "1.36.0"
NAMESPACE = "jobgate-system"
# Everything that the chart can create.
EVERYTHING: Mapping[str, Any] = {
    "rbac": {"user": "gateway"},
    "clusterDryRun": {"enabled": True},
    "queues": {"enabled": True},
    "sampleSets": {"enabled": True},
    "wholeLogs": {"store": "s3://bucket/jobgate", "credentialsSecret": "jobgate-log-store"},
    "database": {"url": "postgresql://user:password@db.example/jobgate"},
    "api": {"autoscaling": {"enabled": True}},
    "ingress": {"enabled": True, "hosts": ["jobgate.example"], "tlsSecretName": "jobgate-tls"},
    "networkPolicy": {"egress": [{"ports": [{"port": 5432, "protocol": "TCP"}]}]},
    "oidc": {
        "issuer": "https://id.example/realms/lab",
        "clientId": "jobgate",
        "grants": ["vision-team=submitter:vision,shared", "platform=admin:*", "*=viewer:shared"],
        "caConfigMap": "oidc-authorities",
    },
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
}


def helm() -> str | None:
    return os.environ.get(HELM) or shutil.which("helm")


def run_helm(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `helm` of JOBGATE_TEST_HELM or PATH. The test is skipped if there is none."""
    program = helm()
    if not program:
        pytest.skip(NO_HELM)
    return subprocess.run(
        [program, *arguments, *(() if values is None else ("--values", "-"))],
        input=None if values is None else yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def template(
    values: Mapping[str, Any], *, release: str = RELEASE, namespace: str = NAMESPACE, chart: Path = CHART
) -> subprocess.CompletedProcess[str]:
    where = ("--namespace", namespace, "--kube-version", KUBERNETES)
    return run_helm("template", release, str(chart), *where, values=values)


def notes(values: Mapping[str, Any], directory: Path) -> str:
    """The notes that helm prints after an installation.

    `helm template` omits them, and `helm install --dry-run` needs a cluster. So they are the text of an object in a
    copy of the chart.
    """
    chart = directory / "jobgate"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "NOTES.txt").rename(chart / "notes.txt")
    text = 'apiVersion: v1\nkind: Notes\ntext: {{ tpl (.Files.Get "notes.txt") . | quote }}\n'
    (chart / "templates" / "notes.yaml").write_text(text)
    ran = template(values, chart=chart)
    assert ran.returncode == 0, ran.stderr
    return next(str(one["text"]) for one in yaml.safe_load_all(ran.stdout) if one and one["kind"] == "Notes")


def rendered(values: Mapping[str, Any], *, release: str = RELEASE, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """The objects of a release with these values, hooks included."""
    ran = template(values, release=release, namespace=namespace)
    assert ran.returncode == 0, ran.stderr
    return [document for document in yaml.safe_load_all(ran.stdout) if document]


def of_kind(kind: str, objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The objects of a kind by their names."""
    return {found["metadata"]["name"]: found for found in objects if found["kind"] == kind}


def grants(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The roles and bindings among the objects."""
    return [found for found in objects if found["kind"].endswith(("Role", "RoleBinding"))]


def core_grants() -> dict[str, list[dict[str, Any]]]:
    """What grants rights to the user `gateway`, by source: deploy/, and the chart if there is a helm."""
    found = {"deploy/rbac.yaml": documents(RBAC)}
    if helm():
        found["the chart"] = grants(rendered({"rbac": {"user": "gateway"}}))
    return found


def sample_set_grants() -> dict[str, list[dict[str, Any]]]:
    """What grants the further rights for SampleSets, by source."""
    found = {"deploy/rbac-sample-sets.yaml": documents(SAMPLE_SETS)}
    if helm():
        objects = grants(rendered({"rbac": {"user": "gateway"}, "sampleSets": {"enabled": True}}))
        found["the chart"] = [each for each in objects if each["metadata"]["name"].startswith("jobgate-sample-")]
    return found
