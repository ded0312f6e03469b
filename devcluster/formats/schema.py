"""The fields of each Kubernetes type, from the OpenAPI document of a real API server, and the check of objects.

schema.json maps each type to its fields. A field has the form `type`, or `type|mergeKey` for a list that a strategic
merge patch merges.
"""

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from devcluster.errors import StatusError, bad_request
from devcluster.formats import quantity
from devcluster.formats.objects import Object

TYPES: dict[str, dict[str, str]] = json.loads(files("devcluster.formats").joinpath("schema.json").read_text())
_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (str,),
    "time": (str,),
    "int32": (int,),
    "int64": (int,),
    "bool": (bool,),
    "float64": (int, float),
    "quantity": (str, int, float),
    "int-or-string": (str, int),
}


@dataclass(slots=True)
class _Reading:
    """The state of one check of an object: the unknown fields that it has found."""

    kind: str
    version: str
    unknown: list[str] = field(default_factory=list)


def clean(obj: Object, kind: str, version: str) -> list[str]:
    """Remove unknown fields and nulls in place, and return the paths of the unknown fields.

    Raises:
        StatusError: a field has the wrong type.
    """
    if kind not in TYPES:
        return []
    reading = _Reading(kind, version)
    _struct(reading, obj, kind, "", "")
    return reading.unknown


def refuse_unknown(kind: str, version: str, unknown: list[str]) -> StatusError:
    listed = ", ".join(f'unknown field "{path}"' for path in unknown)
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {listed}')


def _struct(reading: _Reading, value: Object, kind: str, path: str, go_path: str) -> None:
    fields = TYPES[kind]
    for name in list(value):
        here = f"{path}.{name}" if path else name
        field_type = fields.get(name)
        if field_type is None:
            reading.unknown.append(here)
            del value[name]
        elif value[name] is None:
            del value[name]
        else:
            below = f"{go_path}.{name}" if go_path else name
            _value(reading, value[name], field_type.partition("|")[0], here, (kind, below))


def _value(reading: _Reading, value: Any, kind: str, path: str, owner: tuple[str, str]) -> None:
    if kind == "any":
        return
    if kind.startswith("[]"):
        if not isinstance(value, list):
            raise _mismatch(reading, value, kind, owner)
        for index, item in enumerate(value):
            _value(reading, item, kind[2:], f"{path}[{index}]", owner)
        return
    if kind.startswith("map:"):
        _map(reading, value, kind, path, owner)
        return
    if kind in TYPES:
        if not isinstance(value, dict):
            raise _mismatch(reading, value, kind, owner)
        _struct(reading, value, kind, path, owner[1])
        return
    allowed = _SCALARS[kind]
    # In Python a bool is an int; in JSON it is not.
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise _mismatch(reading, value, kind, owner)
    if kind == "quantity":
        _check_quantity(reading, value)


def _check_quantity(reading: _Reading, value: Any) -> None:
    try:
        quantity.parse(value)
    except ValueError as error:
        raise bad_request(
            f'{reading.kind} in version "{reading.version}" cannot be handled as a {reading.kind}: quantities must '
            "match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error


def _map(reading: _Reading, value: Any, kind: str, path: str, owner: tuple[str, str]) -> None:
    if not isinstance(value, dict):
        raise _mismatch(reading, value, kind, owner)
    for key, item in list(value.items()):
        # The JSON decoder of Go reads null in a map of strings as the zero value.
        if item is None:
            value[key] = ""
        else:
            _value(reading, item, kind.removeprefix("map:"), f"{path}.{key}", owner)


def _mismatch(reading: _Reading, value: Any, kind: str, owner: tuple[str, str]) -> StatusError:
    struct, path = owner
    return bad_request(
        f'{reading.kind} in version "{reading.version}" cannot be handled as a {reading.kind}: json: cannot '
        f"unmarshal {_json_name(value)} into Go struct field {struct}.{path} of type {_go_name(kind)}"
    )


def _json_name(value: Any) -> str:
    names = {str: "string", bool: "bool", list: "array", dict: "object"}
    return names.get(type(value), "number")


def _go_name(kind: str) -> str:
    if kind.startswith("[]"):
        return f"[]{_go_name(kind[2:])}"
    if kind.startswith("map:"):
        return f"map[string]{_go_name(kind[4:])}"
    return f"v1.{kind}" if kind in TYPES else kind
