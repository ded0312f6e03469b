"""Jobs on real volumes when a server dies or hangs, a disk is full, or a source breaks off."""

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from cacheserver.engine.binary import juicefs_path
from tests.support.cache.cache_server import CacheServer, cache_server
from tests.support.cache.juicefs import formatted, make_files, mounted, needs_fuse, needs_juicefs
from tests.support.cache.object_storage import ACCESS, object_storage
from tests.support.machine.disks import small_disk
from tests.support.machine.processes import processes_of
from tests.support.waiting import until

TERMINATED = "terminated on request while it was running"


class Pair(NamedTuple):
    """Two servers on one volume, each with its mount. The warm-ups of a server that is `slow` take long."""

    servers: tuple[CacheServer, CacheServer]
    mounts: tuple[Path, Path]
    home: Path

    @property
    def data(self) -> Path:
        return self.mounts[0]

    def slow(self, index: int) -> Path:
        return self.home / f"slow-set-runtime-{index}"

    async def begin(self) -> str:
        name = await self.servers[0].post("warmup", {"partitions": 2})
        return await self.servers[1].post("warmup", {"partitions": 2}, name)

    def warming(self, index: int) -> bool:
        return any("juicefs warmup" in command for command in processes_of(self.servers[index].mark).values())

    async def until_warming(self, *indexes: int) -> None:
        await until(lambda: all(map(self.warming, indexes)), what="servers warm up")

    async def ended(self, index: int, name: str) -> str:
        """Return the message of a failed job."""
        result = await self.servers[index].ended("warmup", name)
        assert result["status"] == "fail"
        return result["message"]

    def left(self) -> list[str]:
        return [path.name for path in self.data.iterdir() if path.name.startswith(".warmup")]

    async def warms_again(self) -> None:
        """Check that the next warm-up succeeds on both servers and that no remains are left."""
        for index in (0, 1):
            self.slow(index).unlink(missing_ok=True)
        name = await self.begin()
        results = [await server.ended("warmup", name) for server in self.servers]
        assert results == [
            {"status": "success", "message": "8 files on 2 servers"},
            {"status": "success", "message": "4 files on this server"},
        ]
        assert self.left() == []


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    home = tmp_path_factory.mktemp("pair")
    program = home / "juicefs"
    waits = f'[ "$1" = warmup ] && [ -e "{home}/slow-$HOSTNAME" ] && sleep 600'
    program.write_text(f'#!/bin/sh\n{waits}\nexec {juicefs_path()} "$@"\n')
    program.chmod(0o755)
    volume = formatted(home)
    with pytest.MonkeyPatch.context() as patched, mounted(volume, "a") as (one, cache_a):
        make_files(one / "set", 8)
        with mounted(volume, "b") as (two, cache_b):
            patched.setenv("JUICEFS", str(program))
            flags = ("--interval=1", "--timeout=2")
            with (
                cache_server(home / "0", f"--dataDir={one}", f"--cacheDirs={cache_a}", *flags, index=0) as first,
                cache_server(home / "1", f"--dataDir={two}", f"--cacheDirs={cache_b}", *flags, index=1) as second,
            ):
                yield Pair((first, second), (one, two), home)


@pytest.fixture
async def pair(servers: Pair) -> AsyncIterator[Pair]:
    servers.slow(1).touch()
    yield servers
    for server in servers.servers:
        if not server.is_running():
            server.start()
        await server.terminate()


@needs_fuse
async def test_a_worker_killed_while_it_warms_up(pair: Pair) -> None:
    worker = pair.servers[1]
    lost = await pair.begin()
    await pair.until_warming(1)
    worker.kill()
    assert pair.warming(1), "what it started outlives it, and must be found"
    assert await pair.ended(0, lost) == "server 1 fell silent during the warm-up"
    worker.start()
    assert not pair.warming(1)
    assert "ended while this job was running" in await pair.ended(1, lost)
    assert (await worker.ask("GET", f"/warmupOptions/{lost}")).json() == {"partitions": 2}
    await pair.warms_again()


@needs_fuse
async def test_a_coordinator_killed_while_it_warms_up(pair: Pair) -> None:
    """Its worker ends although its own part would take long. The next warm-up removes the remains."""
    pair.slow(0).touch()
    lost = await pair.begin()
    await pair.until_warming(0, 1)
    pair.servers[0].kill()
    pair.servers[0].start()
    assert "ended while this job was running" in await pair.ended(0, lost)
    assert pair.left() == [".warmup"]
    await pair.servers[0].post("warmup", {"partitions": 1})
    assert await pair.ended(1, lost) == "the warm-up ended before this server had done its part"
    assert not pair.warming(1)
    await pair.servers[0].terminate()
    await pair.warms_again()


@needs_fuse
async def test_a_worker_that_hangs_is_not_waited_for_and_disturbs_nobody_afterwards(pair: Pair) -> None:
    """A server stopped by a signal keeps its process and its connections. Only its heartbeats stop."""
    hung = await pair.begin()
    await pair.until_warming(1)
    os.kill(pair.servers[1].pid, signal.SIGSTOP)
    try:
        assert await pair.ended(0, hung) == "server 1 fell silent during the warm-up"
        assert pair.left() == []
    finally:
        os.kill(pair.servers[1].pid, signal.SIGCONT)
    assert await pair.ended(1, hung) == "the warm-up ended before this server had done its part"
    await pair.warms_again()


@needs_fuse
@pytest.mark.parametrize("index", [0, 1])
async def test_a_warm_up_that_is_terminated_ends_on_all_servers(pair: Pair, index: int) -> None:
    pair.slow(0).touch()
    name = await pair.begin()
    await pair.until_warming(0, 1)
    await pair.servers[index].terminate()
    assert not pair.warming(index)
    assert await pair.ended(index, name) == TERMINATED
    pair.slow(0).unlink()
    if index == 1:
        await pair.servers[0].terminate()
    assert await pair.ended(1 - index, name) in (
        TERMINATED,
        "the warm-up ended before this server had done its part",
        "server 1 failed: it was stopped",
    )
    await pair.warms_again()


@needs_fuse
async def test_a_warm_up_is_terminated_while_it_waits_for_the_others(pair: Pair) -> None:
    alone = await pair.servers[0].post("warmup", {"partitions": 2})
    waiting = await pair.servers[1].post("warmup", {"partitions": 2})
    await until((pair.data / ".warmup").exists, what="the rendezvous")
    await pair.servers[1].until("warmup", waiting, "running")
    for server in pair.servers:
        await server.terminate()
    assert [await pair.ended(0, alone), await pair.ended(1, waiting)] == [TERMINATED, TERMINATED]
    assert pair.left() == []
    await pair.warms_again()


@needs_fuse
async def test_a_mount_that_hangs_is_told_and_the_server_still_answers(pair: Pair) -> None:
    worker, mount = pair.servers[1], pair.mounts[1]
    mounting = [pid for pid, command in processes_of(f"{mount}").items() if "juicefs mount" in command]
    assert mounting
    for pid in mounting:
        os.kill(pid, signal.SIGSTOP)
    try:
        await told_of_cache(worker, "the cache could not be measured within 2 seconds")
        name = await worker.post("clear", {})
        assert (await worker.ended("clear", name))["status"] == "success"
    finally:
        for pid in mounting:
            os.kill(pid, signal.SIGCONT)
    await told_of_cache(worker, "")
    await pair.warms_again()


async def told_of_cache(server: CacheServer, massage: str) -> None:
    async def status() -> dict[str, str]:
        found: dict[str, str] = (await server.ask("GET", "/cacheStatus/cacheInfo.json")).json()
        return found

    await until(status, lambda found: found["errorMassage"] == massage, what=f"the error {massage!r}")


@needs_fuse
async def test_a_cache_disk_that_is_full_costs_speed_and_no_job(tmp_path: Path) -> None:
    """juicefs continues to read without its cache; the status shows how little is cached, and a clear makes room."""
    volume = formatted(tmp_path)
    with mounted(volume, "writer") as (writer, _):
        make_files(writer / "set", 4, size=1_000_000)
    with small_disk(tmp_path / "disk", 2) as disk:
        (disk / "filler").write_bytes(b"x" * 1_200_000)
        with (
            mounted(volume, "only", "--cache-dir", str(disk)) as (data, _),
            cache_server(tmp_path / "0", f"--dataDir={data}", f"--cacheDirs={disk}", "--interval=1") as server,
        ):
            name = await server.post("warmup", {"partitions": 1})
            assert (await server.ended("warmup", name))["status"] == "success"
            assert len((data / "set" / "d0" / "f0").read_bytes()) == 1_000_000
            name = await server.post("clear", {})
            assert (await server.ended("clear", name))["status"] == "success"
            assert not (disk / "filler").exists()


def syncing(server: CacheServer) -> list[int]:
    return [pid for pid, command in processes_of(server.mark).items() if "juicefs --verbose sync" in command]


def kill_all(pids: list[int]) -> list[int]:
    """Kill these processes, and return them. Their children may need another call."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def fill_up(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


@needs_juicefs
async def test_a_result_waits_for_room_on_the_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk, cache_server(disk / "home") as server:
        source = tmp_path / "source"
        make_files(source, 1, size=20_000_000)  # takes minutes, so that it does not end before it is killed
        options = {"source": f"file://{source}/", "destination": f"file://{tmp_path}/out/", "bwlimit": 1}
        name = await server.post("sync", options)
        await server.until("sync", name, "running")
        filler = disk / "filler"
        fill_up(filler)
        await until(lambda: syncing(server), what="the command")
        await until(lambda: not kill_all(syncing(server)), what="its end")
        assert (await server.result("sync", name) or {})["status"] == "running"
        filler.unlink()
        assert "was killed by signal 9" in (await server.ended("sync", name))["message"]


@needs_juicefs
async def test_a_source_that_breaks_off_is_a_failure_that_tells_no_key(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()

    objects = {f"k{number}": b"x" * 1000 for number in range(4)}
    with object_storage(objects) as storage, cache_server(tmp_path / "0", f"--dataDir={tmp_path}/data") as server:
        storage.answer = lambda key: storage.objects[key] if key < "k2" else None
        options = {"source": storage.uri, "destination": f"file://{tmp_path}/data/"}
        failed = await server.ended("sync", await server.post("sync", options))
        assert failed["status"] == "fail"
        assert "2 files vanished from the source or could not be read" in failed["message"]
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["k0", "k1"]
        text = json.dumps(failed) + server.log()
        assert not [key for key in (ACCESS, "s3cr3t") if key in text]
