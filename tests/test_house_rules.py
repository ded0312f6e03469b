"""Rules of this code base that no linter checks."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from app.domain.kinds import registry
from app.running.application import create_app
from app.settings import Settings

ROOT = Path(__file__).parents[1]
FILE_LINES = 400
# Longer files, each with the reason why it is easier to read as one.
LONG_FILES = {
    "jobgate/client/types.py": "generated from the OpenAPI document",
    "tests/domain/cache/reconcile/test_sets.py": "its largest part is one table of the steps of all phases",
}
FUNCTION_LINES = 60
# Probes, and what a client needs before it has a token.
OPEN_ROUTES = {"/livez", "/readyz", "/metrics", "/api/v1/oidc", "/api/v1/oidc/token"}
# Functions of tests that sleep in a loop and do not wait for a condition, or cannot await `until`.
OWN_LOOPS = {
    "tests/attack/test_attacks.py:trickle": "sends slowly",
    "tests/crash/test_faults.py:submit": "paces the requests of a load",
    "tests/crash/test_rolling_restart.py:_offer": "paces the requests of a load",
    "tests/image/test_processes.py:submit": "repeats a request of a load",
    "tests/support/cache/juicefs.py:mounted": "is synchronous",
    "tests/support/waiting.py:until": "is the function that the others use",
}
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK|TBD|lorem ipsum)\b|NotImplementedError")
MACHINE_PATHS = re.compile(r"(?<![\w.$}>])/(?:work|home/\w+|Users/\w+|root)/")
REGISTRY_HOSTS = re.compile(
    r"\b(?:p[y]pi\.(?:org|python\.org)|p[y]thonhosted\.org|npm[j]s\.(?:org|com)|proxy\.gol[a]ng\.org|crates\.i[o]"
    r"|[\w.-]*artif[a]ctory[\w.-]*|[\w-]+\.pkg\.d[e]v)\b"
)
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".txt",
    ".sh",
    ".cfg",
    ".ini",
    ".html",
    ".css",
    ".js",
    ".ts",
    ".go",
    ".mod",
    ".java",
    ".xml",
    ".mako",
    ".json",
    "",
}


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the repository, or without git, the files that it would contain."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed (apt-get install git), so the files of the repository cannot be listed")
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout, so the files of the repository cannot be listed")
    ran = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    names = [name for name in ran.stdout.split("\0") if name]
    return tuple(ROOT / name for name in names if (ROOT / name).is_file())


def sources(*folders: str) -> list[Path]:
    """The modules of folders, without those that `pip install ./jobgate` has left in `jobgate/build`."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not path.is_relative_to(ROOT / "jobgate" / "build"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_files() -> Iterator[tuple[str, str]]:
    for path in tracked():
        if path.suffix in TEXT and path != Path(__file__):
            yield named(path), path.read_text(encoding="utf-8")


def test_a_long_file_has_a_reason() -> None:
    long = {
        named(path)
        for path in sources("app", "cacheserver", "devcluster", "jobgate", "tests", "tools", "bench")
        if path.read_text().count("\n") > FILE_LINES
    }
    assert sorted(long - LONG_FILES.keys()) == [], "divide the file, or give the reason why not"
    assert sorted(LONG_FILES.keys() - long) == [], "reasons that are not needed any more"


def test_functions_are_short() -> None:
    long = {
        f"{named(path)}:{node.name}": length
        for path in sources("app", "cacheserver", "devcluster", "jobgate", "tools", "bench")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def public_classes() -> dict[str, list[str]]:
    """The modules that define each public top-level class."""
    found: dict[str, list[str]] = {}
    for path in sources("app", "cacheserver", "devcluster"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(named(path))
    return found


@pytest.mark.parametrize("package", ["app/db", "app/domain"])
def test_a_package_with_many_members_names_each(package: str) -> None:
    docstring = ast.get_docstring(parsed(ROOT / package / "__init__.py")) or ""
    modules = {path.stem for path in (ROOT / package).glob("[!_]*.py")}
    packages = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert sorted(name for name in modules | packages if not re.search(rf"\b{name}\b", docstring)) == []


def test_public_classes_have_distinct_names() -> None:
    """A name that two modules define makes readers, and searches, find the wrong class."""
    classes = public_classes()
    assert len(classes) > 500
    assert {name: modules for name, modules in classes.items() if len(modules) > 1} == {}


def endless_loops(tree: ast.Module) -> Iterator[ast.While]:
    """Each `while True` of an async function that handles errors, or that only an error ends."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for loop in ast.walk(function):
            if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and _may_swallow(loop):
                yield loop


def _may_swallow(loop: ast.While) -> bool:
    inside = list(ast.walk(loop))
    handles = any(isinstance(node, ast.ExceptHandler) for node in inside)
    suppresses = any(isinstance(node, ast.Name) and node.id == "suppress" for node in inside)
    ends = any(isinstance(node, ast.Break | ast.Return) for node in inside)
    return handles or suppresses or not ends


def test_no_loop_can_swallow_its_own_cancellation() -> None:
    """Endless loops use `for _ in rounds():`, which raises a cancellation that an iteration handled as an error."""
    paths = sources("app/loops", "app/services", "app/db", "app/k8s", "app/api")
    assert [f"{named(p)}:{loop.lineno}" for p in paths for loop in endless_loops(parsed(p))] == []


def test_task_groups_are_those_of_app_cancellation() -> None:
    paths = sources("app/loops", "app/services", "app/db", "app/k8s", "app/api")
    assert [named(path) for path in paths if "asyncio.TaskGroup" in path.read_text()] == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("await work()", 1),
        ("try:\n            await work()\n        except OSError:\n            continue\n        break", 1),
        ("with suppress(OSError):\n            return await work()", 1),
        ("if await work():\n            break", 0),
    ],
    ids=["endless", "handled", "suppressed", "ends"],
)
def test_a_loop_that_could_swallow_its_cancellation_would_be_found(body: str, found: int) -> None:
    tree = ast.parse(f"async def loop():\n    while True:\n        {body}")
    assert len(list(endless_loops(tree))) == found


def waits_in_except_star(tree: ast.Module) -> Iterator[int]:
    """The lines of handlers `except*` that wait."""
    for handling in ast.walk(tree):
        if isinstance(handling, ast.TryStar):
            for handler in handling.handlers:
                if any(isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor) for node in ast.walk(handler)):
                    yield handler.lineno


def test_no_handler_of_a_group_waits() -> None:
    """See the rule of `app.base.cancellation`."""
    paths = sources("app", "cacheserver", "devcluster", "jobgate")
    assert [f"{named(path)}:{line}" for path in paths for line in waits_in_except_star(parsed(path))] == []


@pytest.mark.parametrize(("handler", "found"), [("except* OSError", 1), ("except OSError", 0)])
def test_a_handler_of_a_group_that_waits_would_be_found(handler: str, found: int) -> None:
    tree = ast.parse(f"async def work():\n    try:\n        await step()\n    {handler}:\n        await pause()")
    assert len(list(waits_in_except_star(tree))) == found


def functions_that_poll(tree: ast.Module) -> Iterator[str]:
    """The functions with a loop that sleeps and that a condition, a break or a return can end."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            loops = [node for node in ast.walk(function) if isinstance(node, ast.While | ast.For)]
            if any(_can_end(loop) and _sleeps(loop) for loop in loops):
                yield function.name


def _can_end(loop: ast.While | ast.For) -> bool:
    has_condition = isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant)
    return has_condition or any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))


def _sleeps(loop: ast.While | ast.For) -> bool:
    """Return whether the loop sleeps for a time. `sleep(0)` only lets other tasks run."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    sleeps = [call for call in calls if ast.unparse(call.func) in ("asyncio.sleep", "time.sleep")]
    return any(ast.unparse(call.args[0]) != "0" for call in sleeps)


def test_tests_wait_with_until() -> None:
    """A loop written by hand has no deadline or does not report what it waited for."""
    found = {f"{named(path)}:{name}" for path in sources("tests") for name in functions_that_poll(parsed(path))}
    assert found == set(OWN_LOOPS)


@pytest.mark.parametrize(
    ("body", "polls"),
    [
        ("while not done():\n        time.sleep(1)", True),
        ("while True:\n        await asyncio.sleep(every)\n        if done():\n            break", True),
        ("for _ in range(9):\n        if done():\n            return\n        await asyncio.sleep(1)", True),
        ("while True:\n        await beat()\n        await asyncio.sleep(1)", False),
        ("for part in parts:\n        await send(part)\n        await asyncio.sleep(1)", False),
        ("while not done():\n        await asyncio.sleep(0)", False),
    ],
)
def test_a_loop_that_waits_for_a_condition_would_be_found(body: str, *, polls: bool) -> None:
    assert list(functions_that_poll(ast.parse(f"async def wait():\n    {body}"))) == ["wait"] * polls


def test_every_package_has_a_docstring() -> None:
    packages = [path for path in sources("app", "cacheserver", "devcluster", "jobgate") if path.name == "__init__.py"]
    assert len(packages) > 10
    assert [named(path) for path in packages if not ast.get_docstring(parsed(path))] == []


def test_every_module_has_a_docstring() -> None:
    modules = sources("app", "cacheserver", "devcluster", "jobgate", "tools")
    assert [named(path) for path in modules if not ast.get_docstring(parsed(path))] == []


@pytest.mark.parametrize("forbidden", [UNFINISHED, MACHINE_PATHS, REGISTRY_HOSTS], ids=["unfinished", "paths", "hosts"])
def test_no_file_contains(forbidden: re.Pattern[str]) -> None:
    found = [f"{name}: {match.group()}" for name, text in text_files() for match in forbidden.finditer(text)]
    assert found == []


def test_the_patterns_find_forbidden_words() -> None:
    assert UNFINISHED.search("# TODO: later")
    assert MACHINE_PATHS.search('Path("/home/me/x")')
    assert not MACHINE_PATHS.search("data/work/x")
    assert REGISTRY_HOSTS.search("https://py" + "pi.org/simple")


def test_every_logger_is_named() -> None:
    """The field `logger` of a line would be empty otherwise."""
    assert [named(path) for path in sources("app") if "structlog.get_logger()" in path.read_text()] == []


def test_every_route_requires_a_token_or_is_listed_as_open() -> None:
    document = create_app().openapi()
    assert document["security"] == [{"bearer": []}]
    is_open = {path for path, item in document["paths"].items() for o in item.values() if o.get("security") == []}
    assert is_open == OPEN_ROUTES


def test_every_kind_has_an_example() -> None:
    # Below examples/clients, YAML files configure the generators of clients.
    files = (ROOT / "examples").rglob("*.yaml")
    shown = {document.get("kind") for path in files for document in yaml.safe_load_all(path.read_text())}
    assert {kind.name for kind in set(registry.JOB_KINDS.values())} <= shown


def test_every_kind_has_golden_cases_and_a_page() -> None:
    for kind in set(registry.JOB_KINDS.values()):
        module = type(kind).__module__.rpartition(".")[2]
        assert len(list((ROOT / "tests" / "data" / module).iterdir())) >= 3, module
        assert any((ROOT / "tests" / "data" / f"{module}_native").iterdir()), module
        assert (ROOT / "docs" / "kinds" / f"{module.replace('_', '-')}.md").read_text().startswith("# "), module


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
