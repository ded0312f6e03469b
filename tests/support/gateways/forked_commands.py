"""Runs the command `jobgate` in processes that are forked from one that has imported it.

A start takes milliseconds instead of seconds, which tests with dozens of starts need.
"""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LONGEST = 240.0  # seconds; the machine may be overloaded

# Forking the test process itself would copy its threads and event loop in an undefined state.
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(
    [
        "__main__",
        "app.cli",
        "app.running.bootstrap",
        "app.running.dev",
        "app.running.supervised",
        "tests.support.gateways.preload",
    ]
)


def become_command(environment: Mapping[str, str], output: Path, errors: Path) -> None:
    """Give a forked process the environment and the files of its output. It ends with the fork server.

    A killed test run thus leaves no process behind.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for path, stream in ((output, sys.stdout), (errors, sys.stderr)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, stream.fileno())
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)


def jobgate(*arguments: str, home: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end without the configuration of this process. Its errors are text."""
    keep = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
    given = keep | {"HOME": str(home), "COLUMNS": "200", "JOBGATE_LOG_FORMAT": "text"} | environment
    with TemporaryDirectory() as directory:
        output, errors = Path(directory) / "stdout", Path(directory) / "stderr"
        process = forks.Process(target=_run, args=(arguments, given, output, errors))
        process.start()
        process.join(LONGEST)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
            raise AssertionError(f"{arguments} has not ended within {LONGEST:g} s: {errors.read_text()}")
        process.close()
        return subprocess.CompletedProcess(arguments, status, output.read_text(), errors.read_text())


def _run(arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path) -> None:
    from jobgate.__main__ import main

    become_command(environment, output, errors)
    sys.argv = ["jobgate", *arguments]
    main()
