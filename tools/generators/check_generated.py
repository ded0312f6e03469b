"""Check that generated files are current and that named files exist (`make check`); print one line per failure."""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from app.api.document import openapi
from app.cli import app as commands
from app.db.postgres import migrations
from app.embedded_postgres.server import EmbeddedPostgres
from app.running.application import create_app
from jobgate.cli.command import app as client_commands
from tools.generators import client_types, grafana_dashboard, synchronous_client
from tools.lock import GROUPS, Projects, load_projects, requirements

ROOT = Path(__file__).parents[2]
DEPENDENCY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==\S+", re.MULTILINE)
INDEX = re.compile(r"^\s*(?:-i|--(?:extra-)?index-url|--find-links|-f|--trusted-host)\b|https?://", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
CODE = re.compile(r"^```sh.*?$(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:^|[;&|]\s*)make ([a-z-]+)", re.MULTILINE)
JOBGATE = re.compile(r"(?:^|[;&|]\s*)jobgate (?!is ready)([a-z]+)(?: ([a-z]+))?", re.MULTILINE)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def check_openapi() -> Iterator[str]:
    if read("openapi/openapi.json") != openapi.text(create_app()):
        yield "openapi/openapi.json is not what `jobgate openapi` prints: run `make openapi`."


def check_client() -> Iterator[str]:
    """Check the generated modules of the client: its types, and the synchronous modules."""
    for path, text in (*client_types.generate_files(), *synchronous_client.generate_files()):
        if path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)} is not what its generator writes: run `make openapi`."


def check_grafana() -> Iterator[str]:
    if grafana_dashboard.TARGET.read_text(encoding="utf-8") != grafana_dashboard.text():
        yield "deploy/monitoring/grafana-dashboard.json is not what its generator writes: run `make grafana`."


def check_schema() -> Iterator[str]:
    """Check that the migrations produce the tables of app.models."""
    for difference in asyncio.run(_drift()):
        yield f"Migrations and app.models differ: {difference}."


async def _drift() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="jobgate-check-") as directory:
        async with EmbeddedPostgres(Path(directory) / "postgres", settings={"fsync": "off"}) as server:
            await asyncio.to_thread(migrations.migrate, server.url)
            return await asyncio.to_thread(migrations.drift, server.url)


def check_locks() -> Iterator[str]:
    projects = load_projects()
    for lock in GROUPS:
        if not (ROOT / "requirements" / lock).exists():
            yield f"requirements/{lock} is missing: run `make lock`."
            continue
        text = read(f"requirements/{lock}")
        if found := INDEX.search(text):
            yield f"requirements/{lock} names an index: {found.group().strip()}."
        locked = {_plain(name) for name in DEPENDENCY.findall(text)}
        for name in sorted(_declared(lock, projects) - locked):
            yield f"requirements/{lock} lacks {name}, which a pyproject.toml names: run `make lock`."
        for line in _without_hash(text):
            yield f"requirements/{lock} has no hash for {line}: run `make lock`."


def _declared(lock: str, projects: Projects) -> set[str]:
    return {
        _plain(re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]) for requirement in requirements(lock, projects)
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _without_hash(text: str) -> Iterator[str]:
    for requirement in re.split(r"\n(?=\S)", text):
        if DEPENDENCY.match(requirement) and "--hash=" not in requirement:
            yield requirement.split()[0]


def tracked(pattern: str) -> list[Path]:
    """Return the files that git tracks, or all files without git or a repository."""
    command = ["git", "ls-files", "-z", pattern]
    git = shutil.which("git")
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False) if git else None
    if ran is None or ran.returncode:
        return [path for path in ROOT.rglob(pattern) if ".venv" not in path.parts]
    return [ROOT / name for name in ran.stdout.split("\0") if name and (ROOT / name).exists()]


def check_links() -> Iterator[str]:
    for page in tracked("*.md"):
        # Code has no links, but a call of a generic function in Go looks like one.
        for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)} links to {target}, which does not exist."


def check_readme_commands() -> Iterator[str]:
    """Check that the commands `make …` and `jobgate …` of the README exist."""
    text = "\n".join(block or inline for block, inline in CODE.findall(read("README.md")))
    targets = set(TARGET.findall(read("Makefile")))
    for target in sorted(set(MAKE.findall(text)) - targets):
        yield f"README.md says `make {target}`, and the Makefile has no such target."
    server: Any = get_command(commands)
    client: Any = get_command(client_commands)
    known = {**client.commands, **server.commands}
    for name, sub in sorted(set(JOBGATE.findall(text))):
        if name not in known:
            yield f"README.md says `jobgate {name}`, and there is no such command."
        elif sub and hasattr(known[name], "commands") and sub not in known[name].commands:
            yield f"README.md says `jobgate {name} {sub}`, and there is no such command."


CHECKS = (check_openapi, check_client, check_grafana, check_locks, check_links, check_readme_commands, check_schema)


def main() -> int:
    failures = [failure for check in CHECKS for failure in check()]
    for failure in failures:
        print(failure, file=sys.stderr)
    if not failures:
        print("generated files are current")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
