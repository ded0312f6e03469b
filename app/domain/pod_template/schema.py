"""Validates a PodTemplateSpec with the closed schema of Kubernetes, and words the errors for users.

tools/generators/pod_template_schema.py generates the schema from the OpenAPI document of an API server. Nulls are
rare, so they are replaced only if a template is not valid with them.
"""

import difflib
import json
from functools import partial
from importlib.resources import files
from typing import Any

import jsonschema_rs

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to, shorten, shorten_list
from app.domain.kubernetes.quantity import ACCEPTED as QUANTITY_ACCEPTED
from app.domain.pod_template.formats import FORMATS, Format
from app.domain.value_types import add_wrong_type

_MAX_LISTED = 12


def _has_format(known: Format, text: str) -> bool:
    return not text or known.check(text) is None


_SCHEMA: dict[str, Any] = json.loads(
    files("app.domain").joinpath("data", "pod_template.schema.json").read_text(encoding="utf-8")
)
_validator = jsonschema_rs.Draft4Validator(
    _SCHEMA, formats={name: partial(_has_format, check) for name, check in FORMATS.items()}, validate_formats=True
)

_TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
# What the API server reads for a null in a list: the zero value of the type in Go.
_ZEROS: dict[str, JsonValue] = {"object": {}, "array": [], "string": "", "integer": 0, "number": 0, "boolean": False}


def check_schema(template: JsonValue, pointer: str, problems: Problems) -> None:
    # Most templates are valid, and this test is much faster than the collection of errors.
    if _validator.is_valid(template):
        return
    for error in _validator.iter_errors(_decode(template, _resolve(_SCHEMA))):
        _report(error, pointer_to(pointer, *error.instance_path), problems)
        if problems.full:
            return


def _decode(value: JsonValue, schema: dict[str, Any]) -> JsonValue:
    """Return the value as the API server decodes it: a null in an object is absent, and one in a list is zero."""
    if isinstance(value, dict):
        return {key: _decode(child, _below(schema, key)) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        item = _below(schema, 0)
        return [_ZEROS.get(item.get("type", "")) if child is None else _decode(child, item) for child in value]
    return value


def _report(error: jsonschema_rs.ValidationError, here: str, problems: Problems) -> None:
    kind = error.kind
    match kind.name:
        case "additionalProperties":
            _report_unknown(kind.as_dict()["unexpected"], error.instance_path, here, problems)
        case "required":
            name = kind.as_dict()["property"]
            problems.add(pointer_to(here, name), "Required", f"{name} must be set", _accepted_by(error, name))
        case "type":
            _report_type(error, here, problems)
        case "enum":
            _report_enum(error, here, problems)
        case "pattern":
            problems.add(here, "Invalid", "this is not a quantity", QUANTITY_ACCEPTED)
        case "format":
            found = FORMATS[kind.as_dict()["format"]]
            problems.add(here, "Invalid", found.check(str(error.instance)) or "", found.accepted)
        case "minimum" | "maximum":
            excess = "small" if kind.name == "minimum" else "large"
            problems.add(here, "OutOfRange", f"the number is too {excess}", _range_of(error))
        case "minItems" | "minLength":
            problems.add(here, "Required", "this must not be empty", "at least one entry or character")
        case "maxItems":
            problems.add(here, "TooLong", "the list is too long", f"at most {kind.as_dict()['limit']} entries")
        case other:
            problems.add(here, "Invalid", f"this does not fit the schema of a pod template ({other})")


def _report_unknown(unexpected: list[str], path: list[str | int], here: str, problems: Problems) -> None:
    known = sorted(_schema_at(path).get("properties", ()))
    for name in unexpected:
        if problems.full:
            problems.add(here, "UnknownField", "unknown field")
            continue
        detail = f"there is no field {shorten(name)} here"
        near = _nearest(name, known)
        accepted = near or "one of: " + shorten_list(known, _MAX_LISTED)
        if near:
            detail += f"; did you mean {near}?"
        problems.add(pointer_to(here, name), "UnknownField", detail, accepted)


def _nearest(name: str, known: list[str]) -> str | None:
    # A much longer name is no misspelling, and comparing it takes long.
    if len(name) > max(map(len, known), default=0) + 5:
        return None
    # The comparison would count a letter of another case as a wrong one.
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[near[0]] if near else None


def _report_type(error: jsonschema_rs.ValidationError, here: str, problems: Problems) -> None:
    expected = " or ".join(_TYPE_NAMES[name] for name in error.kind.as_dict()["types"])
    add_wrong_type(problems, here, "Invalid", expected, error.instance)


def _report_enum(error: jsonschema_rs.ValidationError, here: str, problems: Problems) -> None:
    # The empty text is accepted as an absent value, and is no help.
    options = [option for option in _schema_at(error.instance_path).get("enum", ()) if option]
    value = error.instance if isinstance(error.instance, str) else ""
    near = _nearest(value, options)
    hint = f"; did you mean {near}?" if near else ""
    accepted = "one of: " + shorten_list(options, _MAX_LISTED)
    problems.add(here, "NotSupported", f"{shorten(value) or 'this'} is not supported{hint}", accepted)


def _range_of(error: jsonschema_rs.ValidationError) -> str:
    schema = _schema_at(error.instance_path)
    least, most = schema.get("minimum"), schema.get("maximum")
    return f"{least} or more" if most is None else f"{least} to {most}"


def _accepted_by(error: jsonschema_rs.ValidationError, name: str) -> str:
    schema = _schema_at([*error.instance_path, name])
    declared = schema.get("type", "object")
    names = declared if isinstance(declared, list) else [declared]
    return " or ".join(_TYPE_NAMES[name] for name in names)


def _schema_at(path: list[str | int]) -> dict[str, Any]:
    """Return the schema at the path of an instance; empty if the path is unknown."""
    schema = _resolve(_SCHEMA)
    for step in path:
        schema = _below(schema, step)
    return schema


def _below(schema: dict[str, Any], step: str | int) -> dict[str, Any]:
    """Return the schema of a field or of an item of a list; empty if it is unknown."""
    if isinstance(step, int):
        following = schema.get("items")
    else:
        # A map such as the labels has no properties, but a schema for all its values.
        following = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return _resolve(following) if isinstance(following, dict) else {}


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].removeprefix("#/$defs/")
    definition: dict[str, Any] = _SCHEMA["$defs"][name]
    return definition
