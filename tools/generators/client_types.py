"""Generates `jobgate/client/types.py` from the OpenAPI document (`make openapi`).

The output depends only on the document, so `make check` can compare it with the committed file.
"""

import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.generators.formatting import format_module

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "openapi" / "openapi.json"
TARGET = ROOT / "jobgate" / "client" / "types.py"
# The answers of the routes that the client uses. Pages, batches and watch events are generic types of `wire.py`.
WANTED = (
    *("Job", "JobStatus", "JobSummary", "SampleSet", "SampleSetStatus", "SampleSetSummary"),
    *("SampleJob", "SampleJobStatus", "SampleJobSummary"),
    *("Replica", "History", "Event", "ScaleRecord", "Kind", "Dependents", "Problem", "DryRun", "ResourceDryRun"),
    "PostedManifest",
    *("Redaction", "JobQueuePage", "UsagePage", "JobUsage"),
    *("Oidc", "OidcToken", "Caller"),
    *("Outcome", "ReplicaPhase", "ScaleOutcome", "RemovalStage", "SetPhase", "SampleJobPhase", "JobPhase"),
)
HEADER = '''"""The answers of the gateway as types. `make openapi` generates this module from openapi/openapi.json.

A field whose value comes from a closed set is a `str`, so that the client can read the answer of a newer gateway. The
enumerations list the values that are known.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
'''
STRUCT = 'Struct, frozen=True, kw_only=True, rename="camel"'
FORMATS = {"date-time": "datetime"}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
EMPTY_NAME = "NEW"  # the phase of an object that the controller has not reconciled yet is empty

Schema = Mapping[str, Any]


def generate(document: Schema) -> str:
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    return HEADER + "".join(_definition(name, schemas) for name in _ordered(schemas))


def _ordered(schemas: Mapping[str, Schema]) -> list[str]:
    """Return the wanted schemas and those that they refer to, each after those that it needs."""
    done: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        for other in sorted(_references(schemas[name])):
            if other != name:
                visit(other)
        done.append(name)

    for name in WANTED:
        if name in schemas:
            visit(name)
    return done


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _definition(name: str, schemas: Mapping[str, Schema]) -> str:
    schema = schemas[name]
    if "enum" in schema:
        members = [f'    {_member(value)} = "{value}"' for value in schema["enum"]]
        return (
            f"\n\nclass {name}(StrEnum):\n{_docstring(schema, f'The known values of {name}.')}\n"
            + "\n".join(members)
            + "\n"
        )
    required = set(schema.get("required", ()))
    fields = [
        _field(wire_name, inner, schemas, is_required=wire_name in required)
        for wire_name, inner in schema.get("properties", {}).items()
    ]
    body = "\n".join(fields) or "    pass"
    return f"\n\nclass {name}({STRUCT}):\n{_docstring(schema, f'{name}, as the gateway returns it.')}\n{body}\n"


def _docstring(schema: Schema, otherwise: str) -> str:
    text = " ".join(str(schema.get("description") or otherwise).split()).replace("\\", "\\\\")
    lines = textwrap.wrap(text, 112)
    if len(lines) == 1:
        return f'    """{lines[0]}"""\n'
    first, *rest = textwrap.wrap(text, 112)
    return f'    """{first}\n' + "".join(f"    {line}\n" for line in rest) + '    """\n'


def _field(wire_name: str, schema: Schema, schemas: Mapping[str, Schema], *, is_required: bool) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wire_name).lower()
    if keyword.iskeyword(name):
        name += "_"
    kind, is_nullable = _type(schema, schemas)
    default = None
    if is_nullable:
        default = "None"
    elif not is_required:
        default = repr(schema["default"]) if isinstance(schema.get("default"), int | str) else "None"
    if default == "None":
        kind += " | None"
    if _camel(name) != wire_name:
        given = f", default={default}" if default is not None else ""
        return f'    {name}: {kind} = field(name="{wire_name}"{given})'
    return f"    {name}: {kind}" + (f" = {default}" if default is not None else "")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _type(schema: Schema, schemas: Mapping[str, Schema]) -> tuple[str, bool]:
    """Return the Python type of a schema without `None`, and whether the value can be null."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return ("str" if "enum" in schemas[name] else name), False
    for union in ("anyOf", "oneOf"):
        if union in schema:
            parts = [part for part in schema[union] if part.get("type") != "null"]
            kind = _type(parts[0], schemas)[0] if len(parts) == 1 else "Any"
            return kind, len(parts) < len(schema[union])
    declared = schema.get("type")
    if isinstance(declared, list):
        (plain,) = [one for one in declared if one != "null"]
        return _type({**schema, "type": plain}, schemas)[0], "null" in declared
    if declared == "array":
        return f"list[{_type(schema['items'], schemas)[0]}]", False
    if declared == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values, schemas)[0] if isinstance(values, Mapping) else 'Any'}]", False
    if declared == "string" and schema.get("format") in FORMATS:
        return FORMATS[schema["format"]], False
    return PLAIN.get(str(declared), "Any"), False


def _member(value: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value).upper() or EMPTY_NAME


def generate_files() -> Iterator[tuple[Path, str]]:
    """Yield the generated file with its text."""
    yield TARGET, format_module(generate(json.loads(DOCUMENT.read_text(encoding="utf-8"))), TARGET)


def main() -> int:
    for path, text in generate_files():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
