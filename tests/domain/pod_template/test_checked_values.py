"""The digests of values that passed a check."""

import json
from typing import Any

import pytest
from hypothesis import given

from app.domain.pod_template.checked_values import CheckedValues, digest_of
from tests.support.json_values import JSON_VALUES, UNHURRIED


@UNHURRIED
@given(JSON_VALUES, JSON_VALUES)
def test_only_equal_values_share_a_digest(one: Any, other: Any) -> None:
    assert (digest_of(one) == digest_of(other)) == (json.dumps(one) == json.dumps(other))


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0, None), ("1", 1), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_values_that_a_check_may_distinguish_have_different_digests(one: Any, other: Any) -> None:
    assert digest_of(one) != digest_of(other)


def test_a_value_that_is_too_deep_is_never_remembered() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    known = CheckedValues()
    known.add(digest_of(deep))
    assert digest_of(deep) is None
    assert digest_of(deep) not in known


def test_the_oldest_values_are_forgotten_beyond_the_limit() -> None:
    known = CheckedValues(max_values=39)
    digests = [digest_of(number) for number in range(100)]
    for digest in digests:
        known.add(digest)
    assert digests[0] not in known
    assert digests[-1] in known
