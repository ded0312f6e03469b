"""Large sets: `pytest -m slow tests/cacheserver`."""

import os
import tracemalloc
from pathlib import Path

import pytest

from cacheserver.files.threads import Stop
from cacheserver.warmup.file_lists import regular_files, split
from tests.support.cache.cache_server import cache_server
from tests.support.cache.juicefs import formatted, mounted, needs_fuse, needs_juicefs
from tests.support.machine.disks import small_disk

MANY = 100_000
SOME = 5_000
FOLDERS = 100
MEGABYTE = 1024 * 1024


def make_many(top: Path, count: int) -> None:
    for number in range(count):
        folder = top / f"{number % FOLDERS:02}"
        if number < FOLDERS:
            folder.mkdir(parents=True)
        (folder / f"{number:06}").write_bytes(b"%d" % number)


def peak_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_lists_are_made_and_shared_out_in_bounded_memory(tmp_path: Path) -> None:
    make_many(tmp_path / "data", MANY)
    directory = os.open(tmp_path, os.O_RDONLY)
    tracemalloc.start()
    made = split(
        regular_files(tmp_path / "data", tmp_path / "data", Stop()),
        tmp_path / "data",
        directory,
        [0, 1, 2],
        at_random=False,
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    os.close(directory)
    assert sorted(made.counts.values()) == [33_333, 33_333, 33_334]
    assert peak < 4 * MEGABYTE


@needs_juicefs
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_hundred_thousand_files_are_synced_counted_and_removed_in_bounded_memory(tmp_path: Path) -> None:
    """The destination is a plain directory, because a volume on a small machine would take an hour."""
    make_many(tmp_path / "source", MANY)
    data = tmp_path / "data"
    data.mkdir()
    with cache_server(tmp_path / "server", f"--dataDir={data}", f"--cacheDirs={data}", "--interval=1") as server:
        before = peak_of(server.pid)
        options = {"source": f"file://{tmp_path}/source/", "destination": f"file://{data}/", "threads": 10}
        name = await server.post("sync", options)
        assert await server.ended("sync", name, within=400) == {"status": "success", "message": f"{MANY} files found"}
        name = await server.post("rmr", {"paths": [f"{data}/{number:02}" for number in range(FOLDERS)]})
        assert (await server.ended("rmr", name, within=100))["status"] == "success"
        assert list(data.iterdir()) == []
        assert peak_of(server.pid) - before < 32 * MEGABYTE


@needs_fuse
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_volume_of_many_files_is_warmed_and_removed_in_bounded_memory(tmp_path: Path) -> None:
    make_many(tmp_path / "source", SOME)
    with (
        small_disk(tmp_path / "disk", 2000) as disk,  # in memory: the database of the volume syncs at every file
        mounted(formatted(disk), "only") as (data, cache),
        cache_server(tmp_path / "server", f"--dataDir={data}", f"--cacheDirs={cache}") as server,
    ):
        before = peak_of(server.pid)
        name = await server.post("sync", {"source": f"file://{tmp_path}/source/", "destination": f"file://{data}/"})
        assert await server.ended("sync", name, within=600) == {"status": "success", "message": f"{SOME} files found"}
        name = await server.post("warmup", {"partitions": 1})
        result = await server.ended("warmup", name, within=100)
        assert result["message"] == f"{SOME} files on 1 servers"
        name = await server.post("rmr", {"paths": [f"{data}/{number:02}" for number in range(FOLDERS)]})
        assert (await server.ended("rmr", name, within=100))["status"] == "success"
        assert peak_of(server.pid) - before < 32 * MEGABYTE
