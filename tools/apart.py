"""Installs the packages of a lock file into a virtual environment of their own, apart from those of jobgate."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALL_SECONDS = 1800.0  # generous: a busy machine


def directory(name: str) -> Path:
    return ROOT / "build" / name


def install(name: str, *, with_project: bool = False) -> None:
    """Install requirements/<name>.txt into build/<name>, unless that has been done. Leave the program if it fails.

    `with_project` lets the environment import the packages of jobgate too, after its own. The lock file must then be
    compiled under the constraints of dev.txt. Where the packages cannot be fetched, the exit status is 0; where they
    do not match their hashes, it is 1.
    """
    lock, target = ROOT / "requirements" / f"{name}.txt", directory(name)
    stamp, content = target / ".installed", _content(lock)
    if stamp.exists() and stamp.read_text() == content:
        return
    venv.create(target, clear=True, with_pip=True)
    command = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ran = subprocess.run(
        [*command, "--require-hashes", "-r", str(lock)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode:
        differs = "do not match the hashes" in ran.stderr
        print(f"{'failed' if differs else 'skipped'}: {name} cannot be installed:\n{ran.stderr[-2000:]}")
        sys.exit(int(differs))
    if with_project:
        packages = sysconfig.get_path("purelib", vars={"base": str(target)})
        (Path(packages) / "project.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    stamp.write_text(content)


def _content(lock: Path) -> str:
    """Return what an installation depends on: the lock file, the interpreter and where the packages of jobgate are."""
    return f"{sys.version}\n{sysconfig.get_path('purelib')}\n{lock.read_text()}"
