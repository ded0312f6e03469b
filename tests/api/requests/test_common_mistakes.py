"""The answer to each common mistake of a new user names the next step."""

import json
from typing import Any

import pytest
import yaml

from tests.support.gateways.gateway import Gateway, jobs_path, manifest

pytestmark = pytest.mark.asyncio(loop_scope="module")

YAML = "application/yaml"
FORM = "application/x-www-form-urlencoded"
GENERIC_JOB = "a GenericJob runs any container: see docs/kinds/generic-job.md"
KUBECTL = "is not one of the kinds here; apply it with kubectl, and post the job alone"
JOB = yaml.safe_dump(manifest("mine"), sort_keys=False)


def other(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other"}, "spec": {"template": {}}}


def as_curl_d(text: str) -> str:
    """Return what `curl -d @FILE` sends."""
    return text.replace("\n", "")


MISTAKES: list[tuple[str, str, str, int, str, str, str]] = [
    # mistake, Content-Type, body, status, pointer, code, the next step in `detail` or `accepted`
    *(
        (f"{kind} of {version}", YAML, yaml.safe_dump(other(version, kind)), 422, "/kind", "UnknownKind", step)
        for version, kind, step in (
            ("batch/v1", "Job", f"a Job of batch/v1 is not one of the kinds here; {GENERIC_JOB}"),
            ("batch/v1", "CronJob", GENERIC_JOB),
            ("v1", "Pod", GENERIC_JOB),
            ("kubeflow.org/v1", "PyTorchJob", GENERIC_JOB),
            ("kubeflow.org/v1", "TFJob", GENERIC_JOB),
            ("kubeflow.org/v2beta1", "MPIJob", GENERIC_JOB),
            ("ray.io/v1", "RayJob", GENERIC_JOB),
            ("batch.volcano.sh/v1alpha1", "Job", GENERIC_JOB),
            ("kubeflow.org/v1", "MXJob", f"{GENERIC_JOB}; MxJob is for the same framework: see docs/kinds/mx-job.md"),
            ("v1", "ConfigMap", f"a ConfigMap {KUBECTL}"),
            ("apps/v1", "Deployment", f"a Deployment {KUBECTL}"),
            ("monitoring.coreos.com/v1", "PodMonitor", f"a PodMonitor {KUBECTL}"),
            ("batch.tensorstack.dev/v1beta1", "GenricJob", 'did you mean "GenericJob"?'),
            ("batch.tensorstak.dev/v1beta1", "GenricJob", 'did you mean "GenericJob"?'),
        )
    ),
    (
        "other documents in the file",
        YAML,
        f"{yaml.safe_dump(other('v1', 'Namespace'))}---\n{JOB}---\n{yaml.safe_dump(other('v1', 'Secret'))}",
        422,
        "/items/2/kind",
        "UnknownKind",
        f"a Secret {KUBECTL}",
    ),
    (
        "other objects in a List",
        "application/json",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest("mine"), other("v1", "PersistentVolume")]}),
        422,
        "/items/1/kind",
        "UnknownKind",
        f"a PersistentVolume {KUBECTL}",
    ),
    ("a tab", YAML, JOB.replace("\n  name", "\n\tname"), 400, "", "MalformedYaml", "replace each tab"),
    ("a tab after spaces", YAML, JOB + "  \tqueue: a\n", 400, "", "MalformedYaml", "the line is indented with a tab"),
    ("curl -d", FORM, as_curl_d(JOB), 415, "/header/Content-Type", "UnsupportedMediaType", "--data-binary @FILE"),
    ("curl -d with a Content-Type", YAML, as_curl_d(JOB), 400, "", "MalformedYaml", "curl --data-binary @FILE keeps"),
    ("curl -d, a comment first", YAML, as_curl_d("# mine\n" + JOB), 400, "", "EmptyBody", "--data-binary @FILE keeps"),
    ("curl -d, a marker first", YAML, as_curl_d("---\n" + JOB), 400, "", "MalformedYaml", "--data-binary @FILE keeps"),
    ("an unquoted variable", YAML, " ".join(JOB.split()) + "\n", 400, "", "MalformedYaml", "its newlines are lost"),
    ("YAML as JSON", "application/json", JOB, 400, "", "MalformedJson", f"YAML with the Content-Type {YAML}"),
    ("commented YAML as JSON", "application/json", "# mine\n" + JOB, 400, "", "MalformedJson", "the body is YAML"),
]


@pytest.mark.parametrize(
    ("media_type", "body", "status", "pointer", "code", "next_step"),
    [mistake[1:] for mistake in MISTAKES],
    ids=[mistake[0] for mistake in MISTAKES],
)
async def test_the_answer_to_a_mistake_names_the_next_step(
    media_type: str, body: str, status: int, pointer: str, code: str, next_step: str, shared_gateway: Gateway
) -> None:
    answer = await shared_gateway.client.post(jobs_path("mistakes"), content=body, headers={"Content-Type": media_type})
    assert answer.status_code == status, answer.text
    found = {(error["pointer"], error["code"]): error for error in answer.json()["errors"]}
    error = found[pointer, code]
    assert next_step in f"{error['detail']}\n{error.get('accepted')}"
    assert (await shared_gateway.client.get(jobs_path("mistakes"))).json()["items"] == []


@pytest.mark.parametrize("resource", ["samplesets", "samplejobs"])
async def test_the_routes_of_other_resources_give_the_same_advice(resource: str, shared_gateway: Gateway) -> None:
    path = f"/api/v1/namespaces/mistakes/{resource}"
    answer = await shared_gateway.client.post(path, json=other("kubeflow.org/v1", "PyTorchJob"))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"], error["code"]) == (422, "/kind", "UnknownKind")
    assert GENERIC_JOB in error["detail"]
