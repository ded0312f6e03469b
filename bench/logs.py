"""`python -m bench logs`: reads of a log of a gigabyte that is kept whole in a folder.

An API process reads ranges, times, last lines and matches of it, one request after the other. The time is that to the
first byte, and the memory is what the peak of the process exceeds its size before the request by.

With `--follow`, it measures a process that follows the containers of so many quiet pods instead.
"""

import argparse
import asyncio
import tempfile
import time
from array import array
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2

from app.db import kept_logs
from app.db.kept_logs import LogWrite
from app.domain.kept_logs.codec import encode_chunk
from app.domain.kept_logs.cutting import LogChunk
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import kept_chunk
from app.domain.kept_logs.repeats import ReadPosition
from app.embedded_postgres.server import EmbeddedPostgres
from app.log_store import open_store
from app.services.logs.times import nanoseconds
from bench import followed_logs
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.report import table
from bench.memory import peak_mib
from tests.support.gateways.gateway import Gateway, jobs_path, running_gateway
from tests.support.kept_logs import BEGIN, finish, store_ended_job

_WIDTH: Final = 100  # bytes of a line
_LINES: Final = 10_000  # of a chunk
_CHUNK: Final = _WIDTH * _LINES
_NAMESPACE: Final = "team"
_GOAL_MS: Final = "200"
_GOAL_MIB: Final = "8"


async def _keep(writer: Gateway, store_url: str, key: LogKey, size: int) -> int:
    """Keep a log of about this size, with one line each millisecond. Return its size."""
    store, begin = open_store(store_url), nanoseconds(BEGIN)
    log = await kept_logs.open_log(writer.db, key, _NAMESPACE, BEGIN)
    for number in range(max(size // _CHUNK, 1)):
        first = number * _LINES
        text = b"".join(
            f"{line:012} loss {line * 7919 % 10007:05} ".encode().ljust(_WIDTH - 1, b"x") + b"\n"
            for line in range(first, first + _LINES)
        )
        times = array("q", range(begin + first * 10**6, begin + (first + _LINES) * 10**6, 10**6))
        chunk = LogChunk(
            start=number * _CHUNK,
            first_line=first,
            text=text,
            lengths=array("I", [_WIDTH] * _LINES),
            times=times,
            position=ReadPosition(),
        )
        name = f"bench/{key.job_uid}/{number}.zst"
        data = encode_chunk(chunk, name)
        await store.put(name, data)
        step = LogWrite(chunks=[kept_chunk(chunk, name, len(data))], position=b"")
        written = await kept_logs.write(writer.db, log, step, BEGIN)
        assert written is not None
        log = written[0]
    await finish(writer.db, log)
    return log.text_bytes


def _reads(size: int, count: int) -> dict[str, list[dict[str, Any]]]:
    """Return the parameters of the requests of each sort."""
    offsets = [size * number // count + 12_345 for number in range(count)]
    at = [BEGIN + timedelta(seconds=offset / _WIDTH / 1000) for offset in offsets]
    needle = [f"^{offset // _WIDTH:012} " for offset in offsets]
    return {
        "range of 256 KiB": [{"offset": offset, "limit": 256 * 1024} for offset in offsets],
        "from a byte to the end": [{"offset": offset} for offset in offsets],
        "last 1 000 lines": [{"tailLines": 1000}] * count,
        "a second of time": [
            {"sinceTime": when.isoformat(), "untilTime": (when + timedelta(seconds=1)).isoformat()} for when in at
        ],
        "match, from its place": [
            {"search": text, "offset": offset // _CHUNK * _CHUNK} for text, offset in zip(needle, offsets, strict=True)
        ],
        "no match in the whole log": [{"search": "nothing of this", "limit": size}],
    }


def _reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def _measure(http: httpx2.AsyncClient, pid: int, path: str, params: dict[str, Any]) -> tuple[float, float, float]:
    """Return the milliseconds to the first byte, those to the last one, and the mebibytes of memory."""
    _reset_peak(pid)
    before, began = peak_mib(pid), time.perf_counter()
    async with http.stream("GET", path, params=params) as answer:
        assert answer.status_code == 200, await answer.aread()
        first = None
        async for _ in answer.aiter_raw():
            first = first or time.perf_counter()
    last = time.perf_counter()
    return ((first or last) - began) * 1000, (last - began) * 1000, peak_mib(pid) - before


async def run(megabytes: int, count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        store_url = f"file://{folder / 'store'}"
        async with EmbeddedPostgres(folder / "postgres") as postgres:
            url = await new_database(postgres, "logs")
            async with running_gateway(url) as writer:
                key = await store_ended_job(writer, "long")
                began = time.perf_counter()
                size = await _keep(writer, store_url, key, megabytes * 10**6)
            print(f"{size / 10**6:.0f} MB in {size // _CHUNK} chunks, written in {time.perf_counter() - began:.0f} s")
            settings = {"JOBGATE_LOG_STORE": store_url}
            token = await new_token(url)
            async with (
                gateway(url, folder, postgres, role="api", token=token, settings=settings) as target,
                httpx2.AsyncClient(
                    base_url=f"http://127.0.0.1:{target.port}",
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=600,
                ) as http,
            ):
                path, pid = jobs_path(_NAMESPACE, "long", "logs"), target.pids["jobgate"]
                await _measure(http, pid, path, {"tailLines": 1})  # loads what every request needs
                rows = []
                for name, requests in _reads(size, count).items():
                    found = [await _measure(http, pid, path, params) for params in requests]
                    first, last, memory = zip(*found, strict=True)
                    figures = (f"{median(first):.0f}", f"{max(first):.0f}", f"{median(last):.0f}", f"{max(memory):.1f}")
                    rows.append((name, *figures, _GOAL_MS if "no match" not in name else "", _GOAL_MIB))
                head = ("read", "first byte ms", "at most", "last byte ms", "MiB at most", "goal ms", "goal MiB")
                print("\n".join(table(head, rows)))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench logs", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the log (1000)")
    parser.add_argument("--reads", type=int, default=10, help="requests of each sort (10)")
    parser.add_argument("--follow", type=int, nargs="+", metavar="PODS", help="measure followers of so many quiet pods")
    parser.add_argument("--at-once", type=int, default=1000, help="JOBGATE_MAX_FOLLOWED_LOGS of the followers (1000)")
    given = parser.parse_args(arguments)
    if given.follow:
        asyncio.run(followed_logs.run(given.follow, given.at_once))
    else:
        asyncio.run(run(given.megabytes, given.reads))
