"""What the errors of a model say about texts and lists of a wrong length or form."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from app.domain.errors import Problems
from app.domain.kinds.spec.model import SpecModel, read_spec


class Model(SpecModel):
    name: Annotated[str, Field(min_length=1)] = "a"
    text: Annotated[str, Field(min_length=6, max_length=8, pattern="^a")] = "aaaaaa"
    many: Annotated[list[int], Field(min_length=2, max_length=3)] = Field(default=[1, 2])
    some: Annotated[list[int], Field(min_length=1)] = Field(default=[1])


@pytest.mark.parametrize(
    ("field", "value", "code", "detail", "accepted"),
    [
        ("name", "", "TooShort", "must not be empty", "at least 1"),
        ("some", [], "TooShort", "must not be empty", "at least 1"),
        ("text", "aaaaa", "TooShort", "the text is too short", "6 characters or more"),
        ("text", "aaaaaaaaa", "InvalidValue", "the text is too long", "8 characters or fewer"),
        ("text", "bbbbbb", "InvalidValue", "the text has another form", "text that matches ^a"),
        ("many", [1], "TooShort", "the list is too short", "2 entries or more"),
        ("many", [1, 2, 3, 4], "InvalidValue", "the list is too long", "3 entries or fewer"),
    ],
)
def test_an_error_says_what_is_wrong_and_what_is_accepted(
    field: str, value: Any, code: str, detail: str, accepted: str
) -> None:
    problems = Problems()
    assert read_spec(Model, {field: value}, "/spec", problems) is None
    [error] = problems.errors
    assert (error.pointer, error.code) == (f"/spec/{field}", code)
    assert (error.detail, error.accepted) == (detail, accepted)
