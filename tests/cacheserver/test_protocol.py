"""The answers of the server over real HTTP, compared with a table."""

import asyncio
import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cache.cache_server import ROOT, TOKEN, CacheServer, cache_server
from tests.support.cache.juicefs import needs_juicefs
from tests.support.machine.disks import small_disk
from tests.support.machine.processes import processes_of
from tests.support.waiting import until

JSON = b'{"paths": []}'


class Vector(NamedTuple):
    method: str
    path: str
    filename: str | None
    body: bytes
    code: int


VECTORS = {
    "options are taken": Vector("POST", "/upload/clearOptions", "v-1", JSON, 200),
    "again the same": Vector("POST", "/upload/clearOptions", "v-1", JSON, 200),
    "the name for others": Vector("POST", "/upload/clearOptions", "v-1", b'{"paths": ["/x"]}', 409),
    "and are served": Vector("GET", "/clearOptions/v-1", None, b"", 200),
    "head is like get": Vector("HEAD", "/clearOptions/v-1", None, b"", 200),
    "of another kind there are none": Vector("GET", "/rmrOptions/v-1", None, b"", 404),
    "no result of what never came": Vector("GET", "/clearResult/nobody", None, b"", 404),
    "upload by get": Vector("GET", "/upload/syncOptions", "v-2", b"", 405),
    "upload by put": Vector("PUT", "/upload/syncOptions", "v-2", JSON, 405),
    "upload by delete": Vector("DELETE", "/upload/rmrOptions", "v-2", b"", 405),
    "terminate by get": Vector("GET", "/upload/clearOptions?terminate=true", "terminate", b"", 405),
    "options by post": Vector("POST", "/syncOptions/v-2", None, JSON, 405),
    "no header": Vector("POST", "/upload/syncOptions", None, JSON, 400),
    "an empty header": Vector("POST", "/upload/syncOptions", "", JSON, 400),
    "a header that climbs": Vector("POST", "/upload/syncOptions", "../v-2", JSON, 400),
    "a header with a folder": Vector("POST", "/upload/syncOptions", "a/b", JSON, 400),
    "a hidden name": Vector("POST", "/upload/syncOptions", ".v-2", JSON, 400),
    "no json": Vector("POST", "/upload/syncOptions", "v-2", b"{", 400),
    "no object": Vector("POST", "/upload/syncOptions", "v-2", b"[]", 400),
    "a wrong type": Vector("POST", "/upload/syncOptions", "v-2", b'{"threads": "many"}', 400),
    "an unknown strategy": Vector("POST", "/upload/warmupOptions", "v-2", b'{"strategyName": "best"}', 400),
    "no body": Vector("POST", "/upload/rmrOptions", "v-2", b"", 400),
    "too much": Vector("POST", "/upload/rmrOptions", "v-2", b" " * (9 * 1024 * 1024), 400),
    "terminate without a file": Vector("POST", "/upload/clearOptions?terminate=true", "terminate", b"", 200),
    "terminate on any route": Vector("POST", "/upload/syncOptions?terminate=1", "terminate", b"", 200),
    "terminate is not saved": Vector("GET", "/clearOptions/terminate", None, b"", 404),
    "the signal alone ends nothing": Vector("POST", "/upload/rmrOptions", "terminate", b"", 200),
    "an unknown kind": Vector("POST", "/upload/formatOptions", "v-2", JSON, 404),
    "the root": Vector("GET", "/", None, b"", 404),
    "no listing": Vector("GET", "/syncOptions/", None, b"", 404),
    "no climbing": Vector("GET", "/syncOptions/..%2f.identity", None, b"", 404),
    "no hidden files": Vector("GET", "/.identity", None, b"", 404),
    "the folder of uploads": Vector("GET", "/upload", None, b"", 404),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CacheServer]:
    home = tmp_path_factory.mktemp("runtime")
    (home / "cache").mkdir()
    (home / "data").mkdir()
    with cache_server(home, f"--cacheDirs={home / 'cache'}", f"--dataDir={home / 'data'}") as running:
        yield running


async def test_the_protocol_table(server: CacheServer) -> None:
    answered = {}
    for name, vector in VECTORS.items():
        headers = {"filename": vector.filename} if vector.filename is not None else {}
        answer = await server.ask(vector.method, vector.path, headers=headers, content=vector.body)
        answered[name] = answer.status_code
    assert answered == {name: vector.code for name, vector in VECTORS.items()}


async def test_every_route_needs_the_token(server: CacheServer) -> None:
    codes = {(await server.ask(v.method, v.path, token=None)).status_code for v in VECTORS.values()}
    assert codes == {401}


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], f"{TOKEN} {TOKEN}"])
async def test_a_part_of_the_token_is_refused(server: CacheServer, token: str | None) -> None:
    assert (await server.ask("GET", "/cacheStatus/cacheInfo.json", token=token)).status_code == 401


async def test_a_replaced_token_applies_at_once(server: CacheServer) -> None:
    (server.home / "token").write_text("another\n")
    try:
        assert (await server.ask("GET", "/syncOptions/x")).status_code == 401
        assert (await server.ask("GET", "/syncOptions/x", token="another")).status_code == 404
        (server.home / "token").write_text("")
        assert (await server.ask("GET", "/syncOptions/x", token="")).status_code == 401
    finally:
        (server.home / "token").write_text(TOKEN)


async def test_options_are_served_as_they_were_posted_and_to_nobody_else(server: CacheServer) -> None:
    body = b'{"paths": [], "later": "what this version does not know"}'
    answer = await server.ask("POST", "/upload/clearOptions", headers={"filename": "as-posted"}, content=body)
    assert answer.status_code == 200
    assert (await server.ask("GET", "/clearOptions/as-posted")).content == body
    await server.ended("clear", "as-posted")
    for path in (server.home / "runtime").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_figures_are_newer_than_the_result_that_is_served(server: CacheServer) -> None:
    """The next regular measurement would come after five seconds or more."""
    block = server.home / "cache" / "figures"
    for content in (b"", b"three"):
        block.write_bytes(content)
        name = await server.post("rmr", {"paths": [f"{server.home}/data/nothing"]})
        await server.ended("rmr", name)
        info = (await server.ask("GET", "/cacheStatus/cacheInfo.json")).json()
        assert info["cachedSize"] == str(len(content))
    block.unlink()


async def test_a_result_has_the_words_of_the_protocol(server: CacheServer) -> None:
    (server.home / "cache" / "block").write_bytes(b"x")
    name = await server.post("clear", {})
    assert await server.ended("clear", name) == {"status": "success", "message": ""}
    assert list((server.home / "cache").iterdir()) == []
    name = await server.post("rmr", {"paths": [f"{server.home}/data/nothing"]})
    failed = await server.ended("rmr", name)
    assert failed["status"] == "fail"
    assert failed["message"].endswith("does not exist")


async def test_the_cache_status_is_there_from_the_start(server: CacheServer) -> None:
    """The data directory is not a JuiceFS mount here, which is reported; the other figures are known nevertheless."""
    path = server.home / "runtime" / "cacheStatus" / "cacheInfo.json"
    await until(path.exists, what="a status")
    status = (await server.ask("GET", "/cacheStatus/cacheInfo.json")).json()
    assert list(status) == [
        *("totalSize", "totalFiles", "cachedSize", "diskSize", "diskUsed", "diskAvail", "errorMassage"),
    ]
    assert status["totalSize"] == ""
    assert "juicefs" in status["errorMassage"]
    assert {status[name].isdecimal() for name in ("cachedSize", "diskSize", "diskUsed", "diskAvail")} == {True}


def slow(server: CacheServer, name: str) -> dict[str, Any]:
    """A sync that takes minutes; a mark identifies its process."""
    source = server.home / "slow"
    source.mkdir(exist_ok=True)
    (source / "large").write_bytes(b"x" * 20_000_000)
    return {"source": f"file://{source}/", "destination": f"file://{server.home}/data/{name}/", "bwlimit": 1}


def copying(server: CacheServer) -> bool:
    return any("juicefs --verbose sync" in command for command in processes_of(server.mark).values())


@needs_juicefs
async def test_jobs_run_one_at_a_time_in_order_and_terminate_ends_them_all(server: CacheServer) -> None:
    first = await server.post("sync", slow(server, "first"))
    await server.until("sync", first, "running")
    waiting = [await server.post(kind, {"paths": ["/nowhere"]}) for kind in ("rmr", "clear")]
    await until(lambda: copying(server), what="the command")
    assert [await server.result(kind, name) for kind, name in zip(("rmr", "clear"), waiting, strict=True)] == [None] * 2
    await server.terminate()
    assert not copying(server)
    assert await server.result("sync", first) == {
        "status": "fail",
        "message": "terminated on request while it was running",
    }
    for kind, name in zip(("rmr", "clear"), waiting, strict=True):
        assert await server.result(kind, name) == {
            "status": "fail",
            "message": "terminated on request before it began",
        }
    after = await server.post("clear", {})
    assert (await server.ended("clear", after))["status"] == "success"


@needs_juicefs
async def test_terminate_with_a_new_job_ends_the_old_and_takes_the_new(server: CacheServer) -> None:
    old = await server.post("sync", slow(server, "old"))
    await server.until("sync", old, "running")
    answer = await server.ask("POST", "/upload/clearOptions?terminate=yes", headers={"filename": "new"}, content=b"{}")
    assert answer.status_code == 200
    assert (await server.ended("clear", "new"))["status"] == "success"
    assert (await server.ended("sync", old))["status"] == "fail"


@needs_juicefs
async def test_killed_during_a_sync_it_comes_back_consistent(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "cache").mkdir()
    with cache_server(tmp_path, f"--cacheDirs={tmp_path / 'cache'}", f"--dataDir={tmp_path / 'data'}") as server:
        running = await server.post("sync", slow(server, "x"))
        await server.until("sync", running, "running")
        waiting = [await server.post("clear", {}) for _ in range(3)]
        await until(lambda: copying(server), what="the command")
        server.kill()
        assert copying(server), "what it started outlives it, and must be found"
        server.start()
        await until(lambda: not copying(server), what="nothing is left of it")
        died = await server.ended("sync", running)
        assert died["status"] == "fail"
        assert "ended while this job was running" in died["message"]
        for name in waiting:
            assert (await server.ended("clear", name))["status"] == "success"
        again = await server.post("sync", slow(server, "x"))
        await server.until("sync", again, "running")
        assert server.stop() == 0
        server.start()
        assert "was stopped while" in (await server.ended("sync", again))["message"]
        assert not copying(server)


async def test_a_full_disk_is_an_answer(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        home = disk / "home"
        with cache_server(home, f"--cacheDirs={tmp_path}") as server:
            filler = disk / "filler"
            filler.write_bytes(b"")
            with pytest.raises(OSError, match="No space"):
                fill_up(filler)
            body = json.dumps({"paths": ["/x" * 30_000]}).encode()
            answer = await server.ask("POST", "/upload/clearOptions", headers={"filename": "full"}, content=body)
            assert answer.status_code == 500
            assert "No space" in answer.text
            filler.unlink()
            assert (await server.ask("GET", "/clearOptions/full")).status_code == 404
            await server.post("clear", {"paths": [f"{tmp_path}/nothing"]}, "full")
            assert (await server.ended("clear", "full"))["status"] == "fail"


def fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


REFUSED = {
    "without a token in the open": (["--serverHost=0.0.0.0"], "loopback"),
    "an unknown driver": (["--serverHost=127.0.0.1", "--driver=alluxio"], "driver alluxio not found"),
    "a relative cache directory": (["--serverHost=127.0.0.1", "--cacheDirs=cache"], "not an absolute path"),
    "a relative server directory": (["--serverHost=127.0.0.1", "--serverDir=runtime"], "not an absolute path"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_configurations_do_not_start(arguments: list[str], message: str) -> None:
    command = [sys.executable, "-m", "cacheserver", "server", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert message in ran.stderr


async def test_one_directory_has_one_server(tmp_path: Path) -> None:
    with cache_server(tmp_path) as server:
        command = [
            *(sys.executable, "-m", "cacheserver", "server", "--serverHost=127.0.0.1", "--serverPort=0"),
            f"--serverDir={server.home / 'runtime'}",
        ]
        ran = await asyncio.to_thread(
            subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 2
        assert "another server has the directory" in ran.stderr


async def test_the_port_flag_applies(tmp_path: Path) -> None:
    with cache_server(tmp_path / "any") as first:
        port = first.url.rpartition(":")[2]
    with cache_server(tmp_path / "named", f"--serverPort={port}") as second:
        assert second.url == f"http://127.0.0.1:{port}"
