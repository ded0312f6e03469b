"""`make test-s3`: the tests of the log store, of whole logs and of exports on an S3-compatible server, that of moto.

It is installed into build/moto, from requirements/moto.txt. If its packages cannot be fetched, the program prints the
error, and its exit status is 0. Arguments are those of pytest.
"""

import os
import subprocess
import sys

from tools import apart

FROZEN = "tests/crash/test_whole_logs.py::test_jobs_go_on_while_the_store_is_frozen"
TESTS = ("tests/log_store", "tests/exports/test_s3.py", FROZEN)
SERVER = "JOBGATE_TEST_MOTO"  # for tests/log_store


def main() -> int:
    apart.install("moto")
    environment = os.environ | {SERVER: str(apart.directory("moto") / "bin" / "moto_server")}
    command = [sys.executable, "-m", "pytest", *TESTS, *sys.argv[1:]]
    return subprocess.run(command, cwd=apart.ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
