import pytest

from app.domain.errors import FieldError, InvalidManifest, Problems, pointer_to, shorten


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
