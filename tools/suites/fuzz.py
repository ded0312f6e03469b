"""`make fuzz`: runs the property tests with other examples than `make test`.

    make fuzz                                       rounds over all property tests for ten minutes
    make fuzz ARGS="--seconds=60 tests/domain"      for a minute, the property tests of one directory
    make fuzz ARGS="--seed=7 tests/domain/test_x.py"    only the round of that seed, to repeat a failure

Properties that compare jobgate with an API server need a control plane: that of JOBGATE_TEST_KUBECONFIG, or a new one
as in tools/suites/test_cluster.py. Without one, they are skipped.

Each round draws a new seed and prints it. The first failure ends the run with status 1 and prints the command that
repeats it. The time limit stops the current round; tests that have passed until then count as passed.
"""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.suites.test_cluster import KUBECONFIG, ROOT, NotRunnable, control_plane

STOPPING_SECONDS = 30.0
COMPARED = Path("tests/conformance/test_pod_templates.py")  # the properties that need a control plane
NOTHING_RAN = 5  # pytest's status when no property test was selected


def main(argv: Sequence[str]) -> int:
    """Run rounds until the time limit or the first failure."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Check the property tests with random examples.")
    parser.add_argument("--seconds", type=float, default=600.0, help="time limit of all rounds together")
    parser.add_argument("--seed", type=int, help="run one round with this seed, without a time limit")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1), help="processes that run tests")
    parser.add_argument("paths", nargs="*", default=["tests"], help="as for pytest")
    given = parser.parse_args(argv)
    with _cluster(given.paths):
        return _run(given)


@contextmanager
def _cluster(paths: Sequence[str]) -> Iterator[None]:
    """Let the rounds use a control plane during the block, if they need one and one is available."""
    with tempfile.TemporaryDirectory(prefix="jobgate-fuzz-") as directory:
        if not any((ROOT / COMPARED).is_relative_to(Path(path).absolute()) for path in paths):
            yield
            return
        try:
            with control_plane(Path(directory)) as found:
                if found is None:
                    print(f"skipped {COMPARED}: there is no control plane; {KUBECONFIG} names one")
                else:
                    os.environ[KUBECONFIG] = str(found.admin)
                yield
        except NotRunnable as error:
            sys.exit(f"make fuzz: {error}")


def _run(given: argparse.Namespace) -> int:
    if given.seed is not None:
        return _verdict(given.seed, given.paths, _round(given.seed, given.jobs, given.paths, None))
    deadline = time.monotonic() + given.seconds
    passed = 0
    while (left := deadline - time.monotonic()) > 0:
        seed = secrets.randbelow(2**32)
        status = _round(seed, given.jobs, given.paths, left)
        if status is None:
            print(f"the time limit stopped the round of seed {seed}")
            break
        if status:
            return _verdict(seed, given.paths, status)
        passed += 1
    print(f"{passed} whole rounds passed in {given.seconds:g} s")
    return 0


def _round(seed: int, jobs: str, paths: Sequence[str], seconds: float | None) -> int | None:
    """Run the property tests once. Return the exit status of pytest, or None if the time limit stopped it."""
    print(f"seed {seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "hypothesis", "-n", jobs, "--dist", "worksteal"]
    command += ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", *paths]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _stop(process)  # also if this program is interrupted: pytest does not get its signals


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(STOPPING_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def _verdict(seed: int, paths: Sequence[str], status: int | None) -> int:
    if status == NOTHING_RAN:
        print(f"there are no property tests under {' '.join(paths)}")
    elif status:
        print(f'to repeat: make fuzz ARGS="--seed={seed} {" ".join(paths)}"')
    return status or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
