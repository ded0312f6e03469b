import contextlib
import json
import re
import time

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.domain.decoding import JsonValue, Limits, decode_yaml
from app.domain.errors import MAX_ERRORS, MalformedDocument
from tests.support.json_values import JSON_VALUES, UNHURRIED


def refusal(body: bytes | str, limits: Limits | None = None) -> list[tuple[str, str]]:
    raw = body.encode() if isinstance(body, str) else body
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(raw, limits=limits or Limits())
    assert 0 < len(refused.value.errors) <= MAX_ERRORS
    return [(error.pointer, error.code) for error in refused.value.errors]


@settings(UNHURRIED, max_examples=40)
@given(st.dictionaries(st.sampled_from(["key", "other", "third"]), JSON_VALUES))
def test_what_a_yaml_writer_writes_is_read_back_or_asked_to_be_quoted(value: dict[str, JsonValue]) -> None:
    body = yaml.safe_dump(value, allow_unicode=False).encode()
    assume(not re.search(rb"[0-9.][eE][0-9]", body))  # 1e3 is a number here, as to Go; PyYAML thinks it a word
    try:
        documents = decode_yaml(body)
    except MalformedDocument as refused:
        # PyYAML writes 1.1: such words and numbers stay unquoted where 1.2 would read something else.
        documents = ()
        codes = {error.code for error in refused.errors}
    else:
        codes = set()
    assert documents == (value,) or (codes and codes <= {"AmbiguousScalar", "InvalidKey"})


@UNHURRIED
@given(st.dictionaries(st.text(st.characters(min_codepoint=32, max_codepoint=126)), st.integers(0, 2**62)))
def test_json_is_yaml(value: dict[str, JsonValue]) -> None:
    assert decode_yaml(json.dumps(value).encode()) == (value,)


@UNHURRIED
@given(st.binary(max_size=100) | st.text(alphabet="{}[]&*!:-?,'\"\n #%@`|>aon01._~<\t").map(str.encode))
def test_arbitrary_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedDocument):
        assert decode_yaml(body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"), ("~", None), ("true", True), ("False", False), ("null", None), ("yEs", "yEs"),
        ("'no'", "no"), ('"on"', "on"), ("|\n  off\n", "off\n"), ("0", 0), ("-12", -12), ("+7", 7),
        ("0x1F", 31), ("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5e-3", -0.0015),
        ("2001-12-14", "2001-12-14"), ("2001-12-14T21:59:43Z", "2001-12-14T21:59:43Z"), ("1.2.3", "1.2.3"),
        ("500m", "500m"), ("1Gi", "1Gi"), ("8080:80", "8080:80"), ("'010'", "010"), ("'12:30:45'", "12:30:45"),
        ("=", "="), ("'<<'", "<<"), ("-", [None]), ("[]", []), ("{}", {}), ("9223372036854775807", 2**63 - 1),
    ],
)  # fmt: skip
def test_scalars(text: str, value: JsonValue) -> None:
    assert decode_yaml(f"k: {text}".encode() if text != "-" else b"k:\n-") == ({"k": value},)


@pytest.mark.parametrize(
    "text",
    ["yes", "No", "ON", "off", "y", "N", "010", "08", "-010", "0o17", "0b11", "1_000", "1_0.5", "0x_1", "-0x1",
     "12:30:45", "1:30", "190:20:30.15"],
)  # fmt: skip
def test_what_readers_disagree_on_must_be_quoted(text: str) -> None:
    with pytest.raises(MalformedDocument) as refused:
        decode_yaml(f"a:\n- k: {text}".encode())
    (error,) = refused.value.errors
    assert (error.pointer, error.code) == ("/a/0/k", "AmbiguousScalar")
    assert f'"{text}" in quotes' in (error.accepted or "")
    assert error.detail.startswith("line 2: ")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a: &x 1\nb: *x", [("/a", "AnchorNotSupported"), ("/b", "AliasNotSupported")]),
        ("- &x [1]\n- *x", [("/0", "AnchorNotSupported"), ("/1", "AliasNotSupported")]),
        ("&x a: 1", [("", "AnchorNotSupported")]),
        ("a: !!python/object/apply:os.system [x]", [("/a", "TagNotSupported")]),
        ("a: !!binary aGk=", [("/a", "TagNotSupported")]),
        ("a: !mine x", [("/a", "TagNotSupported")]),
        ("a: ! x", [("/a", "TagNotSupported")]),
        ("!!str a: 1", [("", "TagNotSupported")]),
        ("%TAG ! tag:x,2000:\n---\na: 1", [("", "TagNotSupported")]),
        ("<<: {a: 1}", [("", "MergeKeyNotSupported")]),
        ("a: {b: 1, b: 2}", [("/a/b", "DuplicateKey")]),
        ("1: a", [("", "InvalidKey")]),
        ("true: a", [("", "InvalidKey")]),
        ("~: a", [("", "InvalidKey")]),
        ("? \n: a", [("", "InvalidKey")]),
        ("on: a", [("", "AmbiguousScalar")]),
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
    started = time.process_time()
    assert refusal(body) == expected
    assert time.process_time() - started < 2


def test_a_billion_laughs_are_refused_at_once() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    codes = {code for _, code in refusal("l0: &l0 ha\n" + "\n".join(levels))}
    assert codes == {"AnchorNotSupported", "AliasNotSupported"}


def test_documents_and_byte_order_mark() -> None:
    assert decode_yaml("\ufeffa: 1\n---\n---\nb: 2\n...\n".encode()) == ({"a": 1}, {"b": 2})


def test_all_errors_at_once() -> None:
    assert refusal("a: yes\nb: !x 1\nc: 010\na: 2") == [
        ("/a", "AmbiguousScalar"),
        ("/b", "TagNotSupported"),
        ("/c", "AmbiguousScalar"),
        ("/a", "DuplicateKey"),
    ]
