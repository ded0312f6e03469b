"""What the cluster's answers to a dry run of a job's objects mean for the job, and which field of its manifest."""

from collections.abc import Sequence
from typing import Any

import pytest

from app.domain.cluster_check import (
    Answer,
    CheckedObject,
    FindingEffect,
    objects_to_check,
    reason_not_checked,
    refusals,
    warnings,
)
from app.domain.kinds.job_kind import Limits
from app.domain.planning import Planner
from app.domain.policy.template import DeclaredTemplate
from tests.support.gateways.gateway import manifest
from tests.support.kinds.variations import JOBS, accepted, kind_of
from tests.support.plans import GIVEN

TEMPLATE = "/spec/replicaSpecs/0/template"
UID = "00000000-0000-0000-0000-000000000001"


def checked(stored: Any) -> list[CheckedObject]:
    stored = {**stored, "metadata": {**stored["metadata"], "namespace": "team"}}
    read = kind_of(stored).read(stored)
    return list(objects_to_check(Planner(installation="one").plan(read, UID), read))


def wide_job() -> list[CheckedObject]:
    posted = manifest("train", replicas=400)
    return checked(kind_of(posted).accept(posted, Limits(), GIVEN).manifest)


def a_pod() -> CheckedObject:
    (pod,) = [one for one in wide_job() if one.manifest["kind"] == "Pod"]
    return pod


def test_one_replica_stands_for_all_of_its_task() -> None:
    found = [(one.name, one.task) for one in wide_job()]
    assert found == [(f"ConfigMap jobgate-{UID}", None), ("Pod train-worker-0", "worker")]


@pytest.mark.parametrize("name", JOBS)
def test_every_pod_has_the_template_of_its_task(name: str) -> None:
    pods = [one for one in checked(accepted(name)) if one.manifest["kind"] == "Pod"]
    assert len(pods) == len({one.task for one in pods})
    for pod in pods:
        assert pod.template is not None, pod.name
        assert pod.template.locate("/spec/containers/0").startswith("/spec/"), pod.name


@pytest.mark.parametrize(
    ("status", "reason", "message", "causes", "expected"),
    [
        (
            422,
            "Invalid",
            "Pod is invalid",
            (("FieldValueInvalid", "must be positive", "spec.containers[0].image"),),
            [("Fails", "RefusedByCluster", f"{TEMPLATE}/spec/containers/0/image")],
        ),
        (
            422,
            "Invalid",
            "Pod is invalid",
            (("FieldValueInvalid", "a", "spec.containers[7].x"), ("FieldValueInvalid", "b", "metadata.labels[a/b]")),
            [("Fails", "RefusedByCluster", f"{TEMPLATE}/spec/containers"), ("Fails", "RefusedByCluster", TEMPLATE)],
        ),
        (
            403,
            "Forbidden",
            'pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged',
            (),
            [("Fails", "RefusedByCluster", TEMPLATE)],
        ),
        (
            403,
            "Forbidden",
            'pods "p" is forbidden: exceeded quota: q, requested: pods=1',
            (),
            [("Waits", "QuotaExceeded", TEMPLATE)],
        ),
        (404, "NotFound", 'namespaces "team" not found', (), [("Waits", "NamespaceNotFound", TEMPLATE)]),
        (409, "AlreadyExists", 'pods "p" already exists', (), []),
        (404, "NotFound", "the server could not find the requested resource", (), []),
    ],
)
def test_a_refusal_is_a_finding_about_a_field_of_the_manifest(
    status: int,
    reason: str,
    message: str,
    causes: Sequence[tuple[str, str, str]],
    expected: list[tuple[str, str, str]],
) -> None:
    answer = Answer(status=status, reason=reason, message=message, causes=tuple(causes))
    assert not reason_not_checked(answer)
    found = refusals(a_pod(), answer)
    assert [(str(one.effect), one.code, one.pointer) for one in found] == expected
    assert all(one.detail and one.object == "Pod train-worker-0" and one.task == "worker" for one in found)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (401, "Unauthorized", "Unauthorized"),
        (403, "Forbidden", 'pods is forbidden: User "jobgate" cannot create resource "pods" in API group ""'),
        (429, "TooManyRequests", "too many requests"),
        (500, "InternalError", "internal error"),
    ],
)
def test_a_refusal_that_does_not_concern_the_object_is_not_a_finding(status: int, reason: str, message: str) -> None:
    answer = Answer(status=status, reason=reason, message=message)
    assert reason_not_checked(answer)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("spec.containers[0].env[0]: deprecated", f"{TEMPLATE}/spec/containers/0"),
        ("spec: [0]: deprecated", f"{TEMPLATE}/spec"),
        ("spec.containers[0]", TEMPLATE),
        ("containers[0]: deprecated", TEMPLATE),
        ("would violate PodSecurity: x", TEMPLATE),
    ],
)
def test_a_warning_is_about_the_field_that_it_begins_with(text: str, pointer: str) -> None:
    (finding,) = warnings(a_pod(), [text])
    expected = (pointer, FindingEffect.WARNS, "Warning", text)
    assert (finding.pointer, finding.effect, finding.code, finding.detail) == expected


def test_a_shared_object_has_no_field() -> None:
    metadata = {"name": "train", "namespace": "team-a"}
    service = CheckedObject(manifest={"kind": "Service", "metadata": metadata}, template=None)
    (finding,) = refusals(service, Answer(status=422, reason="Invalid", message="no", causes=(("", "no", "spec.x"),)))
    assert (finding.object, finding.task, finding.pointer) == ("Service train", None, "")


def test_a_pointer_escapes_its_steps() -> None:
    template = {"metadata": {"annotations": {"a/b": "c"}}, "spec": {}}
    declared = DeclaredTemplate.at(template, "/spec/template")
    pod = CheckedObject(manifest={"kind": "Pod", "metadata": {"name": "p"}}, template=declared)
    (finding,) = warnings(pod, ["metadata.annotations[a/b]: deprecated"])
    assert finding.pointer == "/spec/template/metadata/annotations/a~1b"


def test_findings_of_one_object_are_limited() -> None:
    causes = tuple(("FieldValueInvalid", "x" * 5000, f"spec.f{number}") for number in range(30))
    refused = refusals(a_pod(), Answer(status=422, reason="Invalid", message="no", causes=causes))
    warned = warnings(a_pod(), ["the same", "the same", *(f"spec.f{number}: deprecated" for number in range(30))])
    assert (len(refused), len(warned)) == (20, 20)
    assert [one.detail for one in warned[:2]] == ["the same", "spec.f0: deprecated"]
    assert max(len(one.detail) for one in refused) == 1000
