"""Attacks by the owner of a source or a writer of the volume: names with .. and links that lead elsewhere."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cacheserver.config import RuntimeConfig
from cacheserver.engine.juicefs import JuiceFSEngine
from cacheserver.errors import JobFailed
from cacheserver.options import Progress, SyncRequest
from cacheserver.programs import confinement
from cacheserver.programs.sync_access import check_source
from tests.support.cache.cache_server import CacheServer, cache_server
from tests.support.cache.juicefs import needs_juicefs
from tests.support.cache.object_storage import object_storage

# Not `confinement.version`, whose errors would skip its tests. 444 is landlock_create_ruleset, here with the flag that
# requests the version.
HAS_LANDLOCK = sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0
needs_landlock = pytest.mark.skipif(not HAS_LANDLOCK, reason="this kernel has no Landlock: boot with lsm=landlock,…")


class Set(NamedTuple):
    server: CacheServer
    home: Path
    data: Path

    def outside(self) -> set[str]:
        """Return the files that are neither in the volume nor in the server's directory."""
        found = {str(path.relative_to(self.home)) for path in self.home.rglob("*") if not path.is_dir()}
        return {name for name in found if not name.startswith(("data/", "server/"))}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Set]:
    home = tmp_path_factory.mktemp("hostile")
    data = home / "data"
    (data / "deep" / "out").mkdir(parents=True)
    (home / "precious").mkdir()
    (home / "precious" / "kept").write_text("kept")
    (data / "link").symlink_to(home / "precious")
    with cache_server(home / "server", f"--dataDir={data}") as server:
        yield Set(server, home, data)


@needs_juicefs
@needs_landlock
async def test_keys_reach_nothing_outside_of_the_volume(runtime: Set) -> None:
    """The other keys are copied, and the job reports those that failed."""
    before = runtime.outside()
    (runtime.data / "deep" / "out" / "link").symlink_to(runtime.home / "precious")
    hostile = ["../../../up", "x/../../../../up", "link/through", "link/kept"]
    with object_storage(dict.fromkeys([*hostile, "/abs", "good"], b"evil")) as storage:
        options = {"source": storage.uri, "destination": f"file://{runtime.data}/deep/out/", "force-update": True}
        ended = await runtime.server.ended("sync", await runtime.server.post("sync", options))
    assert ended["status"] == "fail"
    assert [key for key in hostile if f"Failed to copy {key}: " not in ended["message"]] == []
    assert ended["message"].count("permission denied") == len(hostile)
    assert runtime.outside() == before
    assert (runtime.home / "precious" / "kept").read_text() == "kept"
    assert sorted(path.name for path in (runtime.data / "deep" / "out").iterdir()) == ["abs", "good", "link"]


@needs_juicefs
async def test_without_landlock_keys_that_climb_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "version", lambda: 0)
    (tmp_path / "data" / "out").mkdir(parents=True)
    engine = JuiceFSEngine(RuntimeConfig(tmp_path / "data"))
    with object_storage({"../../up": b"e", "a/../../../up": b"e", "a..b": b"g", "skipped": b"s"}) as storage:
        await engine.do_sync_job(
            SyncRequest(
                source=storage.uri,
                destination=f"file://{tmp_path}/data/out/",
                exclude="^skip",
                allowed_hosts=("127.0.0.0/8",),
            ),
            Progress(),
        )
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {"data/out/a..b"}


@needs_juicefs
@needs_landlock
async def test_links_in_a_source_are_no_way_to_what_is_elsewhere(runtime: Set) -> None:
    source = runtime.data / "source"
    source.mkdir()
    (source / "plain").write_text("plain")
    (source / "near").symlink_to("plain")
    (source / "folder").symlink_to(runtime.server.home / "runtime")
    options = {"source": f"file://{source}/", "destination": f"file://{runtime.data}/copy/"}
    ended = await runtime.server.ended("sync", await runtime.server.post("sync", options))
    assert ended == {
        "status": "success",
        "message": "2 files found; symbolic links left out, which lead nowhere or elsewhere: 1",
    }
    assert {path.name: path.read_text() for path in (runtime.data / "copy").iterdir()} == {
        "plain": "plain",
        "near": "plain",
    }
    (source / "file").symlink_to(runtime.server.home / "token")
    ended = await runtime.server.ended("sync", await runtime.server.post("sync", {**options, "dry": False}))
    assert ended["status"] == "fail"
    assert "permission denied" in ended["message"]
    assert not (runtime.data / "copy" / "file").exists()


SOURCES = {
    "a directory": ("{home}/source/", ""),
    "one of the volume": ("{home}/data/", ""),
    "a beginning of names": ("{home}/source/f", ""),
    "its own options": ("{home}/runtime/syncOptions/", "is refused: it is in"),
    "its own directory": ("{home}/runtime/", "is refused"),
    "what holds its own directory": ("{home}/", "or above it"),
    "the token": ("{home}/token/token", "is refused"),
    "by a link": ("{home}/data/link/", "is refused"),
    "by dots": ("{home}/source/../runtime/", "is refused"),
    "by escapes": ("{home}/source/%2e%2e/runtime/", "is refused"),
    "a cache": ("{home}/cache/", "is refused: it is in"),
    "a chunk of a cache": ("{home}/cache/raw/chunks/", "is refused"),
    "everything": ("/", "is refused"),
    "processes": ("/proc/self/", "is refused"),
    "a disk": ("/dev/", "is refused"),
    "the kernel": ("/sys/", "is refused"),
    "nothing": ("{home}/nothing/", "is not there"),
    "a file as a directory": ("{home}/source/f/", "is not there"),
}


@pytest.mark.parametrize(("path", "refusal"), SOURCES.values(), ids=SOURCES)
def test_a_source_may_not_be_where_secrets_are(tmp_path: Path, path: str, refusal: str) -> None:
    for name in ("source", "runtime/syncOptions", "token", "data", "cache/raw/chunks"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "source" / "f").write_text("f")
    (tmp_path / "token" / "token").write_text("t")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "runtime" / "syncOptions")
    secrets = (tmp_path / "runtime", tmp_path / "token" / "token")
    config = RuntimeConfig(tmp_path / "data", (tmp_path / "cache",), secrets=secrets)
    uri = f"file://{path.format(home=tmp_path)}"
    if refusal:
        with pytest.raises(JobFailed, match=refusal):
            check_source(uri, config, ["/"])
        with pytest.raises(JobFailed, match=refusal):
            check_source(uri.replace("file", "FILE", 1), config, ["/"])
    else:
        check_source(uri, config, ["/"])
    with pytest.raises(JobFailed, match="is in no directory for file:// sources"):
        check_source(uri, config, [])


PLACES = {
    "inside": ("{home}/allowed/x/", True),
    "the directory itself": ("{home}/allowed/", True),
    "a beginning of names inside": ("{home}/allowed/x", True),
    "a beginning of names that is the directory": ("{home}/allowed", False),
    "beside": ("{home}/allowed2/", False),
    "above": ("{home}/", False),
    "by a link": ("{home}/allowed/link/", False),
    "by dots": ("{home}/allowed/../allowed2/", False),
    "by escapes": ("{home}/allowed/%2e%2e/allowed2/", False),
    "nothing elsewhere": ("{home}/nothing/", False),
}


@pytest.mark.parametrize(("path", "accepted"), PLACES.values(), ids=PLACES)
def test_a_local_source_is_where_links_lead(tmp_path: Path, path: str, *, accepted: bool) -> None:
    for name in ("allowed/x", "allowed2"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "allowed2")
    (tmp_path / "by-link").symlink_to(tmp_path / "allowed")
    uri = f"file://{path.format(home=tmp_path)}"
    for directory in ("allowed", "by-link"):
        if accepted:
            check_source(uri, RuntimeConfig(), [str(tmp_path / directory)])
        else:
            with pytest.raises(JobFailed, match="is in no directory for file:// sources"):
                check_source(uri, RuntimeConfig(), [str(tmp_path / directory)])


WORKERS = ["-oProxyCommand=reboot", "10.0.0.1,-x", "-l@host", "me@-x", "a b", "a,,b", "a/b", "host;reboot"]


@pytest.mark.parametrize("worker", WORKERS)
async def test_a_worker_is_a_host_and_no_flag_of_ssh(tmp_path: Path, worker: str) -> None:
    engine = JuiceFSEngine(RuntimeConfig(tmp_path))
    options = SyncRequest(source=f"file://{tmp_path}/", destination=f"file://{tmp_path}/x/", worker=worker)
    with pytest.raises(JobFailed, match="worker"):
        await engine.do_sync_job(options, Progress())


@needs_landlock
def test_what_is_confined_cannot_touch_the_rest(tmp_path: Path) -> None:
    for name in ("in", "read", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    script = "import sys; f = open(sys.argv[1], sys.argv[2]); print(f.read() if sys.argv[2] == 'r' else 'written')"

    def tried(path: Path, mode: str) -> str:
        reads = ["/lib", "/lib64", "/usr", "/etc", sys.prefix, sys.base_prefix, str(tmp_path / "read")]
        command = confinement.confine(
            [sys.executable, "-I", "-c", script, str(path), mode],
            reads=[*reads, str(tmp_path / "missing")],
            writes=[str(tmp_path / "in")],
        )
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return ran.stdout.strip() if ran.returncode == 0 else ran.stderr.strip().splitlines()[-1].partition(":")[0]

    assert [tried(tmp_path / name / "f", "r") for name in ("in", "read", "out")] == ["in", "read", "PermissionError"]
    assert [tried(tmp_path / name / "f", "w") for name in ("in", "read", "out")] == [
        "written",
        "PermissionError",
        "PermissionError",
    ]
    assert tried(tmp_path / "in" / "new", "w") == "written"
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out" / "f")
    assert tried(tmp_path / "in" / "link", "w") == "PermissionError"
    assert (tmp_path / "out" / "f").read_text() == "out"


@needs_landlock
def test_a_program_that_cannot_be_run_is_reported() -> None:
    command = confinement.confine([f"{os.sep}no/such/juicefs", "sync"], reads=[], writes=[])
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "cannot be run and confined: No such file" in ran.stderr
