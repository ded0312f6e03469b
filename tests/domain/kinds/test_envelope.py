"""jobgate's own annotations, whatever the kind."""

import pytest

from app.domain.errors import FieldError, Problems
from app.domain.kinds.envelope import read_envelope


def errors_of(annotation: str, value: str) -> tuple[FieldError, ...]:
    problems = Problems()
    metadata = {"name": "n", "annotations": {f"jobgate.dev/{annotation}": value}}
    read_envelope({"apiVersion": "v1", "kind": "K", "metadata": metadata}, problems)
    return problems.errors


@pytest.mark.parametrize(("value", "accepted"), [("true", True), ("false", True), ("no", False), ("", False)])
def test_autoscale_is_true_or_false(value: str, accepted: bool) -> None:  # noqa: FBT001
    found = [(error.pointer, error.code, error.accepted) for error in errors_of("autoscale", value)]
    wrong = ("/metadata/annotations/jobgate.dev~1autoscale", "InvalidAnnotation", "true or false")
    assert found == ([] if accepted else [wrong])


@pytest.mark.parametrize(
    ("value", "unknown"), [("HostPorts, Seccomp", None), ("Seccomp,HostPrts", "HostPrts"), ("Z,HostPorts,B", "B")]
)
def test_the_first_unknown_control_is_named(value: str, unknown: str | None) -> None:
    found = [error.detail for error in errors_of("pod-policy-allow", value)]
    assert found == ([] if unknown is None else [f"there is no control {unknown}"])


@pytest.mark.parametrize("key", ["podset-required-topology", "podset-slice-size", "podset-group-name"])
def test_a_topology_of_the_whole_job_is_refused(key: str) -> None:
    problems = Problems()
    metadata = {"name": "n", "annotations": {f"kueue.x-k8s.io/{key}": "rack"}}
    read_envelope({"apiVersion": "v1", "kind": "K", "metadata": metadata}, problems)
    [error] = problems.errors
    assert (error.code, error.pointer) == ("NotSupported", f"/metadata/annotations/kueue.x-k8s.io~1{key}")
