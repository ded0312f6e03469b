"""`make test-openapi`: Schemathesis sends valid and invalid requests to a gateway, and checks the answers.

    --quick          a few requests for each operation, as in CI
    anything else    arguments of pytest

Schemathesis derives the requests from the OpenAPI document, and compares the answers with it. It is installed into
build/schemathesis, from requirements/schemathesis.txt. If its packages cannot be fetched, the program prints the error,
and its exit status is 0.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "schemathesis.txt"
DIRECTORY = ROOT / "build" / "schemathesis"
PROGRAM = "JOBGATE_TEST_SCHEMATHESIS"  # for tests/openapi
OPTIONS = "JOBGATE_TEST_SCHEMATHESIS_OPTIONS"  # the same
# About 240 requests instead of thousands: without the coverage phase, and fewer examples for each operation.
QUICK = "--phases fuzzing --max-examples 3"
INSTALL_SECONDS = 1800.0  # generous: a busy machine


def install() -> str | None:
    """Install Schemathesis, unless the packages of the lock file are installed. Return the error of pip if it fails."""
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
    parser = argparse.ArgumentParser(prog="make test-openapi", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="send a few requests for each operation")
    given, arguments = parser.parse_known_args()
    error = install()
    if error is not None:
        differs = "do not match the hashes" in error
        print(f"test-openapi: {'failed' if differs else 'skipped'}, Schemathesis cannot be installed:\n{error[-2000:]}")
        return int(differs)
    options = {OPTIONS: QUICK} if given.quick else {}
    environment = os.environ | {PROGRAM: str(DIRECTORY / "bin" / "schemathesis")} | options
    command = [sys.executable, "-m", "pytest", "-m", "slow", "tests/openapi", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
