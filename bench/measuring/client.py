"""The load client (load.c), compiled once for each run and started once for each measurement."""

import asyncio
import json
import shutil
import subprocess
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.processes import cpu_seconds

COMPILERS = ("cc", "gcc", "clang")  # in the order of preference
_LATE_SECONDS = 60.0  # that a paced run may take longer than its rate says
GRACE = 25.0  # seconds beside the measurement: connecting, and a timeout of 10 s for an answer


class NoCompiler(Exception):  # noqa: N818 - a message for whoever runs this
    """No C compiler is available."""


class MeasurementFailed(Exception):  # noqa: N818 - likewise
    """A measurement failed. The message contains the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server on loopback. `pids` are the roots of the process trees whose CPU time counts for the server."""

    name: str
    port: int
    tls: bool
    token: str
    pids: Mapping[str, int]

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """The bytes of one HTTP/1.1 request."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Authorization: Bearer {self.token}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            named = {name.lower() for name in headers or ()}
            lines += [] if "content-type" in named else ["Content-Type: application/json"]
            lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measurement. CPU is in cores. Latencies are in seconds, of whole operations."""

    rate: float
    p50: float
    p99: float
    failures: int
    error: str
    client_cpu: float
    server_cpu: Mapping[str, float]
    next_number: int

    @property
    def cpu_per_operation(self) -> float:
        """CPU seconds of all server processes for one operation."""
        return sum(self.server_cpu.values()) / self.rate if self.rate else float("nan")


def compile_client(source: Path, directory: Path) -> Path:
    """Compile a load client into `directory`, and return the program.

    Raises:
        NoCompiler: none of the usual ones is installed.
    """
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise NoCompiler("the load client is written in C: install a compiler (Debian: apt-get install gcc libc6-dev)")
    program = directory / source.stem
    command = [compiler, "-O2", "-o", str(program), str(source), "-pthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoCompiler(f"{compiler} cannot compile the load client:\n{done.stderr.strip()[-500:]}")
    return program


def write_requests(file: Path, requests: Sequence[bytes]) -> None:
    """Write a file of requests, as the load clients read it."""
    file.write_bytes(b"".join(b"%d\n%b" % (len(request), request) for request in requests))


class LoadClient:
    def __init__(self, program: Path) -> None:
        self._program = program
        self._number = 0

    @classmethod
    def compile(cls, directory: Path) -> "LoadClient":
        """Compile the client into `directory`.

        Raises:
            NoCompiler: none of the usual ones is installed.
        """
        return cls(compile_client(Path(__file__).with_name("load.c"), directory))

    async def run(
        self,
        target: Target,
        requests: Sequence[bytes],
        *,
        clients: int,
        seconds: float,
        expect: int,
        group: int = 1,
        warmup: float = 0.5,
    ) -> Measured:
        """Send `requests` in a cycle. An operation is `group` requests, and counts if all answers are `expect`."""
        shape = (clients, warmup, seconds, expect, group)
        return await self._measure(target, requests, shape)

    async def paced(
        self, target: Target, requests: Sequence[bytes], *, clients: int, rate: float, expect: int
    ) -> tuple[Measured, list[tuple[float, float]]]:
        """Send each request once, `rate` of them per second.

        Return when each began and was answered, on the clock of `time.monotonic`.

        Raises:
            MeasurementFailed: an answer was another one, or not all requests could be sent.
        """
        file = self._program.with_name("times")
        seconds = len(requests) / rate + _LATE_SECONDS
        measured = await self._measure(target, requests, (clients, 0, seconds, expect, 1), str(rate), str(file))
        times = array("d", file.read_bytes())
        if measured.failures or not all(times):
            raise MeasurementFailed(f"{target.name}: not every request was answered {expect}: {measured.error}")
        return measured, list(zip(times[::2], times[1::2], strict=True))

    async def _measure(
        self, target: Target, requests: Sequence[bytes], shape: tuple[float, ...], *pace: str
    ) -> Measured:
        """Run the client. `shape` is the number of clients, warm-up, seconds, the expected status and the group."""
        file = self._program.with_name("requests")
        write_requests(file, requests)
        _, warmup, seconds, *_ = shape
        arguments = (target.port, "tls" if target.tls else "plain", *shape, self._number, file, *pace)
        process = await asyncio.create_subprocess_exec(
            *(str(self._program), *map(str, arguments)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(warmup + seconds + GRACE):
                return await self._listen(process, target)
        except TimeoutError as error:
            raise MeasurementFailed(f"{target.name}: the load client did not end in time") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _listen(self, process: asyncio.subprocess.Process, target: Target) -> Measured:
        assert process.stdout is not None
        assert process.stderr is not None
        began: dict[str, float] = {}
        used: dict[str, float] = {}
        last = b""
        while line := await process.stdout.readline():
            last = line
            # The client prints these lines around the measurement, so its warm-up does not count.
            if line == b"begin\n":
                began = {name: cpu_seconds(pid) for name, pid in target.pids.items()}
            elif line == b"end\n":
                used = {name: cpu_seconds(pid) - began[name] for name, pid in target.pids.items()}
        if await process.wait() != 0:
            raise MeasurementFailed(f"{target.name}: {(await process.stderr.read()).decode().strip()}")
        told = json.loads(last)
        self._number = told["next"]
        seconds = told["seconds"]
        return Measured(
            rate=told["count"] / seconds,
            p50=told["p50"],
            p99=told["p99"],
            failures=told["failures"] + told["broken"],
            error=told["error"],
            client_cpu=told["cpu"] / seconds,
            server_cpu={name: cpu / seconds for name, cpu in used.items()},
            next_number=told["next"],
        )
