"""`make dist`: builds the source distribution, and the wheel from it, into dist.

A wheel that is built from the source distribution depends only on what the client needs (setup.py). One that is built
from a checkout, as by `pip install .`, depends on what the server needs too.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build(hook: str, source: Path, target: Path) -> Path:
    """Run a hook of PEP 517 in the source directory, and return the file that it made."""
    command = [sys.executable, "-W", "ignore", "-c", BUILD, hook, str(target)]
    ran = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, text=True, check=True)
    return target / ran.stdout.splitlines()[-1]


def build_distributions(target: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Build the source distribution and the wheel; return their paths."""
    archive = build("build_sdist", source, target)
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        wheel = build("build_wheel", Path(scratch, archive.name.removesuffix(".tar.gz")), target)
    return archive, wheel


def main() -> int:
    target = ROOT / "dist"
    target.mkdir(exist_ok=True)
    for path in build_distributions(target):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
