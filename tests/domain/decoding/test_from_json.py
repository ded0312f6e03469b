import contextlib
import json
import math
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.decoding import DecodingLimits, JsonValue, decode_json
from app.domain.errors import MAX_ERRORS, MalformedDocument
from tests.support.json_values import JSON_VALUES, UNHURRIED


def refusal(body: bytes, limits: DecodingLimits | None = None) -> list[tuple[str, str]]:
    with pytest.raises(MalformedDocument) as refused:
        decode_json(body, limits=limits or DecodingLimits())
    assert 0 < len(refused.value.errors) <= MAX_ERRORS
    str(refused.value).encode()
    return [(error.pointer, error.code) for error in refused.value.errors]


@UNHURRIED
@given(value=JSON_VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_what_json_writes_is_read_back(value: JsonValue, *, ascii_only: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert decode_json(body) == value
    assert decode_json(b"\xef\xbb\xbf" + body) == value


@UNHURRIED
@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\u0d8-1e9 truNa').map(str.encode))
def test_arbitrary_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedDocument):
        assert decode_json(body) == json.loads(body.decode("utf-8-sig"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": [1, NaN]}', [("/a/1", "NotANumber")]),
        (b'{"a": -Infinity}', [("/a", "NotANumber")]),
        (b'{"a": 1e999}', [("/a", "OutOfRange")]),
        (b'{"a": "\\ud800 abc"}', [("/a", "LoneSurrogate")]),
        (b'{"a": "\\udc00"}', [("/a", "LoneSurrogate")]),
        (b'{"\\ud800": 1}', [("", "LoneSurrogate")]),
        (b'{"a": "x\\u0000"}', [("/a", "NulCharacter")]),
        (b'{"x\\u0000": 1}', [("", "NulCharacter")]),
        (b'{"a": {"b": 1, "b": 2}}', [("/a/b", "DuplicateKey")]),
        (b'{"a": {"b": [], "\\u0062": 2}}', [("/a/b", "DuplicateKey")]),
        (b'{"a/b": 1, "a/b": 2}', [("/a~1b", "DuplicateKey")]),
        (b"9223372036854775808", [("", "OutOfRange")]),
        (b'{"n": -9223372036854775809}', [("/n", "OutOfRange")]),
        (b'{"n": ' + b"1" * 5000 + b"}", [("", "NumberTooLong")]),
        (b'{"n": 0.' + b"1" * 5000 + b"}", [("", "NumberTooLong")]),
        (b'{"n": "\xff"}', [("", "InvalidUtf8")]),
        (b'"\xed\xa0\x80"', [("", "InvalidUtf8")]),
        (b"", [("", "EmptyBody")]),
        (b" \n", [("", "EmptyBody")]),
        (b"\xef\xbb\xbf", [("", "EmptyBody")]),
        (b'{"a": 1,}', [("", "MalformedJson")]),
        (b"{} {}", [("", "MalformedJson")]),
        (b'{"a": NaN, "b": 1e999, "b": "\\u0000"}',
         [("/a", "NotANumber"), ("/b", "OutOfRange"), ("/b", "DuplicateKey"), ("/b", "NulCharacter")]),
        (b"[" * 65 + b"]" * 65, [("", "TooDeep")]),
        (b'{"a":' * 65 + b"1" + b"}" * 65, [("", "TooDeep")]),
        (b"[" * 50_000, [("", "TooDeep")]),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, [("", "TooManyKeys")]),
        (b"[" * 50_000 + b"]" * 50_000, [("", "TooDeep")]),
        (b'{"a":1,"a":' + b"[" * 500 + b"]" * 500 + b"}", [("", "TooDeep")]),
        (b"[" + b"0," * 200_000 + b"0]", [("", "TooManyValues")]),
    ],
)  # fmt: skip
def test_hostile_documents(body: bytes, expected: list[tuple[str, str]]) -> None:
    assert refusal(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 64 + b"]" * 64,
        b'["' + b"[" * 500 + b'"]',
        b'["\\"' + b"{" * 500 + b'\\\\"]',
        b'{"a\\\\": ":::", "b\\"": "{\\"k\\":1}"}',
        b'{"a": "1111111111111111111111111111111111111111111111111111111111111111111111111"}',
        b'{"a": "\\\\u0000"}',
        b'{"a": 9223372036854775807, "b": -9223372036854775808, "c": 1.7976931348623157e308}',
        b'{"e": "\\ud83d\\ude00"}',
    ],
)
def test_documents_that_only_seem_hostile_are_accepted(body: bytes) -> None:
    assert decode_json(body) == json.loads(body)


def test_limits_are_exact() -> None:
    limits = DecodingLimits(max_keys=3, max_depth=2, max_values=5)
    assert decode_json(b'{"a": 1, "b": {"c": 1}}', limits=limits) == {"a": 1, "b": {"c": 1}}
    assert refusal(b'{"a": 1, "b": 2, "c": 3, "d": 4}', limits) == [("", "TooManyKeys")]
    assert refusal(b"[1,2,3,4,5,6]", limits) == [("", "TooManyValues")]


def test_a_document_deeper_than_the_parsers_allow_is_refused_whatever_the_limit() -> None:
    assert refusal(b"[" * 5000 + b"]" * 5000, DecodingLimits(max_depth=10_000)) == [("", "MalformedJson")]


def test_a_huge_number_of_unknown_keys_is_refused_cheaply() -> None:
    body = json.dumps({f"key-{index}": index for index in range(20_000)}).encode()
    started = time.process_time()
    assert refusal(body) == [("", "TooManyKeys")]
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize("item", [b'"",', b'"",12345678', b'"",,'], ids=["values", "numbers", "malformed"])
def test_a_document_with_too_many_strings_is_refused_in_little_memory(item: bytes) -> None:
    """In less than the estimate of its values, which is what a request waits for."""
    body = b"[" + item * 500_000 + b"]"
    tracemalloc.start()
    try:
        assert refusal(body) == [("", "TooManyValues")]
        assert tracemalloc.get_traced_memory()[1] < 3 * len(body)
    finally:
        tracemalloc.stop()


def test_many_errors_get_a_bounded_answer() -> None:
    body = b"[" + b",".join([b"NaN"] * 5000) + b"]"
    with pytest.raises(MalformedDocument) as refused:
        decode_json(body)
    assert len(refused.value.errors) == MAX_ERRORS
    assert refused.value.errors[-1].detail == "and 4981 more errors are not listed"


def test_negative_zero_keeps_its_sign() -> None:
    value = decode_json(b"-0.0")
    assert isinstance(value, float)
    assert math.copysign(1, value) == -1
