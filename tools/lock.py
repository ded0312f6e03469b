"""Pins the dependencies of pyproject.toml, with hashes and without any index address."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCKS = ROOT / "requirements"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"),
)


def compile_lock(name: str, *arguments: str) -> None:
    subprocess.run([*COMPILE, *arguments, "--output-file", str(LOCKS / name)], cwd=ROOT, check=True)


def main() -> int:
    compile_lock("runtime.txt", "pyproject.toml")
    compile_lock("embedded.txt", "pyproject.toml", "--extra", "embedded", "--constraint", "requirements/runtime.txt")
    with tempfile.NamedTemporaryFile("w", suffix=".in") as build:
        # The build backend is pinned too, since the project is installed without build isolation.
        build.write(
            next(
                line.split('"')[1]
                for line in (ROOT / "pyproject.toml").read_text().splitlines()
                if "requires = [" in line
            )
        )
        build.flush()
        compile_lock(
            "dev.txt",
            *("pyproject.toml", build.name, "--extra", "embedded", "--extra", "juicefs", "--group", "dev"),
            *("--constraint", "requirements/embedded.txt"),
        )
    compile_lock("bench.txt", "--group", "bench", "--constraint", "requirements/dev.txt")
    compile_lock("sdks.txt", "--group", "sdks")  # without constraints, since it is not installed beside the others
    return 0


if __name__ == "__main__":
    sys.exit(main())
