"""`make test-s3`, `test-gs` and `test-az`: the tests of the log store, of whole logs and of exports in a bucket.

    s3, gs     the server of moto, from requirements/moto.txt, in build/moto. The XML API that gs:// uses is like S3's
    az         Azurite, from tools/azurite/package-lock.json, in build/azurite, run by the Node of the dashboard

If the packages cannot be fetched, the program prints the error, and its exit status is 0. The first argument is the
scheme, and the others are those of pytest.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from tests.log_store.servers import SCHEME, SERVER
from tools import apart, dashboard

FROZEN = "tests/crash/test_whole_logs.py::test_jobs_go_on_while_the_store_is_frozen"
TESTS = ("tests/log_store", "tests/exports/test_buckets.py", FROZEN)
LOCKED: Final = apart.ROOT / "tools" / "azurite"


def _moto() -> Sequence[str]:
    apart.install("moto")
    return [str(apart.directory("moto") / "bin" / "moto_server")]


def _azurite() -> Sequence[str]:
    target = apart.directory("azurite")
    target.mkdir(parents=True, exist_ok=True)
    for file in LOCKED.iterdir():
        shutil.copy2(file, target)  # with its time, which decides whether the packages are installed again
    try:
        dashboard.install(target)
        node = dashboard.node_directory() / "bin" / "node"
    except dashboard.NotInstallableError as error:
        print(f"skipped: azurite cannot be installed: {error}")
        sys.exit(0)
    return [str(node), str(target / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js")]


SERVERS: Final = {"s3": _moto, "gs": _moto, "az": _azurite}


def main(arguments: Sequence[str]) -> int:
    scheme, *others = arguments
    environment = os.environ | {SCHEME: scheme, SERVER: shlex.join(SERVERS[scheme]())}
    command = [sys.executable, "-m", "pytest", *TESTS, *others]
    return subprocess.run(command, cwd=apart.ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
