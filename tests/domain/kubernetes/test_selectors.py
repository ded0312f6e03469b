"""Cases follow upstream's labels/selector_test.go; `>` and `<` are not spoken here."""

import contextlib
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidManifest
from app.domain.kubernetes.selectors import (
    MAX_SELECTOR_LENGTH,
    SELECTOR_PATTERN,
    Operator,
    Requirement,
    matches,
    parse_selector,
)
from tests.support.json_values import UNHURRIED


def requirement(key: str, operator: Operator, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


IN, NOT_IN, EXISTS, ABSENT = Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  ", []),
        ("x=a,y==b,z!=c", [requirement("x", IN, "a"), requirement("y", IN, "b"), requirement("z", NOT_IN, "c")]),
        ("x=", [requirement("x", IN, "")]),
        ("x= ,z!=", [requirement("x", IN, ""), requirement("z", NOT_IN, "")]),
        ("!x", [requirement("x", ABSENT)]),
        ("! x , y", [requirement("x", ABSENT), requirement("y", EXISTS)]),
        ("\rx", [requirement("x", EXISTS)]),
        ("notin=in", [requirement("notin", IN, "in")]),
        ("in in (notin)", [requirement("in", IN, "notin")]),
        ("0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
         [requirement("0.1.2.domain/99", NOT_IN, "10.10.100.1", "tick.tack.clock")]),
        ("foo  in\t (abc)", [requirement("foo", IN, "abc")]),
        ("x in (b,a,b)", [requirement("x", IN, "a", "b")]),
        ("x in (abc,)", [requirement("x", IN, "", "abc")]),
        ("x in ()", [requirement("x", IN, "")]),
        ("x notin (abc,def),bar,z in (),w",
         [requirement("x", NOT_IN, "abc", "def"), requirement("bar", EXISTS), requirement("z", IN, ""),
          requirement("w", EXISTS)]),
        ("x,y in (a)", [requirement("x", EXISTS), requirement("y", IN, "a")]),
        ("x" + 4095 * " ", [requirement("x", EXISTS)]),
    ],
)  # fmt: skip
def test_parse(text: str, expected: list[Requirement]) -> None:
    assert parse_selector(text) == tuple(expected)


@pytest.mark.parametrize(
    "text",
    [
        "x=a||y=b", "x==a==b", "!x=a", "x<a", "x>1", ",", "x,", ",x", "x,,y", "=a", "!", "!!x", "x in", "x in (",
        "x in (a", "x in a", "x in (a b)", "x in (a))", "x notin", "x y", "()", "x=(a)", "x in (a),", "x=a b",
        "a/b/c", "x=a/b", "x='a'", "x;DROP", "\u00e4=1", "x=\0", "x" * 64, "x=" + "a" * 64, "x," * 3000,
        "x in (" + "," * 5000, "x" + " " * 4096,
    ],
)  # fmt: skip
def test_what_is_not_a_selector(text: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        parse_selector(text, "/labelSelector")
    (error,) = refused.value.errors
    assert refused.value.code == error.code == "InvalidSelector"
    assert error.pointer == "/labelSelector"
    assert len(error.detail) < 500
    assert "key in (a,b)" in (error.accepted or "")


@pytest.mark.parametrize(
    ("text", "labels", "matched"),
    [
        ("", {"x": "y"}, True), ("x=y", {"x": "y"}, True), ("x=y,z=w", {"x": "y", "z": "w"}, True),
        ("x!=y,z!=w", {"x": "z", "z": "a"}, True), ("x!=y", {}, True), ("x notin (y)", {}, True),
        ("x", {"x": ""}, True),
        ("!x", {"y": "z"}, True), ("x in ()", {"x": ""}, True), ("x in ()", {}, False), ("x=z", {}, False),
        ("x=y", {"x": "z"}, False), ("x=y,z=w", {"x": "w", "z": "w"}, False), ("x", {"y": "z"}, False),
        ("!x", {"x": "z"}, False), ("x notin (a,b)", {"x": "b"}, False), ("x in (a,b)", {"x": "b"}, True),
    ],
)  # fmt: skip
def test_matches(text: str, labels: dict[str, str], *, matched: bool) -> None:
    assert matches(parse_selector(text), labels) is matched


LABEL_VALUES = st.from_regex(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,10})?[A-Za-z0-9])?", fullmatch=True)
LABEL_KEYS = st.from_regex(
    r"([a-z0-9]{1,5}\.[a-z]{1,3}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?", fullmatch=True
)
REQUIREMENTS = st.builds(
    lambda key, operator: Requirement(key=key, operator=operator), LABEL_KEYS, st.sampled_from([EXISTS, ABSENT])
) | st.builds(
    lambda key, operator, values: Requirement(key=key, operator=operator, values=tuple(sorted(values))),
    LABEL_KEYS,
    st.sampled_from([IN, NOT_IN]),
    st.sets(LABEL_VALUES, min_size=1, max_size=4),
)


def format_selector(requirements: Iterable[Requirement]) -> str:
    """The inverse of the parser."""
    return ",".join(map(_format, requirements))


def _format(requirement: Requirement) -> str:
    values = ",".join(requirement.values)
    match requirement.operator:
        case Operator.EXISTS:
            return requirement.key
        case Operator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
        case Operator.IN:
            single = len(requirement.values) == 1
            return f"{requirement.key}={values}" if single else f"{requirement.key} in ({values})"
        case Operator.NOT_IN:
            single = len(requirement.values) == 1
            return f"{requirement.key}!={values}" if single else f"{requirement.key} notin ({values})"


@UNHURRIED
@given(st.lists(REQUIREMENTS, max_size=5).map(tuple), st.dictionaries(LABEL_KEYS, LABEL_VALUES))
def test_written_selectors_read_back(requirements: tuple[Requirement, ...], labels: dict[str, str]) -> None:
    again = parse_selector(format_selector(requirements))
    assert again == requirements
    assert matches(again, labels) == matches(requirements, labels)


@UNHURRIED
@given(st.text(max_size=MAX_SELECTOR_LENGTH) | st.text(alphabet="ab=!,() inotn<>\t"))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidManifest):
        parsed = parse_selector(text)
        assert parse_selector(format_selector(parsed)) == parsed


@UNHURRIED
@given(st.from_regex(SELECTOR_PATTERN, fullmatch=True).filter(lambda text: len(text) <= MAX_SELECTOR_LENGTH))
def test_texts_of_the_documented_pattern_are_selectors(text: str) -> None:
    parse_selector(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "!a", "! a", "a=b", "a = b", "a==b", "a!=", "x.io/a in (b, c),d notin (,e)", "a,b=c", "in in (in)"],
)
def test_selectors_have_the_documented_pattern(text: str) -> None:
    parse_selector(text)
    assert re.search(SELECTOR_PATTERN, text)


@pytest.mark.parametrize(
    "text", ["a>1", "a b", "a in b", "=a", "a,", "a=b=c", "-a", "a=-", "ain(b)", "a in (b))", "A/a"]
)
def test_other_texts_do_not_have_the_documented_pattern(text: str) -> None:
    with pytest.raises(InvalidManifest):
        parse_selector(text)
    assert not re.search(SELECTOR_PATTERN, text)
