import contextlib
import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.domain.decoding import DecodingLimits, JsonValue, decode_yaml
from app.domain.errors import MAX_ERRORS, MalformedDocument
from tests.support.json_values import JSON_VALUES, UNHURRIED

# Documents and what sigs.k8s.io/yaml 1.6.0, the library of kubectl, makes of them.
KUBECTL = json.loads((Path(__file__).parents[2] / "data" / "kubectl_yaml.json").read_text())


def refusal(body: bytes | str, limits: DecodingLimits | None = None) -> list[tuple[str, str]]:
    raw = body.encode() if isinstance(body, str) else body
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(raw, limits=limits or DecodingLimits())
    assert 0 < len(refused.value.errors) <= MAX_ERRORS
    return [(error.pointer, error.code) for error in refused.value.errors]


# What PyYAML's resolver takes for a word and kubectl for a number or a boolean, so that its writer leaves it unquoted.
WORDS_OF_PYYAML = re.compile(rb"[0-9._][eE][-+0-9]|[0-9]_|0[oO]|0[BX]|\b[yYnN]\b")


@settings(UNHURRIED, max_examples=40)
@given(st.dictionaries(st.sampled_from(["key", "other", "third"]), JSON_VALUES))
def test_what_a_yaml_writer_writes_is_read_back(value: dict[str, JsonValue]) -> None:
    body = yaml.safe_dump(value, allow_unicode=False).encode()
    assume(not WORDS_OF_PYYAML.search(body))
    assert decode_yaml(body) == (value,)


@UNHURRIED
@given(st.dictionaries(st.text(st.characters(min_codepoint=32, max_codepoint=126)), st.integers(0, 2**62)))
def test_json_is_yaml(value: dict[str, JsonValue]) -> None:
    assert decode_yaml(json.dumps(value).encode()) == (value,)


@UNHURRIED
@given(st.binary(max_size=100) | st.text(alphabet="{}[]&*!:-?,'\"\n #%@`|>aon01._~<\t").map(str.encode))
def test_arbitrary_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedDocument):
        assert decode_yaml(body)


@pytest.mark.parametrize(("body", "value"), KUBECTL)
def test_yaml_is_read_as_kubectl_reads_it(body: str, value: JsonValue) -> None:
    assert decode_yaml(body.encode()) == (value,)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0400", int), ("08", int), ("1.", int), ("1e3", int), ("1.5", float), ("1e21", float), ("yes", bool),
        ("1_0.", int), (".1_0", str), ("9223372036854774784.0", int), ("9223372036854775808.0", float),
        ("n", bool), ("12:30:45", str), ("2001-12-14", str), ("0o8", str), ("''", str), ("~", type(None)),
    ],
)  # fmt: skip
def test_a_number_without_a_fraction_is_an_integer(text: str, kind: type) -> None:
    ((value,),) = (document.values() for document in decode_yaml(f"k: {text}".encode()) if isinstance(document, dict))
    assert type(value) is kind


@pytest.mark.parametrize(
    ("anchored", "limits", "code"),
    [
        ("[0, 1]", DecodingLimits(max_values=30), "TooManyValues"),
        ("{p: 0, q: 1}", DecodingLimits(max_keys=20), "TooManyKeys"),
        ("[abcdefgh, abcdefgh]", DecodingLimits(max_repeated=150), "AliasesTooLarge"),
        ("{abcdefgh: 1}", DecodingLimits(max_repeated=75), "AliasesTooLarge"),
        ("[[[0]]]", DecodingLimits(max_depth=4), "TooDeep"),
    ],
)
def test_what_aliases_copy_counts_against_the_limits(anchored: str, limits: DecodingLimits, code: str) -> None:
    body = f"a: &x {anchored}\nb: [{', '.join(['*x'] * 10)}]"
    assert decode_yaml(body.encode())
    assert refusal(body, limits) == [("", code)]


def test_copies_of_an_alias_are_independent() -> None:
    (document,) = decode_yaml(b"a: &x {p: [1]}\nb: *x")
    assert isinstance(document, dict)
    assert document["a"] == document["b"]
    assert document["a"] is not document["b"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a: *x", [("/a", "InvalidAlias")]),
        ("a: &x 1\n---\nb: *x", [("/b", "InvalidAlias")]),
        ("a: &x [1, *x]", [("/a/1", "InvalidAlias")]),
        ("a: &x 1\nb: &x {c: *x}", [("/b/c", "InvalidAlias")]),
        ("a: &x [1]\nb: {*x : 1}", [("/b", "InvalidKey")]),
        ("a: !!python/object/apply:os.system [x]", [("/a", "TagNotSupported")]),
        ("a: !!binary aGk=", [("/a", "TagNotSupported")]),
        ("a: !mine x", [("/a", "TagNotSupported")]),
        ("a: !!int '1'", [("/a", "TagNotSupported")]),
        ("a: !!map {}", [("/a", "TagNotSupported")]),
        ("%TAG ! tag:x,2000:\n---\na: 1", [("", "TagNotSupported")]),
        ("a: {<<: 1}", [("/a/<<", "InvalidMerge")]),
        ("a: {<<: [{b: 1}, [{c: 2}]]}", [("/a/<<", "InvalidMerge")]),
        ("a: {<<: {b: 1}, b: 2, b: 3}", [("/a/b", "DuplicateKey")]),
        ("a: {b: 1, b: 2}", [("/a/b", "DuplicateKey")]),
        ("1: a\n'1': b", [("/1", "DuplicateKey")]),
        ("on: a\ntrue: b", [("/true", "DuplicateKey")]),
        ("1.5: a", [("", "InvalidKey")]),
        ("~: a", [("", "InvalidKey")]),
        ("? \n: a", [("", "InvalidKey")]),
        ("? [a, b]\n: c", [("", "InvalidKey")]),
        ("a: .nan", [("/a", "NotANumber")]),
        ("a: -.inf", [("/a", "NotANumber")]),
        ("a: 1e999", [("/a", "OutOfRange")]),
        ("a: 9223372036854775808", [("/a", "OutOfRange")]),
        ("a: " + "1" * 5000, [("/a", "NumberTooLong")]),
        ('a: "x\\0"', [("/a", "NulCharacter")]),
        ('"x\\0": a', [("", "NulCharacter")]),
        ('a: "\\ud800"', [("", "MalformedYaml")]),
        ("a: \0", [("", "MalformedYaml")]),
        ("a: [1", [("", "MalformedYaml")]),
        ("\tb: 1", [("", "MalformedYaml")]),
        (b"a: \xff", [("", "InvalidUtf8")]),
        ("a: 1".encode("utf-16"), [("", "InvalidUtf8")]),
        ("", [("", "EmptyBody")]),
        ("# nothing\n---\n---\n", [("", "EmptyBody")]),
        ("[" * 50_000, [("", "TooDeep")]),
        ("{a: " * 50_000, [("", "TooDeep")]),
        ("- " * 50_000, [("", "TooDeep")]),
        ("? " * 50_000, [("", "InvalidKey")]),
        ("--- a\n" * 101, [("", "TooManyDocuments")]),
        ("\n".join(f"k{index}: {index}" for index in range(20_000)), [("", "TooManyKeys")]),
        ("[" + "0," * 150_000 + "]", [("", "TooManyValues")]),
    ],
)  # fmt: skip
def test_hostile_documents(body: bytes | str, expected: list[tuple[str, str]]) -> None:
    assert refusal(body) == expected


def test_a_billion_laughs_are_refused() -> None:
    """A reader that repeats what an alias names would not come to an end."""
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert refusal("l0: &l0 ha\n" + "\n".join(levels)) == [("", "TooManyValues")]
    assert refusal(f"a: &x {'y' * 500_000}\nb: [*x, *x, *x]") == [("", "AliasesTooLarge")]


def test_documents_and_byte_order_mark() -> None:
    assert decode_yaml("\ufeffa: 1\n---\n---\nb: 2\n...\n".encode()) == ({"a": 1}, {"b": 2})


def test_all_errors_at_once() -> None:
    assert refusal("a: .inf\nb: !x 1\nc: *d\na: 2") == [
        ("/a", "NotANumber"),
        ("/b", "TagNotSupported"),
        ("/c", "InvalidAlias"),
        ("/a", "DuplicateKey"),
    ]


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("kind: X\nmetadata:\n  name: {{ .Values.name }}\n", True),
        ("kind: X\nmetadata:\n- name: {{ name | quote }}-worker\n", True),
        ("kind: X\n{% if gpu %}\nspec: {}\n{% endif %}\n", True),
        ("kind: X\n{{- if .Values.gpu }}\nspec: {}\n{{- end }}\n", True),
        ("kind: X\nspec: {a: 1, a: 2}\nargs: ['{{ name }}']\n", False),
        ("kind: X\nspec: {? [a, b] : 2}\n", False),
    ],
    ids=["helm", "jinja", "statement", "helm statement", "another error", "no braces"],
)
def test_a_template_that_is_not_rendered_is_named(text: str, *, is_named: bool) -> None:
    with pytest.raises(MalformedDocument) as raised:
        decode_yaml(text.encode())
    assert any("render the template first" in (error.accepted or "") for error in raised.value.errors) == is_named


def test_expressions_in_quotes_and_in_blocks_are_text() -> None:
    (document,) = decode_yaml(b"args: ['{{ name }}']\nscript: |\n  {% if x %}\n  echo {{ y }}\n")
    assert document == {"args": ["{{ name }}"], "script": "{% if x %}\necho {{ y }}\n"}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"a: 1\n \tb: 1\n", "line 2, column 4: the line is indented with a tab"),
        (b"a: 1\n-\n\tb: 1\n", "line 2, column 1: did not find expected key"),
    ],
)
def test_only_a_tab_in_the_line_of_the_error_is_named(body: bytes, detail: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(body)
    assert [error.detail for error in refused.value.errors] == [detail]


def test_an_error_names_its_line() -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(b"a: 1\nb: &x 2\nc: *x\na: 3\n")
    assert [error.detail for error in refused.value.errors] == ["line 4: the key is given more than once"]
