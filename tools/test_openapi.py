"""`make test-openapi`: Schemathesis sends requests that the OpenAPI document allows, and others, to a running gateway.

Arguments are those of pytest. It installs Schemathesis into build/schemathesis, from requirements/schemathesis.txt. If
the packages cannot be fetched, it prints this, and the exit status is 0.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements" / "schemathesis.txt"
DIRECTORY = ROOT / "build" / "schemathesis"
PROGRAM = "JOBGATE_TEST_SCHEMATHESIS"  # for tests/openapi
INSTALL_SECONDS = 1800.0  # generous: a busy machine


def install() -> str | None:
    """Install the packages of the lock file, unless they are installed. Return the error if that fails."""
    stamp = DIRECTORY / ".installed"
    if stamp.exists() and stamp.read_text() == LOCK.read_text():
        return None
    venv.create(DIRECTORY, clear=True, with_pip=True)
    command = [str(DIRECTORY / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ran = subprocess.run(
        [*command, "--require-hashes", "-r", str(LOCK)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode:
        return ran.stderr
    stamp.write_text(LOCK.read_text())
    return None


def main() -> int:
    error = install()
    if error is not None:
        differs = "do not match the hashes" in error
        print(f"test-openapi: {'failed' if differs else 'skipped'}, Schemathesis cannot be installed:\n{error[-2000:]}")
        return int(differs)
    environment = os.environ | {PROGRAM: str(DIRECTORY / "bin" / "schemathesis")}
    command = [sys.executable, "-m", "pytest", "-m", "slow", "tests/openapi", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
