"""The jobs on real JuiceFS volumes, also when a process dies."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cache.cache_server import CacheServer, cache_server
from tests.support.cache.juicefs import formatted, make_files, mounted, needs_fuse
from tests.support.machine.disks import small_disk
from tests.support.machine.processes import processes_of
from tests.support.waiting import until

pytestmark = needs_fuse


class Set(NamedTuple):
    server: CacheServer
    data: Path
    cache: Path
    source: Path
    size: int


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Set]:
    """A set with one server. Another mount has filled the volume, so nothing is cached here yet."""
    home = tmp_path_factory.mktemp("set")
    volume = formatted(home)
    size = make_files(home / "source", 20)
    with mounted(volume, "first") as (writer, _):
        shutil.copytree(home / "source", writer / "there")
    with mounted(volume, "second") as (data, cache):
        arguments = (f"--dataDir={data}", f"--cacheDirs={cache}", "--interval=1")
        with cache_server(home / "server", *arguments) as server:
            yield Set(server, data, cache, home / "source", size)


async def until_status(server: CacheServer, **wanted: str) -> None:
    async def status() -> dict[str, str] | None:
        answer = await server.ask("GET", "/cacheStatus/cacheInfo.json")
        return answer.json() if answer.status_code == 200 else None

    await until(status, lambda found: wanted.items() <= found.items(), what=f"{wanted}", within=90)


async def test_a_set_is_synced_warmed_counted_cleared_and_removed(filled: Set) -> None:
    server, data, cache, source, size = filled
    await until_status(server, totalSize=str(size), totalFiles="20", cachedSize="0", errorMassage="")

    name = await server.post("warmup", {"paths": [f"{data}/there"], "partitions": 1, "threads": 4})
    assert await server.ended("warmup", name) == {"status": "success", "message": "20 files on 1 servers"}
    assert await server.progress("warmup", name) == {"filesDone": 20, "filesTotal": 20}
    await until_status(server, cachedSize=str(size))
    assert not (data / ".warmup").exists()

    name = await server.post("sync", {"source": f"file://{source}/", "destination": f"file://{data}/copy/"})
    assert await server.ended("sync", name) == {"status": "success", "message": "20 files found"}
    assert await server.progress("sync", name) == {"filesDone": 20, "bytesDone": size}
    assert sorted(path.name for path in (data / "copy").iterdir()) == sorted(p.name for p in source.iterdir())
    await until_status(server, totalSize=str(2 * size), totalFiles="40")

    name = await server.post("clear", {"paths": [f"{cache}/*"]})
    assert (await server.ended("clear", name))["status"] == "success"
    assert list(cache.iterdir()) == []

    (data / ".hidden").write_bytes(b"not counted")
    name = await server.post("rmr", {"paths": [f"{data}/copy"]})
    assert (await server.ended("rmr", name))["status"] == "success"
    assert await server.progress("rmr", name) == {"filesDone": 20}
    await until_status(server, totalSize=str(size), totalFiles="20", errorMassage="")


async def test_a_users_list_is_warmed_and_a_wrong_one_refused(filled: Set) -> None:
    server, data, _, _, _ = filled
    (data / "list").write_text(f"there/d0/f0\n{data}/there/d1/f1\n\n")
    name = await server.post("warmup", {"file": f"{data}/list", "partitions": 1, "strategyName": "random"})
    assert (await server.ended("warmup", name))["message"] == "2 files on 1 servers"
    (data / "list").write_text("there/d0/f0\nthere/no\n")
    name = await server.post("warmup", {"file": f"{data}/list", "partitions": 1})
    failed = await server.ended("warmup", name)
    assert (failed["status"], "there/no" in failed["message"]) == ("fail", True)
    assert not (data / ".warmup").exists()
    (data / "list").unlink()


async def test_a_source_that_is_not_there_is_a_failure(filled: Set) -> None:
    """juicefs itself ends with status 0 and finds nothing."""
    name = await filled.server.post("sync", {"source": "file:///no/such/", "destination": f"file://{filled.data}/x/"})
    assert await filled.server.ended("sync", name) == {
        "status": "fail",
        "message": "the source /no/such is not there",
    }


async def test_a_source_that_vanishes_half_way_is_a_failure(filled: Set, tmp_path: Path) -> None:
    server, data, _, _, _ = filled
    source = tmp_path / "source"
    make_files(source, 200, size=50_000, folders=1)
    options = {"source": f"file://{source}/", "destination": f"file://{data}/half/", "bwlimit": 20, "threads": 2}
    name = await server.post("sync", options)
    await until(lambda: (data / "half" / "d0").exists() and any((data / "half/d0").iterdir()), what="the first copies")
    copying = await until(lambda: server.progress("sync", name), bool, what="copied files are reported")
    assert 0 < copying["filesDone"] < 200
    assert copying["bytesDone"] == 50_000 * copying["filesDone"]
    shutil.rmtree(source / "d0")
    failed = await server.ended("sync", name)
    assert failed["status"] == "fail"
    assert "vanished from the source" in failed["message"]


async def test_a_full_data_directory_fails_the_sync(tmp_path: Path) -> None:
    make_files(tmp_path / "source", 10, size=1_000_000, folders=1)
    with (
        small_disk(tmp_path / "data", 8) as data,
        cache_server(tmp_path / "server", f"--dataDir={data}") as server,
    ):
        name = await server.post("sync", {"source": f"file://{tmp_path}/source/", "destination": f"file://{data}/x/"})
        failed = await server.ended("sync", name)
        assert failed["status"] == "fail"
        assert "no space left" in failed["message"]
        name = await server.post("rmr", {"paths": [f"{data}/x"]})
        assert (await server.ended("rmr", name))["status"] == "success"


async def test_a_sync_into_a_full_bucket_waits_and_can_be_terminated(tmp_path: Path) -> None:
    """A mount keeps trying to store its data; the job does not report success meanwhile."""
    make_files(tmp_path / "source", 20, size=1_000_000, folders=1)
    with small_disk(tmp_path / "disk", 8) as disk:
        volume = formatted(tmp_path, disk)
        with (
            mounted(volume, "only", "--io-retries", "1", "--put-timeout", "2") as (data, cache),
            cache_server(tmp_path / "server", f"--dataDir={data}", f"--cacheDirs={cache}") as server,
        ):
            options = {"source": f"file://{tmp_path}/source/", "destination": f"file://{data}/x/"}
            name = await server.post("sync", options)
            log = tmp_path / "only.log"
            await until(lambda: "no space left" in log.read_text(), what="the bucket is full")
            await server.terminate()
            assert (await server.ended("sync", name))["message"] == "terminated on request while it was running"
            name = await server.post("clear", {})
            assert (await server.ended("clear", name))["status"] == "success"


async def test_killed_during_a_warm_up_every_server_comes_to_one_end(tmp_path: Path) -> None:
    """Two servers with a mount each. The coordinator dies, and the next run removes its remains."""
    volume = formatted(tmp_path)
    with mounted(volume, "a") as (data_a, cache_a), mounted(volume, "b") as (data_b, cache_b):
        size = make_files(data_a / "set", 16)
        shutil.rmtree(cache_a)
        cache_a.mkdir()
        with (
            cache_server(tmp_path / "0", f"--dataDir={data_a}", f"--cacheDirs={cache_a}", index=0) as first,
            cache_server(tmp_path / "1", f"--dataDir={data_b}", f"--cacheDirs={cache_b}", index=1) as second,
        ):
            lost = await first.post("warmup", {"partitions": 2})
            await until((data_a / ".warmup").exists, what="the meeting")
            first.kill()
            await second.post("warmup", {"partitions": 2}, lost)
            failed = await second.ended("warmup", lost)
            assert "fell silent" in failed["message"]
            first.start()
            assert (await first.ended("warmup", lost))["status"] == "fail"
            assert (data_a / ".warmup").exists()

            again = await first.post("warmup", {"partitions": 2})
            await second.post("warmup", {"partitions": 2}, again)
            assert await first.ended("warmup", again) == {"status": "success", "message": "16 files on 2 servers"}
            assert await second.ended("warmup", again) == {"status": "success", "message": "8 files on this server"}
            assert not [path for path in data_a.iterdir() if path.name.startswith(".warmup")]
            cached = [sum(p.stat().st_size for p in cache.rglob("*") if p.is_file()) for cache in (cache_a, cache_b)]
            assert min(cached) >= size // 2
    assert not processes_of(first.mark)
    assert not processes_of(second.mark)
