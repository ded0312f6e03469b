"""What a DIJob may not say: each mistake at its place, upstream's sentences where it has them, and all at once."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.job_kind import Limits, Site
from app.domain.plan import Manifest
from tests.domain.kinds.di_job.test_golden import KIND, accept, environment, identity, load

POD = {"containers": [{"name": "main", "image": "x"}]}
TEMPLATE = {"spec": POD}


def a_task(name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"template": TEMPLATE} | ({"name": name} if name is not None else {}) | more


def a_manifest(*tasks: dict[str, Any], job: str = "job", **spec: Any) -> Manifest:
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": job},
        "spec": {"tasks": list(tasks) or [a_task("one")]} | spec,
    }


def errors_of(manifest: Manifest, limits: Limits | None = None) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidManifest) as refused:
        accept(manifest, limits=limits)
    return refused.value.errors


@pytest.mark.parametrize(
    ("manifest", "pointer", "code", "detail"),
    [
        (
            a_manifest(a_task(type="learner"), a_task("other", type="learner")),
            "/spec/tasks/1/type",
            "Duplicate",
            "the number of learner task is more than one",
        ),
        (
            a_manifest(a_task(type="collector"), a_task(type="collector")),
            "/spec/tasks/1/type",
            "Duplicate",
            "the number of collector task is more than one",
        ),
        (a_manifest(a_task()), "/spec/tasks/0/name", "Required", "none type task has no name"),
        (a_manifest(a_task("", type="none")), "/spec/tasks/0/name", "Required", "none type task has no name"),
        (
            a_manifest(a_task("x", type="evaluator"), a_task("x", type="collector")),
            "/spec/tasks/1/name",
            "Duplicate",
            "there is more than one task named x",
        ),
        (
            a_manifest(a_task(type="learner"), a_task("learner")),
            "/spec/tasks/1/name",
            "Duplicate",
            "there is more than one task named learner",
        ),
        (a_manifest(a_task("a_b")), "/spec/tasks/0/name", "InvalidName", "RFC 1123"),
        (a_manifest(a_task("A")), "/spec/tasks/0/name", "InvalidName", "RFC 1123"),
        (a_manifest(a_task("a.b")), "/spec/tasks/0/name", "InvalidName", "dots"),
        (a_manifest(a_task(type="coordinator")), "/spec/tasks/0/type", "InvalidValue", "not one of"),
        (a_manifest(a_task("a", replicas=0)), "/spec/tasks/0/replicas", "OutOfRange", "too small"),
        (a_manifest(tasks=[]), "/spec/tasks", "TooShort", "empty"),
        (a_manifest(a_task("a" * 60)), "/spec/tasks/0/name", "NameTooLong", "66 characters"),
        (a_manifest(a_task("a" * 57, replicas=12)), "/spec/tasks/0/name", "NameTooLong", "64 characters"),
        (a_manifest(a_task("a" * 57), maxReplicas=11), "/spec/tasks/0/name", "NameTooLong", "64 characters"),
        (a_manifest(job="a.b"), "/metadata/name", "InvalidName", "di-a.b"),
        (a_manifest(job="j" * 61), "/metadata/name", "InvalidName", "63"),
        (a_manifest(priority="low"), "/spec/priority", "InvalidValue", "not one of"),
        (a_manifest(cleanPodPolicy="Some"), "/spec/cleanPodPolicy", "InvalidValue", "not one of"),
        (a_manifest(backoffLimit=-1), "/spec/backoffLimit", "OutOfRange", "too small"),
        (a_manifest(minReplicas=3, maxReplicas=2), "/spec/maxReplicas", "OutOfRange", "3 of minReplicas"),
        (a_manifest(a_task("a"), a_task("b"), maxReplicas=1), "/spec/maxReplicas", "OutOfRange", "one of each task"),
        (a_manifest(minReplicas=2), "/spec/tasks", "TooFewReplicas", "1 replicas in all"),
        (a_manifest(a_task("a", replicas=3), maxReplicas=2), "/spec/tasks", "TooManyReplicas", "3 replicas in all"),
        (a_manifest(a_task("a", replicas=5000)), "/spec/tasks", "TooManyReplicas", "5000 replicas in all"),
        (a_manifest(maxReplicas=2**31 - 1), "/spec/maxReplicas", "TooManyReplicas", "might have 2147483647"),
        (a_manifest(volumes=[{"name": "B_d", "emptyDir": {}}]), "/spec/volumes/0/name", "Invalid", "volume name"),
        (a_manifest(parallelWorkers=1), "/spec/parallelWorkers", "UnknownField", "unknown field"),
        (
            a_manifest(a_task("a", template={"metadata": {"finalizers": ["x/y"]}, "spec": POD})),
            "/spec/tasks/0/template/metadata/finalizers",
            "NotSupported",
            "finalizers",
        ),
    ],
)
def test_one_error_at_its_place(manifest: Manifest, pointer: str, code: str, detail: str) -> None:
    found = [error for error in errors_of(manifest) if error.pointer == pointer]
    assert len(errors_of(manifest)) == len(found) == 1, errors_of(manifest)
    assert found[0].code == code
    assert detail in found[0].detail


@pytest.mark.parametrize("field", ["template", "coordinator", "collector", "learner"])
def test_the_form_of_version_1_0_is_named(field: str) -> None:
    manifest = a_manifest()
    del manifest["spec"]["tasks"]
    manifest["spec"] |= {"minReplicas": 1, "maxReplicas": 4, field: {"spec": POD}, "unknown": 1}
    (error,) = errors_of(manifest)
    assert (error.pointer, error.code) == ("/spec/tasks", "Required")
    assert f"spec.{field} is the form of DI-orchestrator 1.0" in error.detail
    assert "spec.tasks" in error.detail


@pytest.mark.parametrize(
    ("changes", "extra", "sentence"),
    [
        (
            {0: {"name": ""}, 1: {"name": "name-test"}, 2: {"name": "name-test"}},
            [],
            "there is more than one task named name-test",
        ),
        ({}, [a_task(type="none")], "none type task has no name"),
        ({1: {"type": "collector"}}, [], "the number of collector task is more than one"),
    ],
    ids=["name-repeat", "none-type-task-without-name", "task-repeat"],
)
def test_invalid_jobs_of_upstream_are_refused_with_its_messages(
    changes: dict[int, dict[str, str]], extra: list[dict[str, Any]], sentence: str
) -> None:
    manifest = load("normal")
    for index, change in changes.items():
        manifest["spec"]["tasks"][index] |= change
    manifest["spec"]["tasks"] += extra
    (error,) = errors_of(manifest)
    assert error.detail == sentence


def test_the_error_of_an_unknown_type_lists_the_known_types() -> None:
    (error,) = errors_of(a_manifest(a_task(type="aggregator")))
    assert all(word in (error.accepted or "") for word in ("learner", "collector", "evaluator", "none"))


def test_all_errors_come_at_once() -> None:
    manifest = a_manifest(
        a_task(type="learner"),
        a_task("Big", type="learner"),
        a_task(replicas=2, template={"spec": {"containers": [{"name": "main", "image": "x", "imag": "y"}]}}),
        job="9.x",
        maxReplicas=3,
        priorty="high",
    )
    assert [(error.pointer, error.code) for error in errors_of(manifest)] == [
        ("/spec/priorty", "UnknownField"),
        ("/metadata/name", "InvalidName"),
        ("/spec/tasks/1/type", "Duplicate"),
        ("/spec/tasks/1/name", "InvalidName"),
        ("/spec/tasks/2/name", "Required"),
        ("/spec/tasks/2/template/spec/containers/0/imag", "UnknownField"),
        ("/spec/tasks", "TooManyReplicas"),
    ]


def test_an_error_in_the_jobs_volumes_is_reported_once_at_its_field() -> None:
    with_own = {"spec": POD | {"volumes": [{"name": "v", "emptyDir": {}}]}}
    manifest = a_manifest(
        a_task("a", template=with_own),
        a_task("b", template=with_own),
        volumes=[{"name": "w", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],
    )
    (error,) = errors_of(manifest)
    assert (error.pointer, error.code) == ("/spec/volumes/1/name", "Duplicate")


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"tasks": [a_task("a", replicas="many")], "minReplicas": 2}, "/spec/tasks/0/replicas"),
        ({"tasks": [a_task("a", replicas=4)], "maxReplicas": "2"}, "/spec/maxReplicas"),
        ({"tasks": [a_task(type=1)]}, "/spec/tasks/0/type"),
        ({"tasks": [a_task(None) | {"name": 1}]}, "/spec/tasks/0/name"),
        (
            {
                "volumes": "v",
                "tasks": [
                    a_task(
                        "a",
                        template={
                            "spec": {
                                "containers": [
                                    {"name": "m", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
                                ]
                            }
                        },
                    )
                ],
            },
            "/spec/volumes",
        ),
    ],
)
def test_consequences_of_a_wrong_shape_are_not_reported(spec: dict[str, Any], pointer: str) -> None:
    assert [error.pointer for error in errors_of(a_manifest(**spec))] == [pointer]


def test_a_wrong_shape_hides_nothing_else() -> None:
    manifest = a_manifest(a_task("a", replicas="2"), a_task("a"), {"name": "b", "template": {"spec": {}}})
    assert {error.pointer for error in errors_of(manifest)} == {
        "/spec/tasks/0/replicas",
        "/spec/tasks/1/name",
        "/spec/tasks/2/template/spec/containers",
    }
    broken = a_manifest({"name": "a", "template": {"spec": {}}}, {"name": "b"})
    assert {error.pointer for error in errors_of(broken)} == {
        "/spec/tasks/0/template/spec/containers",
        "/spec/tasks/1/template",
    }


@pytest.mark.parametrize("spec", [None, [], "x", {"tasks": None}, {"tasks": [None]}, {"tasks": {"a": 1}}])
def test_a_spec_of_another_type_is_refused(spec: Any) -> None:
    assert errors_of(a_manifest() | {"spec": spec})


def test_a_template_that_no_cluster_takes() -> None:
    huge = {"spec": {"containers": [{"name": "main", "image": "x", "args": ["y" * 2_000_000]}]}}
    (error,) = errors_of(a_manifest(a_task("a", template=huge)))
    assert (error.pointer, error.code) == ("/spec/tasks/0/template", "PodTooLarge")


def test_no_more_replicas_than_the_installation_allows() -> None:
    (error,) = errors_of(a_manifest(a_task("a", replicas=9)), Limits(max_replicas=8))
    assert error.pointer == "/spec/tasks"
    assert (error.accepted or "").startswith("8 or fewer")


@pytest.mark.parametrize("most", [700, 900, None])
def test_the_largest_job_can_still_be_started(most: int | None) -> None:
    """Linux refuses a process one of whose variables is longer than 128 KiB."""
    spec = {} if most is None else {"maxReplicas": most}
    accepted = accept(a_manifest(a_task("worker"), a_task("other"), job="j" * 20, **spec))
    total = KIND.scaling(KIND.read(accepted)).total[1]
    grown = KIND.resize(KIND.read(accepted), {"worker": total - 1}).manifest
    anywhere = replace(identity(grown), namespace="n" * 63)
    plan = KIND.plan(KIND.read(grown), anywhere, resumed=False, site=Site())
    assert len("DI_NODES=" + environment(plan, "worker", 0)["DI_NODES"]) < 128 * 1024


@pytest.mark.parametrize("field", ["name", "generateName", "namespace"])
def test_names_in_the_metadata_of_a_template_are_dropped(field: str) -> None:
    accepted = accept(a_manifest(a_task("a", template={"metadata": {field: "di"}, "spec": POD})))
    assert accepted["spec"]["tasks"][0]["template"]["metadata"] == {}


def test_a_device_that_is_requested_is_its_own_limit() -> None:
    limits = accept(load("seed"))["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"spec": {"cleanPodPolicy": "All"}}, []),
        ({"spec": {"minReplicas": 1, "maxReplicas": 4}}, []),
        ({"spec": {"tasks": [a_task("one", replicas=3)]}}, []),
        ({"metadata": {"name": "job", "labels": {"a": "b"}, "annotations": {"c": "d"}}}, []),
        ({"spec": {"tasks": [a_task("two")]}}, ["/spec/tasks/0/name"]),
        ({"spec": {"tasks": [a_task("one"), a_task("two")]}}, ["/spec/tasks"]),
        ({"spec": {"tasks": [a_task("one", type="learner")]}}, ["/spec/tasks/0/type"]),
        ({"spec": {"backoffLimit": None}}, ["/spec/backoffLimit"]),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, ["/spec/volumes"]),
        (
            {"spec": {"tasks": [a_task("one", template={"spec": POD | {"hostname": "x"}})]}},
            ["/spec/tasks/0/template/spec/hostname"],
        ),
    ],
)
def test_what_may_be_changed_later(change: dict[str, Any], refused: list[str]) -> None:
    first = a_manifest()
    stored = accept(first)
    edited = {**first, **change}
    edited["spec"] = {**first["spec"], **edited["spec"]}
    errors = KIND.changes(stored, accept(edited, stored))
    assert [error.pointer for error in errors] == refused
