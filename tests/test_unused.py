"""Public functions, classes, constants, fields, methods and settings of the server's programs are used in them.

The same holds for the client and the tools: what is used by tests only is an exception that has a reason.

Names are compared, not objects, so a name that is used anywhere counts as used everywhere. This finds names whose last
use was removed, and reports no used name. Settings are compared more strictly: a field counts
as read if it is read from an object of Settings, so a field of the same name elsewhere does not hide it.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "app" / "settings"
# Fields of these, and of what is derived from them, are read as a whole: sent, stored, or given to a library.
WHOLE = frozenset(
    {"BaseSettings", "BaseModel", "StrEnum", "IntEnum", "Enum", "NamedTuple", "Protocol", "TypedDict", "Struct"}
)
# What is used in another way than by its name, with the reason.
EXCEPTIONS: dict[str, str] = {
    "app/db/postgres/concurrent_indexes.py:create_index": "migrations use it",
    "app/db/postgres/concurrent_indexes.py:drop_index": "migrations use it",
    "app/db/postgres/migrations.py:drift": "tools/generators/check_generated.py asks",
    "app/http_server/acceptor.py:wait_closed": "uvicorn calls it",
    "jobgate/client/config.py:VARIABLES": "tests run the client without them, and compare them with the settings",
    "tools/sdks/catalog.py:example": "tests compare it with the files, and docs/sdks.md with it",
}
SERVER = ("app", "cacheserver", "devcluster")
CLIENT_AND_TOOLS = ("bench", "jobgate", "tools")
# What users of the client call.
FOR_USERS = tuple(ROOT / "jobgate" / "client" / name for name in ("types.py", "asynchronous", "synchronous"))


@cache
def trees(*folders: str) -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.is_relative_to(ROOT / "jobgate" / "build")
    }


def names_used(modules: dict[Path, ast.Module]) -> set[str]:
    """Every name that is read, imported, or part of a string. A definition does not count as a use.

    Reads of Settings from themselves do not count, because they would hide a field of the same name that they fill.
    """
    used: set[str] = set()
    for path, tree in modules.items():
        of_settings = path.is_relative_to(SETTINGS)
        for node in ast.walk(tree):
            if of_settings and isinstance(node, ast.Attribute) and is_name(node.value, "self"):
                continue
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


def definitions(modules: dict[Path, ast.Module]) -> Iterator[tuple[Path, str]]:
    """Public functions, classes and constants of modules, and public methods and fields of their classes."""
    whole = derived_from(WHOLE, modules)
    for path, tree in modules.items():
        if any(path.is_relative_to(other) for other in FOR_USERS):
            continue
        for node in tree.body:
            yield from ((path, name) for name in public(node))
            if isinstance(node, ast.ClassDef) and node.name not in whole:
                yield from ((path, name) for inner in node.body for name in public(inner))


def public(node: ast.stmt) -> Iterator[str]:
    return (name for name in defined_by(node) if not name.startswith("_"))


def defined_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name, decorator_list=marks) | ast.AsyncFunctionDef(name=name, decorator_list=marks):
            # A decorator may register it; these do not.
            plain = {"property", "cached_property", "classmethod", "staticmethod", "cache", "contextmanager"}
            if all(isinstance(mark, ast.Name) and mark.id in plain for mark in marks):
                yield name
        case ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            yield name


def derived_from(names: frozenset[str], modules: dict[Path, ast.Module]) -> frozenset[str]:
    """The names of these classes and of all classes that are derived from them."""
    classes = [node for tree in modules.values() for node in tree.body if isinstance(node, ast.ClassDef)]
    found = names
    while more := {node.name for node in classes if bases(node) & found} - found:
        found |= more
    return found


def bases(node: ast.ClassDef) -> set[str]:
    return {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}


def is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def unread_settings(modules: dict[Path, ast.Module]) -> set[str]:
    """Fields and methods of Settings that no module reads, directly or by a method that is itself read."""
    families = derived_from(frozenset({"BaseSettings"}), modules)
    settings = [
        node
        for path, tree in modules.items()
        if path.is_relative_to(SETTINGS)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in families
    ]
    members = [inner for node in settings for inner in node.body]
    offered = {name for inner in members for name in public(inner)} - {"model_config"}
    methods = [inner for inner in members if isinstance(inner, ast.FunctionDef)]
    read = {name for tree in modules.values() if takes_settings(tree) for name in read_from("settings", tree)}
    # pydantic calls the validators.
    read |= {name for method in methods if method.decorator_list for name in read_from("self", method)}
    while more := {n for method in methods if method.name in read for n in read_from("self", method)} - read:
        read |= more
    return offered - read


def takes_settings(tree: ast.Module) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "app.settings")
    return any(alias.name == "Settings" for node in imports for alias in node.names)


def read_from(name: str, tree: ast.AST) -> Iterator[str]:
    """The attributes that are read from the variable or attribute of this name."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attr, ctx=ast.Load()):
                if owner == name:
                    yield attr
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=owner), ast.Constant(value=str(attr)), *_]):
                if owner == name:
                    yield attr


def unused_names(modules: dict[Path, ast.Module]) -> set[str]:
    used = names_used(modules)
    return {f"{path.relative_to(ROOT)}:{name}" for path, name in definitions(modules) if name not in used}


def test_what_is_public_is_used() -> None:
    unused = unused_names(trees(*SERVER)) | unused_names(trees(*CLIENT_AND_TOOLS))
    assert sorted(unused - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - unused) == [], "exceptions that are not needed any more"


def test_what_is_private_is_used_in_its_module() -> None:
    unused = {
        f"{path.relative_to(ROOT)}:{name}"
        for path, tree in trees(*SERVER, *CLIENT_AND_TOOLS).items()
        for name in {name for node in tree.body for name in defined_by(node)} - names_used({path: tree})
        if name.startswith("_") and not name.endswith("__")
    }
    assert sorted(unused) == []


def test_every_setting_is_read() -> None:
    assert sorted(unread_settings(trees(*SERVER))) == []


def test_an_unread_setting_is_found() -> None:
    settings = """
class Settings(BaseSettings):
    direct: int = 1
    by_method: int = 1
    by_unread_method: int = 1
    by_validator: int = 1
    by_nobody: int = 1

    def method(self) -> int:
        return self._private()

    def _private(self) -> int:
        return self.by_method

    def unread_method(self) -> int:
        return self.by_unread_method

    @model_validator(mode="after")
    def _valid(self) -> Self:
        return self.by_validator
"""
    user = "from app.settings import Settings\nsettings.direct + parts.settings.method() + other.by_nobody"
    stranger = "from app.loops import Settings\nsettings.by_nobody"
    modules = {
        SETTINGS / "made_up.py": ast.parse(settings),
        ROOT / "app" / "user.py": ast.parse(user),
        ROOT / "app" / "stranger.py": ast.parse(stranger),
    }
    assert unread_settings(modules) == {"by_nobody", "unread_method", "by_unread_method"}
