"""Runs the command `jobgate` in processes that are forked from one that has imported it.

A start takes milliseconds instead of seconds, which tests with dozens of starts need.
"""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A command that runs."""

    arguments: Sequence[str]
    process: ForkServerProcess
    output: Path
    errors: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ended(self) -> "subprocess.CompletedProcess[str]":
        """Wait for its end."""
        self.process.join(LONGEST)
        status = self.process.exitcode
        if status is None:
            raise AssertionError(f"{self.arguments} has not ended within {LONGEST:g} s: {self.errors.read_text()}")
        return subprocess.CompletedProcess(self.arguments, status, self.output.read_text(), self.errors.read_text())


@contextmanager
def started(*arguments: str, home: Path, **environment: str) -> Iterator[Started]:
    """Start the command without the configuration of this process. Its errors are text. It ends with the block."""
    keep = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
    given = keep | {"HOME": str(home), "COLUMNS": "200", "JOBGATE_LOG_FORMAT": "text"} | environment
    with TemporaryDirectory() as directory:
        output, errors = Path(directory) / "stdout", Path(directory) / "stderr"
        process = forks.Process(target=_run, args=(arguments, given, output, errors))
        process.start()
        try:
            yield Started(arguments=arguments, process=process, output=output, errors=errors)
        finally:
            process.kill()
            process.join()
            process.close()


def jobgate(*arguments: str, home: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end without the configuration of this process. Its errors are text."""
    with started(*arguments, home=home, **environment) as command:
        return command.ended()


def _run(arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path) -> None:
    from jobgate.__main__ import main

    become_command(environment, output, errors)
    sys.argv = ["jobgate", *arguments]
    main()
