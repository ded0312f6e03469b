"""Which requests for a topology of Kueue a template may have."""

import pytest

from app.domain.decoding import JsonValue
from app.domain.errors import Problems
from app.domain.pod_template import validate_pod_template

REQUIRED, PREFERRED, UNCONSTRAINED = (
    f"kueue.x-k8s.io/podset-{kind}-topology" for kind in ("required", "preferred", "unconstrained")
)


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
