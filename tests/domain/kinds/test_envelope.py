"""jobgate's own annotations, whatever the kind."""

import pytest

from app.domain.errors import Problems
from app.domain.kinds.envelope import read_envelope


@pytest.mark.parametrize(("value", "accepted"), [("true", True), ("false", True), ("no", False), ("", False)])
def test_autoscale_is_true_or_false(value: str, accepted: bool) -> None:  # noqa: FBT001
    problems = Problems()
    metadata = {"name": "n", "annotations": {"jobgate.dev/autoscale": value}}
    read_envelope({"apiVersion": "v1", "kind": "K", "metadata": metadata}, problems)
    found = [(error.pointer, error.code, error.accepted) for error in problems.errors]
    wrong = ("/metadata/annotations/jobgate.dev~1autoscale", "InvalidAnnotation", "true or false")
    assert found == ([] if accepted else [wrong])
