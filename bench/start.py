"""`python -m bench start`: the time of commands from their start to their end, and of the server until it is ready.

Each is measured beside `python -c pass`, in turn, because the time of a start depends on the other work of the machine.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed
from bench.measuring.gateway import gateway, new_database
from bench.measuring.report import table

_COMMANDS: Final = {
    "python -c pass": ("-c", "pass"),
    "jobgate --help": ("-m", "jobgate", "--help"),
    "jobgate submit --help": ("-m", "jobgate", "submit", "--help"),
    "jobgate serve --help": ("-m", "jobgate", "serve", "--help"),
}
_HEAD: Final = ("start", "median s", "least s", "CPU s", "ratio to python", "goal s")
_GOALS: Final = {"jobgate --help": "0.3", "jobgate serve, until ready": "1"}


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


async def _command(arguments: Sequence[str]) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait():
        raise MeasurementFailed(f"python {' '.join(arguments)} ended with status {process.returncode}")


async def _measure(start: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Return the seconds until `start` returns, and the CPU time of the processes that have ended since."""
    began, used = time.perf_counter(), _children()
    await start()
    return time.perf_counter() - began, _children() - used


async def run(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            url = await new_database(postgres, "start")

            async def serve() -> tuple[float, float]:
                began, used = time.perf_counter(), _children()
                async with gateway(url, folder, postgres, role="api"):
                    ready = time.perf_counter() - began
                return ready, _children() - used

            found: dict[str, list[tuple[float, float]]] = {name: [] for name in (*_COMMANDS, *_GOALS)}
            for _ in range(rounds):
                for name, arguments in _COMMANDS.items():
                    found[name].append(await _measure(lambda arguments=arguments: _command(arguments)))  # type: ignore[misc]
                found["jobgate serve, until ready"].append(await serve())
    bare = median(seconds for seconds, _ in found["python -c pass"])
    rows = []
    for name, runs in found.items():
        seconds = [one for one, _ in runs]
        cpu = median(one for _, one in runs)
        figures = (f"{median(seconds):.2f}", f"{min(seconds):.2f}", f"{cpu:.2f}", f"{median(seconds) / bare:.0f}")
        rows.append((name, *figures, _GOALS.get(name, "")))
    print("\n".join(table(_HEAD, rows)))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="starts of each (10)")
    asyncio.run(run(parser.parse_args(arguments).rounds))
