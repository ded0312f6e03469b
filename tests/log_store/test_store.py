"""The object store of whole logs: a folder, and a bucket of a server."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from threading import Event

import pytest
from typing_extensions import override

from app.base.cancellation import TaskGroup
from app.log_store import LogStore, ObjectMissing, StoreUnavailable, open_store
from tests.log_store.servers import served_bucket
from tests.support.waiting import until


async def names(store: LogStore, prefix: str) -> list[str]:
    return sorted([item.name async for page in store.list(prefix) for item in page])


async def test_objects_are_written_read_listed_and_deleted(store: LogStore) -> None:
    for name in ("a/1", "a/2", "ab/1"):
        await store.put(name, name.encode())
    await store.put("a/1", b"again")
    assert await store.get("a/1") == b"again"
    assert await names(store, "a/") == ["a/1", "a/2"]
    await store.delete(["a/1", "a/absent", "a/2"])
    assert await names(store, "a/") == []
    with pytest.raises(ObjectMissing):
        await store.get("a/1")


async def test_a_store_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/file")
    (tmp_path / "file").rmdir()
    (tmp_path / "file").write_text("in the way of the folder")
    with pytest.raises(StoreUnavailable, match="the log store refused a call"):
        await store.put("a/1", b"")


async def test_what_was_written_to_a_folder_is_on_the_disk_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = list[int](), os.fsync

    def record(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", record)
    store = open_store(f"file://{tmp_path}/made/here")
    assert synced == [(tmp_path / place).stat().st_ino for place in ("", "made")], "the store was made"
    synced.clear()
    assert await puts(store, "a/b/1")
    root = tmp_path / "made" / "here"
    assert set(synced) == {(root / place).stat().st_ino for place in ("a/b/1", "a/b", "a", "")}
    synced.clear()
    assert await puts(store, "a/b/2")
    assert synced == [(root / place).stat().st_ino for place in ("a/b/2", "a/b")], "the path is known"


LARGE = 24 * 1024 * 1024  # bytes, which are written in pieces
# The process ends at the second piece of a file.
_KILLED = """
import asyncio, io, os, signal, sys
from app.log_store import open_store

class File(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(size)

asyncio.run(open_store(sys.argv[1]).put_file("a.zst", File(bytes(int(sys.argv[2])))))
"""


async def test_what_a_killed_writer_of_a_file_has_left_is_removed(tmp_path: Path) -> None:
    url = f"file://{tmp_path}"
    command = [sys.executable, "-c", _KILLED, url, str(LARGE)]
    killed = await asyncio.to_thread(subprocess.run, command, check=False)
    assert killed.returncode == -signal.SIGKILL
    for age, left in ((timedelta(hours=1), ["a.zst#1"]), (timedelta(), [])):
        await open_store(url).remove_unfinished("a.zst", age)
        assert [path.name for path in tmp_path.iterdir()] == left


class PausedFile(BytesIO):
    """A file whose second piece is not read before `goes_on`."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.paused, self.goes_on = Event(), Event()

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            self.paused.set()
            assert self.goes_on.wait(60)
        return super().read(size)


async def test_two_writers_of_one_file_write_it_whole(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}", timeout=60.0)
    first, second = PausedFile(b"1" * LARGE), PausedFile(b"2" * LARGE)
    async with TaskGroup() as group:
        writes = group.create_task(store.put_file("a.zst", first))
        await until(first.paused.is_set, what="a part is written")
        group.create_task(store.put_file("a.zst", second))
        await until(second.paused.is_set, what="a part is written by the other one")
        first.goes_on.set()
        await writes
        assert (tmp_path / "a.zst").read_bytes() == first.getvalue()
        second.goes_on.set()
    assert (tmp_path / "a.zst").read_bytes() == second.getvalue()
    assert [path.name for path in tmp_path.iterdir()] == ["a.zst"]


@pytest.mark.parametrize("answers", [False, True])
async def test_a_file_that_does_not_reach_the_disk_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    thawed = Event()

    def fails(_: int) -> None:
        assert answers or thawed.wait(60)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreUnavailable, match="refused a call" if answers else "did not answer"):
        await open_store(f"file://{tmp_path}", timeout=60.0 if answers else 0.2).put("a/1", b"x")
    thawed.set()


async def test_a_frozen_store_is_unavailable_until_it_is_thawed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_bucket(monkeypatch) as bucket:
        store = open_store(bucket.url, timeout=1.0)
        os.kill(bucket.pid, signal.SIGSTOP)
        for call in (store.put("a/1", b"x"), store.get("a/1"), store.delete(["a/1"]), names(store, "a/")):
            with pytest.raises(StoreUnavailable):
                await call
        os.kill(bucket.pid, signal.SIGCONT)
        await until(lambda: puts(store, "b/1"), what="the store works again")
        # Another name: calls that were given up can have an effect afterwards.
        assert await store.get("b/1") == b"x"


async def test_a_bucket_that_is_gone_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_bucket(monkeypatch) as bucket:
        store = open_store(bucket.absent)
        for call in (
            store.put("a/1", b"x"),
            store.put_file("a/1", BytesIO(b"x")),
            names(store, "a/"),
            *of_object(store),
        ):
            with pytest.raises(StoreUnavailable, match="the log store refused a call"):
                await call


async def test_a_folder_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/folder")
    (tmp_path / "folder").rmdir()
    for call in of_object(store):
        with pytest.raises(StoreUnavailable, match="the log store refused a call"):
            await call


def of_object(store: LogStore) -> Sequence[Awaitable[object]]:
    """The calls about one object."""
    return store.get("a/1"), store.modified_at("a/1"), store.delete(["a/1"])


async def test_a_store_that_refuses_the_credentials_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_bucket(monkeypatch) as bucket:
        if not bucket.url.startswith("az://"):
            pytest.skip("moto accepts all credentials")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "b3RoZXI=")
        store = open_store(bucket.url)
        for call in (store.put("a/1", b"x"), store.get("a/1"), store.delete(["a/1"]), names(store, "a/")):
            with pytest.raises(StoreUnavailable, match="refused a call"):
                await call


async def puts(store: LogStore, name: str) -> bool:
    try:
        await store.put(name, b"x")
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("url", ["", "/var/log", "file://", "ftp://host/x", "https://bucket"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="expected s3://…, gs://…, az://…, file://…"):
        open_store(url)
