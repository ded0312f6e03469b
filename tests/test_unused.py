"""What is public in the product is used by the product: functions, classes, constants, fields and properties.

Names are compared, not objects, so a name that is used anywhere counts as used everywhere. That finds what is left
behind when its last use goes, and never asks for what is needed.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Fields of these are read as a whole: sent, stored, or given to a library.
WHOLE = frozenset(
    {"Settings", "BaseModel", "StrEnum", "IntEnum", "Enum", "NamedTuple", "Protocol", "TypedDict", "Struct"}
)
# What is used in another way than by its name, with the reason.
_UPSTREAM = (
    "an answer of upstream's type that the specification of TrainingJob lists; tests hold it to upstream's values"
)
_INVERSE = "the inverse of the parser, by which properties test that"
EXCEPTIONS: dict[str, str] = {
    "app/db/migrations.py:drift": "tools/check_generated.py asks",
    "app/domain/dialects/training_job/elasticity.py:to_text": _UPSTREAM,
    "app/domain/dialects/training_job/elasticity.py:trainer_cpu_request_milli": _UPSTREAM,
    "app/domain/dialects/training_job/elasticity.py:trainer_gpu_limit": _UPSTREAM,
    "app/domain/dialects/training_job/elasticity.py:trainer_mem_request_mega": _UPSTREAM,
    "app/domain/manifests/rendered.py:largest_pod_bytes": "tests bound the golden pods by it",
    "app/domain/quantity.py:format_quantity": _INVERSE,
    "app/domain/selectors.py:format_selector": _INVERSE,
}


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "app").rglob("*.py"))}


def names_used() -> set[str]:
    """Every name that is read, imported, or spelt in a string; a definition does not use what it defines."""
    used: set[str] = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    used.add(name)
                case ast.ImportFrom():
                    used.update(alias.name for alias in node.names)
                case ast.Constant(value=str(text)) if text.isidentifier():
                    used.add(text)
                case ast.MatchClass(kwd_attrs=attrs):
                    used.update(attrs)
    return used


def definitions() -> Iterator[tuple[Path, str]]:
    """Public functions, classes and constants of modules, and public methods and fields of their classes."""
    for path, tree in trees().items():
        for node in tree.body:
            yield from ((path, name) for name in defined_by(node))
            if isinstance(node, ast.ClassDef) and not (bases(node) & WHOLE or node.decorator_list == []):
                yield from ((path, name) for inner in node.body for name in defined_by(inner))


def defined_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name, decorator_list=marks) | ast.AsyncFunctionDef(name=name, decorator_list=marks):
            # A decorator may register it; these do not.
            plain = {"property", "cached_property", "classmethod", "staticmethod", "cache", "contextmanager"}
            if all(isinstance(mark, ast.Name) and mark.id in plain for mark in marks) and not name.startswith("_"):
                yield name
        case ast.ClassDef(name=name) if not name.startswith("_"):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            if not name.startswith("_"):
                yield name


def bases(node: ast.ClassDef) -> set[str]:
    return {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}


def test_what_is_public_is_used() -> None:
    used = names_used()
    unused = {f"{path.relative_to(ROOT)}:{name}" for path, name in definitions() if name not in used}
    assert sorted(unused - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - unused) == [], "exceptions that are not needed any more"
