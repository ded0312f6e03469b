"""Which labels and annotations of Kueue a template may have."""

import pytest

from app.domain.decoding import JsonValue
from app.domain.errors import Problems
from app.domain.pod_template import validate_pod_template

REQUIRED, PREFERRED, UNCONSTRAINED = (
    f"kueue.x-k8s.io/podset-{kind}-topology" for kind in ("required", "preferred", "unconstrained")
)
SLICE, SIZE = "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({REQUIRED: "rack"}, None),
        ({PREFERRED: "example.com/block"}, None),
        ({UNCONSTRAINED: "true"}, None),
        ({REQUIRED: "a b"}, "Invalid"),
        ({PREFERRED: ""}, "Invalid"),
        ({REQUIRED: f"{'a' * 60}/rack"}, "Invalid"),
        ({UNCONSTRAINED: "false"}, "Invalid"),
        ({REQUIRED: "rack", PREFERRED: "rack"}, "Conflict"),
        ({SLICE: "rack", SIZE: "4"}, None),
        ({PREFERRED: "block", SLICE: "rack", SIZE: "4"}, None),
        ({UNCONSTRAINED: "true", SLICE: "rack", SIZE: "4"}, "Conflict"),
        ({SLICE: "rack"}, "Required"),
        ({SIZE: "4"}, "Required"),
        ({SLICE: "a b", SIZE: "4"}, "Invalid"),
        ({SLICE: "rack", SIZE: "0"}, "Invalid"),
        ({SLICE: "rack", SIZE: "4.5"}, "Invalid"),
        ({SLICE: "rack", SIZE: "1000000"}, "Invalid"),
        ({"kueue.x-k8s.io/podset-slice-required-topology-constraints": "[]"}, "NotSupported"),
        ({"kueue.x-k8s.io/podset-group-name": "g"}, "NotSupported"),
    ],
)
def test_a_request_names_one_level(annotations: JsonValue, code: str | None) -> None:
    problems = Problems()
    template: JsonValue = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    validate_pod_template(template, "", problems)
    assert [error.code for error in problems.errors] == ([] if code is None else [code])


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize(
    "key", ["pod-group-name", "pod-suspending-parent", "prebuilt-workload-name", "queue-name", "unknown"]
)
def test_a_template_has_no_other_key_of_kueue(field: str, key: str) -> None:
    problems = Problems()
    template: JsonValue = {"metadata": {field: {f"kueue.x-k8s.io/{key}": "g", "own": "x"}}, "spec": {}}
    validate_pod_template(template, "", problems)
    [error] = [error for error in problems.errors if error.pointer.startswith("/metadata")]
    assert (error.code, error.pointer) == ("NotSupported", f"/metadata/{field}/kueue.x-k8s.io~1{key}")
    assert "the label kueue.x-k8s.io/queue-name of the manifest" in str(error.accepted)
