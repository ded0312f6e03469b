"""`make dist`: builds the source distribution and the wheel that are published, into the directory dist.

The published wheel requires only the packages of the client, because setup.py requires those of the server only in a
checkout. Therefore the wheel is built from the source distribution, not from the checkout.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build(hook: str, source: Path, target: Path) -> Path:
    """Call a hook of the build backend (PEP 517) in the source directory, and return the path of the built file."""
    command = [sys.executable, "-W", "ignore", "-c", BUILD, hook, str(target)]
    ran = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, text=True, check=True)
    return target / ran.stdout.splitlines()[-1]


def build_distributions(target: Path, source: Path = ROOT) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it. Return their paths."""
    archive = build("build_sdist", source, target)
    with tempfile.TemporaryDirectory() as scratch:
        # Not `tarfile`, whose extraction filters Python has only since 3.11.4. The archive is our own.
        shutil.unpack_archive(archive, scratch)
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
