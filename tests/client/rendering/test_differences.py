"""What `jobgate diff` shows."""

from typing import Any

import msgspec
import pytest

from jobgate.cli.rendering.differences import difference, manifest_of, refused_changes
from jobgate.client.types import Job
from tests.client.scripted import job

STORED: dict[str, Any] = {
    "apiVersion": "a/v1",
    "kind": "GenericJob",
    "metadata": {"name": "tour", "labels": {"a": "1"}, "annotations": {}},
    "spec": {"cleanUpPolicy": "None", "replicaSpecs": [{"type": "ps", "replicas": 1}, {"type": "w", "replicas": 2}]},
}


def changed(**given: Any) -> dict[str, Any]:
    return {**STORED, **given}


@pytest.mark.parametrize(
    "new",
    [
        STORED,
        changed(status={"phase": "Running"}),
        changed(metadata={"name": "tour", "labels": {"a": "1"}, "uid": "x", "namespace": "team"}),
    ],
    ids=["same", "with a status", "with the metadata of the gateway"],
)
def test_what_put_ignores_is_no_difference(new: dict[str, Any]) -> None:
    assert difference(STORED, new, "job.yaml") == ""
    assert refused_changes(STORED, new, []) == []


def test_a_changed_field_is_shown_with_its_place() -> None:
    text = difference(STORED, changed(spec=STORED["spec"] | {"cleanUpPolicy": "All"}), "job.yaml")
    assert text.splitlines()[:2] == ["--- the gateway", "+++ job.yaml"]
    assert [line for line in text.splitlines()[2:] if line[:1] in {"-", "+"}] == [
        "-  cleanUpPolicy: None",
        "+  cleanUpPolicy: All",
    ]


@pytest.mark.parametrize(
    ("new", "editable", "expected"),
    [
        (changed(spec=STORED["spec"] | {"cleanUpPolicy": "All"}), ["/spec/cleanUpPolicy"], []),
        (changed(spec=STORED["spec"] | {"cleanUpPolicy": "All"}), ["/metadata/labels"], ["/spec/cleanUpPolicy"]),
        (
            changed(
                spec=STORED["spec"] | {"replicaSpecs": [{"type": "ps", "replicas": 1}, {"type": "w", "replicas": 3}]}
            ),
            ["/spec/replicaSpecs/*/template"],
            ["/spec/replicaSpecs/1/replicas"],
        ),
        (
            changed(
                spec=STORED["spec"] | {"replicaSpecs": [{"type": "ps", "replicas": 1}, {"type": "w", "replicas": 3}]}
            ),
            ["/spec/replicaSpecs/*/replicas"],
            [],
        ),
        (changed(spec=STORED["spec"] | {"replicaSpecs": []}), [], ["/spec/replicaSpecs"]),
        (changed(metadata={"name": "tour", "labels": {"b": "2"}}), ["/metadata/labels"], []),
    ],
)
def test_changes_that_put_refuses(new: dict[str, Any], editable: list[str], expected: list[str]) -> None:
    assert refused_changes(STORED, new, editable) == expected


def test_the_manifest_of_a_stored_object_is_comparable() -> None:
    stored = msgspec.convert(job() | {"labels": {"a": "1"}, "spec": {"x": 1}}, Job)
    new = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "tour", "labels": {"a": "1"}},
        "spec": {"x": 1},
    }
    assert difference(manifest_of(stored), new, "job.yaml") == ""
