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

from tools import apart

PROGRAM = "JOBGATE_TEST_SCHEMATHESIS"  # for tests/openapi
OPTIONS = "JOBGATE_TEST_SCHEMATHESIS_OPTIONS"  # the same
# About 240 requests instead of thousands: without the coverage phase, and fewer examples for each operation.
QUICK = "--phases fuzzing --max-examples 3"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-openapi", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="send a few requests for each operation")
    given, arguments = parser.parse_known_args()
    apart.install("schemathesis")
    options = {OPTIONS: QUICK} if given.quick else {}
    environment = os.environ | {PROGRAM: str(apart.directory("schemathesis") / "bin" / "schemathesis")} | options
    command = [sys.executable, "-m", "pytest", "-m", "slow", "tests/openapi", *arguments]
    return subprocess.run(command, cwd=apart.ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
