"""Decodes the protobuf encoding of Kubernetes, which client-go sends for built-in types, to JSON objects. Pure.

The table in protobuf.json, written by tools/generators/protobuf_fields.py, has the fields of each type by number. The
decoder drops a zero value if the JSON encoding of Go would omit the field, because protobuf messages contain it always.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

from devcluster import clock
from devcluster.formats.objects import Object

MAGIC = b"k8s\x00"
_FIELDS: dict[str, dict[str, str]] = json.loads(files("devcluster.formats").joinpath("protobuf.json").read_text())
# The wire types of protobuf.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Value = int | bytes


class ProtobufError(ValueError):
    """The bytes are not a valid message; the text says why."""


def decode(raw: bytes) -> Object:
    """Return the object of a request body, with its kind and apiVersion.

    Raises:
        ProtobufError: the body is damaged, or its kind is unknown.
    """
    if not raw.startswith(MAGIC):
        raise ProtobufError("the body does not begin with k8s\\x00")
    envelope = dict(_read(raw[len(MAGIC) :]))
    named = dict(_read(_bytes(envelope.get(1, b""))))
    version, kind = (_bytes(named.get(number, b"")).decode() for number in (1, 2))
    if kind not in _FIELDS:
        raise ProtobufError(f"no kind {kind!r}")
    return {"apiVersion": version, "kind": kind, **_message(kind, _bytes(envelope.get(2, b"")))}


def _read(raw: bytes) -> Iterator[tuple[int, _Value]]:
    """Yield the number and the value of each field of a message."""
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        wire = tag & 7
        if wire == _VARINT:
            value, position = _varint(raw, position)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, position = _varint(raw, position)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise ProtobufError(f"wire type {wire} at byte {position}")
        if position + size > len(raw):
            raise ProtobufError(f"the message ends inside a field at byte {position}")
        yield tag >> 3, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    # A number has at most 64 bits, in groups of 7, the least significant first.
    while position < len(raw) and shift < 64:
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ProtobufError(f"no number at byte {position}")


def _message(kind: str, raw: bytes) -> Object:
    result: Object = {}
    for number, value in _read(raw):
        name, _, field_type = _FIELDS[kind].get(str(number), "").partition(" ")
        if name == "=":
            result |= _message(field_type.lstrip("*"), _bytes(value))
        elif name:
            _add(result, name, field_type, value)
    return result


def _add(result: Object, name: str, field_type: str, value: _Value) -> None:
    if field_type.startswith("[]"):
        result.setdefault(name, []).extend(_items(field_type[2:], value))
    elif field_type.startswith("map:"):
        entry = dict(_read(_bytes(value)))
        key = _bytes(entry.get(1, b"")).decode()
        result.setdefault(name, {})[key] = _value(field_type.removeprefix("map:"), entry.get(2, b""))
    else:
        found = _value(field_type.lstrip("*"), value)
        # An empty struct is kept, as in the JSON encoding of Go.
        if field_type.startswith("*") or isinstance(found, dict) or found:
            result[name] = found


def _items(field_type: str, value: _Value) -> Iterator[Any]:
    """Yield the items of one occurrence of a repeated field; numbers may be packed into one."""
    if not field_type.startswith("int") or not isinstance(value, bytes):
        yield _value(field_type, value)
        return
    position = 0
    while position < len(value):
        number, position = _varint(value, position)
        yield _to_signed(number)


def _value(field_type: str, value: _Value) -> Any:
    match field_type:
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return _to_signed(value)
        case "time" | "microtime":
            return _time(_bytes(value), micro=field_type == "microtime")
        case "quantity":
            return _bytes(dict(_read(_bytes(value))).get(1, b"")).decode()
        case "int-or-string":
            parts = dict(_read(_bytes(value)))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _to_signed(parts.get(2, 0))
        case "raw":
            return json.loads(_bytes(dict(_read(_bytes(value))).get(1, b"null")))
        case _:
            return _message(field_type, _bytes(value))


def _bytes(value: _Value) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("a number stands where bytes are expected")
    return value


def _to_signed(value: _Value) -> int:
    if not isinstance(value, int):
        raise ProtobufError("bytes stand where a number is expected")
    # Negative numbers are encoded as 64-bit two's complement.
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(raw: bytes, *, micro: bool) -> str:
    """Return a time in RFC 3339, or an empty string for the zero time of Go, which is an empty message."""
    parts = dict(_read(raw))
    if not parts:
        return ""
    moment = _EPOCH + timedelta(seconds=_to_signed(parts.get(1, 0)), microseconds=_to_signed(parts.get(2, 0)) // 1000)
    return clock.micro_timestamp(moment) if micro else clock.timestamp(moment)
