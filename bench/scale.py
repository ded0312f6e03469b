"""`python -m bench scale`: all goals of docs/benchmarks.md except neighbours and soak, in 20 minutes on idle cores."""

import argparse
import asyncio
import shlex
import sys
import time
from collections.abc import Sequence
from typing import Final

from bench.measuring.client import MeasurementFailed

_ROWS: Final = {
    "submit, poll and lag beside kube-apiserver": "--deadline 1500 --pods 50000 --rates 150 500",
    "a submission on one worker": "submit",
    "a poll on one worker": "poll",
    "10 000 streams on one process": "follow --streams 10000 --jobs 10000",
    "a job of 1 000 replicas": "large --pairs 2",
    "100 jobs of 20 replicas on a node": "large --jobs 100 --replicas 20 --node",
    "1 000 000 stored jobs": "stored",
    "recovery beside 50 000 pods": "recovery",
    "start": "start",
}


async def run() -> None:
    for title, command in _ROWS.items():
        began = time.monotonic()
        print(f"\n# {title}: python -m bench {command}\n", flush=True)
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench", *shlex.split(command))
        if await process.wait():
            raise MeasurementFailed(f"python -m bench {command} ended with status {process.returncode}")
        print(f"\n{time.monotonic() - began:.0f} s", flush=True)


def main(arguments: Sequence[str]) -> None:
    argparse.ArgumentParser(prog="python -m bench scale", description=__doc__).parse_args(arguments)
    asyncio.run(run())
