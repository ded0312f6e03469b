"""Decodes JSON with a fast parser, and with a slow one that locates the errors of a document that is not valid.

The fast parser, msgspec, refuses NaN, overflow, lone surrogates and invalid UTF-8. It keeps the last of duplicate keys,
accepts NUL characters and huge integers, and recurses. Byte counts detect documents in which that could matter. For
example, the decoded value without duplicate keys encodes to as many quotation marks as the body has. If a count of the
whole body is too coarse, the skeleton is counted: the body without its strings.
"""

import json
import math

import msgspec

from app.domain.decoding.values import (
    DEFAULT_LIMITS,
    MAX_NUMBER_LENGTH,
    DecodingLimits,
    JsonValue,
    check_int,
    check_text,
    refuse,
    refuse_all,
    refuse_depth,
    refuse_keys,
    refuse_values,
    utf8_text,
)
from app.domain.errors import Problems, pointer_to

_BOM = b"\xef\xbb\xbf"
_BRACKETS_ALIKE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
# A shorter run of digits fits into 64 bits, and a number that is too long contains a run of at least this length.
_LONG_DIGITS = b"0" * 19
_NUMBERS_ALIKE = bytes(48 if byte in b"-+.0123456789eE" else 32 for byte in range(256))
_LONG_NUMBER = b"0" * (MAX_NUMBER_LENGTH + 1)

_decoder = msgspec.json.Decoder()


def decode_json(body: bytes, *, limits: DecodingLimits = DEFAULT_LIMITS) -> JsonValue:
    """Decode one JSON document, or raise MalformedDocument with every error of it."""
    body = body.removeprefix(_BOM)
    bare = _without_escapes(body)
    long_digits = _LONG_DIGITS in bare.translate(_DIGITS_ALIKE)
    if long_digits or _may_exceed(bare, limits):
        # Each string is a value or the key of one. The skeleton takes memory for each, which is thus bounded.
        if bare.count(b'"') > 4 * (limits.max_values + 1):
            refuse_values(limits)
        _check_shape(_skeleton(bare), limits, long_digits=long_digits)
    try:
        value: JsonValue = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _diagnose(body, str(error))
    if long_digits or b"\\u0000" in body or _lost_strings(value, bare):
        return _diagnose(body)
    return value


def _without_escapes(body: bytes) -> bytes:
    """Remove escaped backslashes and quotes. Every remaining quote opens or closes a string."""
    if b"\\" not in body:
        return body
    # Backslashes first: after an escaped backslash, a quote is not escaped.
    return body.replace(b"\\\\", b"").replace(b'\\"', b"")


def _lost_strings(value: JsonValue, bare: bytes) -> bool:
    """Return whether a duplicate key has overwritten an earlier one."""
    return _without_escapes(msgspec.json.encode(value)).count(b'"') != bare.count(b'"')


def _may_exceed(bare: bytes, limits: DecodingLimits) -> bool:
    """Return whether the document may exceed a limit. Characters in strings count too, so no excess is missed."""
    opening = bare.count(b"[") + bare.count(b"{")
    return (
        opening > limits.max_depth
        or bare.count(b":") > limits.max_keys
        or bare.count(b",") + opening > limits.max_values
    )


def _skeleton(bare: bytes) -> bytes:
    """Remove all strings. The result is exact for valid JSON, and the time is bounded for any input."""
    # The pieces between quotes are alternately outside and inside a string.
    return b"".join(bare.split(b'"')[::2])


def _check_shape(skeleton: bytes, limits: DecodingLimits, *, long_digits: bool) -> None:
    brackets = skeleton.translate(_BRACKETS_ALIKE, _NOT_BRACKETS)
    if skeleton.count(b":") > limits.max_keys:
        refuse_keys(limits)
    if skeleton.count(b",") + brackets.count(b"[") > limits.max_values:
        refuse_values(limits)
    if _deeper_than(brackets, limits.max_depth):
        refuse_depth(limits)
    if long_digits and _LONG_NUMBER in skeleton.translate(_NUMBERS_ALIKE):
        refuse("NumberTooLong", "a number has too many digits", f"at most {MAX_NUMBER_LENGTH} characters")


def _deeper_than(brackets: bytes, max_depth: int) -> bool:
    """Return whether brackets nest deeper than `max_depth`. Each step removes the innermost pairs.

    Unbalanced brackets remain; the parser refuses them.
    """
    for _ in range(max_depth):
        peeled = brackets.replace(b"[]", b"")
        if len(peeled) == len(brackets):
            break
        brackets = peeled
    opening = len(brackets) - len(brackets.lstrip(b"["))
    return b"[]" in brackets or opening > max_depth


class _Pairs(list[tuple[str, object]]):
    """The members of an object in order, with duplicate keys."""


class _NotJson(str):
    """NaN, Infinity or -Infinity, which Python's parser accepts and JSON does not allow."""

    __slots__ = ()


_slow_decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_NotJson)


def _diagnose(body: bytes, reason: str = "") -> JsonValue:
    """Decode with the slow parser and raise MalformedDocument with every error; return the value if there is none."""
    text = utf8_text(body)
    try:
        written = _slow_decoder.decode(text)
    except json.JSONDecodeError as error:
        refuse("MalformedJson", f"line {error.lineno}, column {error.colno}: {error.msg}", "one JSON document")
    except RecursionError as error:
        refuse("MalformedJson", reason or str(error), "one JSON document")
    problems = Problems()
    value = _inspect(written, "", problems)
    if problems:
        refuse_all(problems)
    # The fast parser has refused the document, so it stays refused even if this one finds no error.
    if reason:
        refuse("MalformedJson", reason, "one JSON document")
    return value


def _inspect(written: object, pointer: str, problems: Problems) -> JsonValue:
    match written:
        case _Pairs():
            return _inspect_object(written, pointer, problems)
        case list():
            return [_inspect(item, f"{pointer}/{index}", problems) for index, item in enumerate(written)]
        case _NotJson():
            problems.add(pointer, "NotANumber", f"{written} is not JSON", "a finite number")
        case str():
            check_text(written, pointer, problems)
            return written
        case float() if not math.isfinite(written):
            problems.add(pointer, "OutOfRange", "the number is too large", "a finite 64-bit float")
        # Before int(): a bool is an int in Python, and has no range to check.
        case bool() | float() | None:
            return written
        case int():
            check_int(written, pointer, problems)
            return written
    return None


def _inspect_object(pairs: _Pairs, pointer: str, problems: Problems) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for key, child in pairs:
        check_text(key, pointer, problems, what="a key")
        here = pointer_to(pointer, key)
        if key in result:
            problems.add(here, "DuplicateKey", "the key is given more than once", "each key once")
        result[key] = _inspect(child, here, problems)
    return result
