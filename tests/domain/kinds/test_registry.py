from pkgutil import iter_modules

import jsonschema_rs
import pytest
import yaml

from app.domain import kinds
from app.domain.errors import InvalidManifest
from app.domain.kinds.registry import all_kinds, find, refuse_wrong_route
from tests.domain.kinds.generic_job.test_golden import DATA

VERSION = "batch.tensorstack.dev/v1beta1"


def test_the_registry_has_the_kinds_of_every_package() -> None:
    packages = {module.name for module in iter_modules(kinds.__path__) if module.ispkg} - {"spec"}
    modules = [type(kind).__module__.removeprefix(f"{kinds.__name__}.") for kind in all_kinds().values()]
    assert {name.partition(".")[0] for name in modules} == packages


def test_only_a_generic_job_can_be_paused() -> None:
    assert {name for name, kind in all_kinds().items() if kind.supports_pause} == {"GenericJob"}


def test_a_known_kind() -> None:
    assert find(VERSION, "GenericJob").name == "GenericJob"


@pytest.mark.parametrize(
    ("api_version", "kind", "pointer", "words"),
    [
        ("batch.tensorstack.dev/v1", "GenericJob", "/apiVersion", "another version"),
        (None, "GenericJob", "/apiVersion", "required"),
        (VERSION, None, "/kind", "required"),
        (VERSION, "genericjob", "/kind", 'did you mean "GenericJob"?'),
        (VERSION, "Deployment", "/kind", "not known"),
        (VERSION, 7, "/kind", "not a string"),
        (VERSION, ["x"], "/kind", "not a string"),
        ([], "GenericJob", "/apiVersion", "not a string"),
    ],
)
def test_an_unknown_one(api_version: object, kind: object, pointer: str, words: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        find(api_version, kind)
    (error,) = refused.value.errors
    assert error.pointer == pointer
    assert words in error.detail
    assert VERSION in (error.accepted or "")


@pytest.mark.parametrize(
    ("api_version", "detail"),
    [
        ("batch.tensorstack.dev/v9", "another version"),
        ("batch.tensorstack.dev", "another version"),
        ("batch/v1", "another group"),
    ],
)
def test_a_wrong_version_and_a_wrong_group_have_different_messages(api_version: str, detail: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        find(api_version, "GenericJob")
    (error,) = refused.value.errors
    assert detail in error.detail
    assert error.accepted == VERSION


def test_an_unknown_kind_of_a_known_group_in_another_version() -> None:
    with pytest.raises(InvalidManifest) as refused:
        find("batch.tensorstack.dev/v9", "Sparkle")
    kind, version = refused.value.errors
    assert (kind.pointer, version.pointer) == ("/kind", "/apiVersion")
    assert f"GenericJob ({VERSION})" in (kind.accepted or "")
    assert version.accepted == VERSION


def test_a_missing_kind_and_version_are_reported_together() -> None:
    with pytest.raises(InvalidManifest) as refused:
        find(None, None)
    assert [(error.pointer, error.code) for error in refused.value.errors] == [
        ("/kind", "Required"),
        ("/apiVersion", "Required"),
    ]


def test_the_schema_accepts_what_is_stored() -> None:
    schema = find(VERSION, "GenericJob").json_schema()
    validator = jsonschema_rs.validator_for(schema)
    cases = sorted(DATA.iterdir())
    assert cases
    for case in cases:
        accepted = yaml.safe_load((case / "accepted.yaml").read_text(encoding="utf-8"))
        assert [error.message for error in validator.iter_errors(accepted)] == []
        assert not validator.is_valid({**accepted, "specs": {}})
    broken = {"apiVersion": VERSION, "kind": "GenericJob", "metadata": {}, "spec": {"replicaSpecs": [{"typ": "a"}]}}
    assert not validator.is_valid(broken)


@pytest.mark.parametrize(
    ("api_version", "kind", "detail"),
    [
        ("batch/v1", "Job", "a GenericJob runs any container: see docs/kinds/generic-job.md"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "a GenericJob runs any container: see docs/kinds/generic-job.md"),
        ("v1", "Pod", "a GenericJob runs any container: see docs/kinds/generic-job.md"),
        ("kubeflow.org/v1", "MXJob", "MxJob is for the same framework: see docs/kinds/mx-job.md"),
        ("kubeflow.org/v1", "PaddleJob", "TrainingJob is for the same framework: see docs/kinds/training-job.md"),
        ("v1", "ConfigMap", "apply it with kubectl, and post the job alone"),
        ("batch/v1", "CronTab", "apply it with kubectl, and post the job alone"),
    ],
)
def test_a_manifest_of_another_system_is_answered_with_the_next_step(api_version: str, kind: str, detail: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        refuse_wrong_route({"apiVersion": api_version, "kind": kind}, "jobs", "team")
    (error,) = refused.value.errors
    assert (error.pointer, error.code) == ("/kind", "UnknownKind")
    assert error.detail.endswith(detail)
    assert "GenericJob" in (error.accepted or "")


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": VERSION, "kind": "GenericJob"},
        {"apiVersion": VERSION, "kind": "Deployment"},  # the kinds of its group refuse it
        {"apiVersion": "batch/v1", "kind": "GenericJb"},  # misspelt
        {"apiVersion": 1, "kind": "Job"},
        {"apiVersion": "batch/v1", "kind": ["Job"]},
        {},
    ],
)
def test_other_documents_are_left_to_their_route(document: dict[str, object]) -> None:
    refuse_wrong_route(document, "jobs", "team")


@pytest.mark.parametrize(
    ("kind", "resource", "route"), [("SampleSet", "jobs", "samplesets"), ("MxJob", "samplesets", "jobs")]
)
def test_a_kind_is_posted_to_its_resource(kind: str, resource: str, route: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        refuse_wrong_route({"kind": kind}, resource, "team")
    (error,) = refused.value.errors
    assert (error.code, error.accepted) == ("WrongRoute", f"POST /api/v1/namespaces/team/{route}")
