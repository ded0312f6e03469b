from typing import Any

import pytest

from app.domain.errors import FieldError, InvalidManifest, Problems, pointer_to, shorten
from app.domain.value_types import add_wrong_type


def test_pointer_escapes_tilde_and_slash() -> None:
    assert pointer_to("/spec", "a/b~c", 0) == "/spec/a~1b~0c/0"
    assert pointer_to("") == ""


def test_problems_raise_everything_at_once() -> None:
    problems = Problems()
    problems.raise_if_any()
    problems.add("/a", "Required", "missing", "a string")
    problems.add("/b", "Invalid", "bad")
    with pytest.raises(InvalidManifest) as refused:
        problems.raise_if_any()
    assert refused.value.code == "InvalidManifest"
    assert [error.pointer for error in refused.value.errors] == ["/a", "/b"]
    assert refused.value.errors[0] == FieldError(pointer="/a", code="Required", detail="missing", accepted="a string")
    assert "/a: missing; /b: bad" in str(refused.value)


@pytest.mark.parametrize(("reported", "listed"), [(19, 19), (20, 20), (21, 20), (20_000, 20)])
def test_the_answer_is_bounded(reported: int, listed: int) -> None:
    problems = Problems()
    for index in range(reported):
        problems.add(f"/{index}", "UnknownField", "unknown")
    assert len(problems) == reported
    assert len(problems.errors) == listed
    if reported > listed:
        assert problems.errors[-1].detail == f"and {reported - listed + 1} more errors are not listed"


def test_quoted_text_is_short_and_encodable() -> None:
    quoted = shorten("\ud800" + "k" * 1_000_000)
    assert len(quoted) == 80
    quoted.encode()


@pytest.mark.parametrize(
    ("expected", "value", "detail", "accepted"),
    [
        ("an integer", "4", "this must be an integer, and is a string", "an integer: write the value without quotes"),
        ("an integer", "four", "this must be an integer, and is a string", "an integer"),
        ("an integer", True, "this must be an integer, and is true or false", "an integer"),
        ("an integer", 1.5, "this must be an integer, and is a number", "an integer"),
        ("a string", 1.5, "this must be a string, and is a number", "a string: put the value in quotes"),
        ("a string", None, "this must be a string, and is null", "a string"),
        ("an object", [], "this must be an object, and is a list", "an object"),
    ],
)
def test_a_wrong_type_is_named(expected: str, value: Any, detail: str, accepted: str) -> None:
    problems = Problems()
    add_wrong_type(problems, "/spec", "InvalidType", expected, value)
    assert [(error.detail, error.accepted) for error in problems.errors] == [(detail, accepted)]
