"""`python -m bench cache`: compares the runtime server with the bare `juicefs` command, on the same data, alternating.

Each run has a new volume, or a new mount with an empty cache. Both are in memory, so that other users of a disk do not
affect the figures. Requires Linux, root and /dev/fuse.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx2
from typing_extensions import override

from bench.measuring.processes import cpu_seconds
from bench.measuring.report import table
from cacheserver.engine.binary import juicefs_path
from tests.support.cache.cache_server import TOKEN, CacheServer, cache_server
from tests.support.cache.juicefs import Volume, formatted, mounted, needs_fuse
from tests.support.machine.processes import processes_of

MEMORY = Path("/dev/shm")
SHAPES = ("2000x64", "400x1024", "100x8192")  # files and KiB of each
MOUNT_OPTIONS = ("--cache-size", "100000")
# The options of the pods. Those of the support module are for tests that wait for servers that died.
SERVER_OPTIONS = ("--warmup-times=120,600,120,0.5,2,30",)
POLL = 0.01  # seconds; the error of a measured duration
FOLDERS = 50  # files are spread over directories, as in real data sets
LONGEST = 3600.0  # seconds until a run counts as hanging
GOAL = 1.05  # the server may add 5 % to the bare command


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    files: int
    size: int

    @classmethod
    def read(cls, text: str) -> "Shape":
        files, _, size = text.partition("x")
        return cls(files=int(files), size=int(size) * 1024)

    @override
    def __str__(self) -> str:
        return f"{self.files} files of {self.size // 1024} KiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The duration and the CPU seconds of a run, including the command, the server and the mount."""

    seconds: float
    cpu: float


class Side:
    """One implementation of an operation. `runs` are in the order of measurement."""

    def __init__(self, name: str, do: Callable[[Path, Path], Run]) -> None:
        self.name = name
        self.do = do
        self.runs: list[Run] = []


def make_source(top: Path, shape: Shape) -> None:
    filling = os.urandom(max(shape.size, 8))
    for number in range(shape.files):
        folder = top / f"d{number % FOLDERS:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number:06}").write_bytes((b"%08d" % number + filling[8:])[: shape.size])


def hide_something(top: Path) -> None:
    """Add a hidden file to each directory, so that a warm-up lists single files, the slowest case for the server."""
    for folder in top.iterdir():
        (folder / ".hidden").write_text("x")


class Clock:
    """Time and CPU between `begin` and `end`."""

    def __init__(self, point: Path, server: int | None = None) -> None:
        self._trees = [pid for pid, command in processes_of(str(point)).items() if " mount " in command]
        self._trees += [server] if server else []

    def begin(self) -> None:
        self._cpu = self._spent()
        self._started = time.monotonic()

    def end(self) -> Run:
        seconds = time.monotonic() - self._started
        return Run(seconds=seconds, cpu=self._spent() - self._cpu)

    def _spent(self) -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(map(cpu_seconds, self._trees)) + ended.ru_utime + ended.ru_stime


def run_command(point: Path, *command: str | Path) -> Run:
    clock = Clock(point)
    clock.begin()
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LONGEST, check=False)
    done = clock.end()
    if ran.returncode:
        raise RuntimeError(f"{command[0]} ended with {ran.returncode}: {ran.stderr}{ran.stdout}")
    return done


def run_on_server(server: CacheServer, point: Path, kind: str, options: Mapping[str, object]) -> Run:
    """Run an operation on the server, and wait for its result file: polling the server would cost CPU time."""
    headers = {"x-jobgate-token": TOKEN}
    result = server.home / "runtime" / f"{kind}Result" / "bench"
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False) as http:
        _wait_until_settled(http)
        clock = Clock(point, server.pid)
        clock.begin()
        (http.post(f"/upload/{kind}Options", json=options, headers={"filename": "bench"})).raise_for_status()
        _write_results(result)
        told = (http.get(f"/{kind}Result/bench")).json()
        done = clock.end()
    if told["status"] != "success":
        raise RuntimeError(f"{kind} failed: {told['message']}")
    return done


def _wait_until_settled(http: httpx2.Client) -> None:
    """Wait until the server has measured its cache for the first time."""
    while (http.get("/cacheStatus/cacheInfo.json")).status_code != httpx2.codes.OK:
        time.sleep(POLL)


def _write_results(result: Path) -> None:
    deadline = time.monotonic() + LONGEST
    while not result.exists() or b"running" in result.read_bytes():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no end of {result.parent.name} within {LONGEST:g} s")
        time.sleep(POLL)


class SyncBench:
    """A sync into an empty volume."""

    def __init__(self, home: Path, source: Path) -> None:
        self._home = home
        self._source = f"file://{source}/"

    @contextmanager
    def open_entry(self) -> Iterator[tuple[Path, Path]]:
        home = Path(tempfile.mkdtemp(dir=self._home))
        with mounted(formatted(home), "only", *MOUNT_OPTIONS) as (point, cache):
            yield point, cache
        shutil.rmtree(home)

    def sides(self) -> list[Side]:
        return [
            Side("juicefs sync", self._bare),
            Side("server", self._server),
            Side("cache-runtime sync", self._command),
        ]

    def _bare(self, point: Path, _: Path) -> Run:
        return run_command(point, juicefs_path(), "sync", self._source, f"file://{point}/")

    def _server(self, point: Path, cache: Path) -> Run:
        options = {"source": self._source, "destination": f"file://{point}/"}
        with _server(point, cache) as server:
            return run_on_server(server, point, "sync", options)

    def _command(self, point: Path, _: Path) -> Run:
        ends = (f"--source={self._source}", f"--destination=file://{point}/")
        return run_command(point, *_by_hand("sync"), f"--dataDir={point}", *ends)


class WarmupBench:
    """A warm-up of a full volume, on a mount with an empty cache."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._count = 0

    @contextmanager
    def open_entry(self) -> Iterator[tuple[Path, Path]]:
        self._count += 1
        with mounted(self._volume, f"run{self._count}", *MOUNT_OPTIONS) as (point, cache):
            yield point, cache
        shutil.rmtree(cache)
        point.rmdir()

    def sides(self) -> list[Side]:
        return [
            Side("juicefs warmup", self._bare),
            Side("find, juicefs warmup --file", self._list),
            Side("server", self._server),
            Side("cache-runtime warmup", self._command),
        ]

    def _bare(self, point: Path, _: Path) -> Run:
        return run_command(point, juicefs_path(), "warmup", point)

    def _list(self, point: Path, _: Path) -> Run:
        """List the paths as upstream's server does."""
        script = 'find "$1" -type f -not -path "*/.*" > "$2" && exec "$3" warmup --file="$2"'
        return run_command(point, "sh", "-c", script, "sh", point, point.with_suffix(".list"), juicefs_path())

    def _server(self, point: Path, cache: Path) -> Run:
        with _server(point, cache) as server:
            return run_on_server(server, point, "warmup", {"partitions": 1})

    def _command(self, point: Path, _: Path) -> Run:
        return run_command(point, *_by_hand("warmup"), f"--dataDir={point}", "--index=0", "--partitions=1")


@contextmanager
def _server(point: Path, cache: Path) -> Iterator[CacheServer]:
    arguments = (f"--dataDir={point}", f"--cacheDirs={cache}", *SERVER_OPTIONS)
    with cache_server(point.with_suffix(".server"), *arguments) as server:
        yield server
    shutil.rmtree(point.with_suffix(".server"))


def _by_hand(job: str) -> tuple[str | Path, ...]:
    return (Path(sys.executable).with_name("jobgate"), "cache-runtime", job)


def in_turn(bench: SyncBench | WarmupBench, rounds: int) -> list[Side]:
    """Run each side once in each round. The first side alternates."""
    sides = bench.sides()
    for number in range(rounds):
        turn = number % len(sides)
        for side in sides[turn:] + sides[:turn]:
            with bench.open_entry() as (point, cache):
                side.runs.append(side.do(point, cache))
    return sides


def compare(shape: Shape, home: Path, source: Path, rounds: int, only: Sequence[str]) -> None:
    (home / "full").mkdir(parents=True)
    make_source(source, shape)
    if "sync" in only:
        _tell(f"sync, {shape}", in_turn(SyncBench(home, source), rounds))
    if "warmup" in only:
        volume = formatted(home / "full")
        with mounted(volume, "writer", *MOUNT_OPTIONS) as (point, _):
            run_command(point, juicefs_path(), "sync", f"file://{source}/", f"file://{point}/")
        _tell(f"warm-up, {shape}", in_turn(WarmupBench(volume), rounds))


def _tell(title: str, sides: Sequence[Side]) -> None:
    bare = sides[0].runs
    rows = []
    for side in sides:
        ratios = [run.seconds / other.seconds for run, other in zip(side.runs, bare, strict=True)]
        cpu = [run.cpu / other.cpu for run, other in zip(side.runs, bare, strict=True)]
        added = [run.seconds - other.seconds for run, other in zip(side.runs, bare, strict=True)]
        rows.append(
            (
                side.name,
                f"{median(run.seconds for run in side.runs):.2f}",
                f"{median(ratios):.3f}",
                f"{min(ratios):.2f}-{max(ratios):.2f}",
                f"{median(added):+.2f}",
                f"{median(run.cpu for run in side.runs):.2f}",
                f"{median(cpu):.3f}",
            )
        )
    head = ("", "seconds", "ratio", "spread", "added s", "CPU s", "CPU ratio")
    print(f"\n{title}, {len(bare)} rounds; goal: a ratio of {GOAL:g}\n")
    print("\n".join(table(head, rows)), flush=True)


def memory(home: Path, sources: Path, counts: Sequence[int]) -> None:
    """Print the peak memory of the server by number of files, for sync, warm-up and removal."""
    rows = []
    for count in counts:
        run, source = home / f"memory-{count}", sources / f"memory-{count}"
        run.mkdir()
        make_source(source, Shape(files=count, size=1))
        hide_something(source)
        with mounted(formatted(run), "only", *MOUNT_OPTIONS) as (point, cache), _server(point, cache) as server:
            idle = peak_of(server.pid)
            steps: dict[str, Mapping[str, object]] = {
                "sync": {"source": f"file://{source}/", "destination": f"file://{point}/"},
                "warmup": {"partitions": 1},
                "rmr": {"paths": [f"{point}/d{number:02}" for number in range(min(FOLDERS, count))]},
            }
            row = [str(count), _mib(idle)]
            for kind, options in steps.items():
                done = run_on_server(server, point, kind, options)
                row += [_mib(peak_of(server.pid)), f"{done.seconds:.1f}"]
        rows.append(row)
        shutil.rmtree(run)
        shutil.rmtree(source)
    head = ("files", "idle", "after sync", "s", "after warm-up", "s", "after rmr", "s")
    print("\nPeak resident memory of the server, MiB\n")
    print("\n".join(table(head, rows)), flush=True)


def peak_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench cache", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side, alternating (default 5)")
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="FILESxKIB", help=" ".join(SHAPES))
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 100_000], help="file counts of the memory runs")
    parser.add_argument("--only", choices=("sync", "warmup", "memory"), nargs="+", default=["sync", "warmup", "memory"])
    return parser.parse_args(arguments)


def measure(arguments: argparse.Namespace, volumes: Path, sources: Path) -> None:
    for number, text in enumerate(arguments.shapes if {"sync", "warmup"} & {*arguments.only} else ()):
        home, source = volumes / str(number), sources / str(number)
        compare(Shape.read(text), home, source, arguments.rounds, arguments.only)
        shutil.rmtree(home)
        shutil.rmtree(source)
    if "memory" in arguments.only:
        memory(volumes, sources, arguments.files)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(arguments)
    if needs_fuse.args[0]:
        print(f"bench: the runtime server cannot be measured: {needs_fuse.kwargs['reason']}")
        return
    with (
        tempfile.TemporaryDirectory(
            prefix="jobgate-bench-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None
        ) as home,
        tempfile.TemporaryDirectory(prefix="jobgate-bench-") as sources,  # servers refuse sources in /dev
    ):
        measure(given, Path(home), Path(sources))
