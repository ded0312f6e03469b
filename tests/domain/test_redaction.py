from typing import Any

import pytest

from app.domain.redaction import REDACTED, is_redacted, redacted

PLAIN, REFERENCE = (
    {"name": "A", "value": "s3cr3t"},
    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"env": [PLAIN, REFERENCE]}, {"env": [{"name": "A", "value": REDACTED}, REFERENCE]}),
        ({"env": [{"name": "A", "value": ""}, {"name": "C"}]}, {"env": [{"name": "A", "value": ""}, {"name": "C"}]}),
        ({"tasks": [{"template": {"spec": {"initContainers": [{"env": [PLAIN]}]}}}]}, None),
        ({"spec": {"collector": {"template": {"spec": {"containers": [{"name": "c", "env": [PLAIN]}]}}}}}, None),
        ({"env": "text", "args": ["--env=a"]}, {"env": "text", "args": ["--env=a"]}),
        ({"env": [None, 1]}, {"env": [None, 1]}),
        ([], []),
    ],
)
def test_values_of_variables_are_removed_wherever_they_are_and_nothing_else(document: Any, expected: Any) -> None:
    found = redacted(document)
    assert "s3cr3t" not in repr(found)
    if expected is not None:
        assert found == expected
    assert redacted(found) == found
    assert is_redacted(found) is ("s3cr3t" in repr(document))
    assert not is_redacted(document)
