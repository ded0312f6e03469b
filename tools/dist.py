"""`make dist`: builds what is published of the client and of the server, into the directory dist.

Each wheel is built from the source distribution, which proves that the source distribution is complete.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECTS = ("jobgate", ".")  # the client, and the server
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build(hook: str, source: Path, target: Path) -> Path:
    """Call a hook of the build backend (PEP 517) in the source directory, and return the path of the built file."""
    command = [sys.executable, "-W", "ignore", "-c", BUILD, hook, str(target)]
    ran = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, text=True, check=True)
    return target / ran.stdout.splitlines()[-1]


def build_distributions(target: Path, project: Path) -> tuple[Path, Path]:
    """Build the source distribution of a project, and the wheel from it. Return their paths."""
    archive = build("build_sdist", project, target)
    with tempfile.TemporaryDirectory() as scratch:
        # Not `tarfile`, whose extraction filters Python has only since 3.11.4. The archive is our own.
        shutil.unpack_archive(archive, scratch)
        wheel = build("build_wheel", Path(scratch, archive.name.removesuffix(".tar.gz")), target)
    return archive, wheel


def main() -> int:
    target = ROOT / "dist"
    target.mkdir(exist_ok=True)
    for project in PROJECTS:
        for path in build_distributions(target, ROOT / project):
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
