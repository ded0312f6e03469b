"""`python -m bench verify`: what `jobgate verify` costs on a database with a million jobs, and what requests notice.

The ended jobs of `python -m bench keeping` are verified once alone. Then polls and submissions with a constant rate are
measured alone and beside the command, in short rounds that alternate: outside its rounds, it is stopped by a signal.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.keeping import add_options, installation, require_disk, store
from bench.keeping.beside import measure, works
from bench.measuring.client import MeasurementFailed
from bench.measuring.processes import cpu_seconds
from bench.measuring.report import table
from bench.memory import peak_mib

_ARGUMENTS: Final = ("-m", "app.cli", "verify", "--database-only", "--pause", "0")
_SESSION: Final = "application_name = 'jobgate verify' AND datname = current_database()"
_BACKEND: Final = f"SELECT pid FROM pg_stat_activity WHERE {_SESSION}"
_OLDEST: Final = f"SELECT extract(epoch FROM clock_timestamp() - xact_start) FROM pg_stat_activity WHERE {_SESSION}"
_HEAD: Final = ("jobs", "seconds", "CPU s of verify", "of PostgreSQL", "longest transaction s", "peak MiB of verify")
_LOOK_SECONDS: Final = 0.1


@dataclass(slots=True, kw_only=True)
class Run:
    """What a run of the command has taken.

    `postgres` is the CPU time of its session in PostgreSQL, and `longest` the seconds of its longest transaction.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    postgres: float = 0.0
    longest: float = 0.0
    peak_mib: float = 0.0
    output: str = ""


def start(url: str, output: Any) -> subprocess.Popen[bytes]:
    """Start the command."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBGATE_")}
    environment["JOBGATE_DATABASE_URL"] = url
    return subprocess.Popen((sys.executable, *_ARGUMENTS), env=environment, stdout=output)


async def verify(url: str) -> Run:
    """Run the command to its end."""
    run, began = Run(), time.monotonic()
    watching: Any = await asyncpg.connect(url, timeout=60)
    with tempfile.TemporaryFile() as output:
        process = start(url, output)
        ended = asyncio.get_running_loop().run_in_executor(None, os.wait4, process.pid, 0)
        while not ended.done():
            with suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):  # it ends meanwhile
                run.peak_mib = peak_mib(process.pid)
            if (backend := await watching.fetchval(_BACKEND)) is not None:
                run.postgres = max(run.postgres, cpu_seconds(backend))
                run.longest = max(run.longest, await watching.fetchval(_OLDEST) or 0.0)
            await asyncio.wait((ended,), timeout=_LOOK_SECONDS)
        _, status, usage = ended.result()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        run.output = output.read().decode()
    await watching.close()
    run.seconds = time.monotonic() - began
    run.cpu = usage.ru_utime + usage.ru_stime
    if process.returncode not in {0, 1}:
        raise MeasurementFailed(f"jobgate verify has ended with the status {process.returncode}")
    return run


class Verification:
    """The command beside requests. It is started again when it has ended."""

    modes = ("verify",)

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[bytes] | None = None

    async def suffices(self) -> bool:
        return True

    @asynccontextmanager
    async def run(self, _: str) -> AsyncIterator[None]:
        """Let the command run beside the block."""
        if self._process is None or self._process.poll() is not None:
            self._process = start(self._url, subprocess.DEVNULL)
        self._process.send_signal(signal.SIGCONT)
        yield
        self._process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        """End the command."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(
        prefix="jobgate-bench-", ignore_cleanup_errors=True, dir=arguments.directory
    ) as directory:
        folder = Path(directory)
        require_disk(folder, arguments.jobs, arguments.disk)
        async with installation(arguments, folder) as here:
            await store(here, arguments, 0)
            alone = await verify(here.url)
            lines = alone.output.splitlines()
            print("\n".join(line for line in lines if not line.endswith(" ok")) or "no check has found a fault")
            figures = (alone.seconds, alone.cpu, alone.postgres, alone.longest, alone.peak_mib)
            print("\n".join(["", *table(_HEAD, [(str(arguments.jobs), *(f"{each:.1f}" for each in figures))]), ""]))
            found, other = await works(here.target, folder, arguments), Verification(here.url)
            last_round = time.monotonic() + arguments.within
            try:
                print("\n".join(await measure(here.target, found, other, arguments, until=last_round)))
            finally:
                other.end()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench verify", description=__doc__)
    add_options(parser, jobs=1_000_000, rounds=10)
    asyncio.run(run(parser.parse_args(arguments)))
