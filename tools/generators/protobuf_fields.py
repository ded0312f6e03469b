"""Generates the table with which the embedded cluster decodes protobuf from the Go source of the Kubernetes API types.

    go mod download -json k8s.io/api@v0.36.0 k8s.io/apimachinery@v0.36.0      # prints the directories
    python -m tools.generators.protobuf_fields API_DIR APIMACHINERY_DIR > devcluster/formats/protobuf.json

Each type maps field numbers to `name type`. `*` before the type marks a Go pointer: its zero value was set explicitly,
while the zero value of another field means that it was not set. The name `=` stands for an embedded Go struct, whose
fields belong to the outer struct.
"""

import json
import re
import sys
from pathlib import Path

from devcluster.formats.schema import TYPES

API_PACKAGES = ("core", "apps", "coordination", "authorization", "authentication", "policy", "autoscaling")
# Types of requests that schema.json does not describe.
BODIES = frozenset({
    "DeleteOptions", "Eviction", "Scale", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SelfSubjectReview",
})  # fmt: skip
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^type (\w+) ((?:\[\]|map\[\w+\])?[\w.]+)$", re.MULTILINE)
FIELD = re.compile(r'^\t(?:\w+ )?(\*?)([\w.\[\]*]+) +`json:"([^"]*)"[^`\n]* protobuf:"\w+,(\d+),', re.MULTILINE)
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "float64": "float64",
    "[]byte": "bytes",
    "Time": "time",
    "MicroTime": "microtime",
    "Quantity": "quantity",
    "IntOrString": "int-or-string",
    "RawExtension": "raw",
    "FieldsV1": "raw",
}


def main(api: Path, apimachinery: Path) -> None:
    sources = [
        *((api / package / "v1" / "types.go").read_text() for package in API_PACKAGES),
        (apimachinery / "pkg" / "apis" / "meta" / "v1" / "types.go").read_text(),
    ]
    structs: dict[str, str] = {}
    aliases: dict[str, str] = {"UID": "string"}
    for source in sources:
        structs = dict(STRUCT.findall(source)) | structs
        aliases = dict(ALIAS.findall(source)) | aliases
    table: dict[str, dict[str, str]] = {}
    wanted = [*TYPES, *BODIES]
    while wanted:
        name = wanted.pop()
        if name in table or name not in structs:
            continue
        table[name], used = _fields(structs[name], aliases)
        wanted += used
    # Without spaces and with one line for each type: compact, and readable in a diff.
    lines = (f"{json.dumps(name)}: {json.dumps(table[name], separators=(',', ':'))}" for name in sorted(table))
    print("{\n" + ",\n".join(lines) + "\n}")


def _fields(body: str, aliases: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a struct by number, and the types that they refer to."""
    fields: dict[str, str] = {}
    used: list[str] = []
    for pointer, go_type, tag, number in FIELD.findall(body):
        spelt = _spelt(go_type, aliases)
        used.append(spelt.rpartition("]")[2].rpartition(":")[2])
        name = tag.partition(",")[0] or "="
        fields[number] = f"{name} {pointer}{spelt}"
    return fields, used


def _spelt(go_type: str, aliases: dict[str, str]) -> str:
    go_type = go_type.lstrip("*")
    if go_type in SCALARS:
        return SCALARS[go_type]
    if go_type.startswith("[]"):
        return f"[]{_spelt(go_type[2:], aliases)}"
    if go_type.startswith("map["):
        return f"map:{_spelt(go_type.partition(']')[2], aliases)}"
    name = go_type.rpartition(".")[2]
    if name in SCALARS:
        return SCALARS[name]
    return _spelt(aliases[name], aliases) if name in aliases else name


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
