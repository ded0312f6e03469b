"""The object store of whole logs: a folder, and a bucket of an S3-compatible server."""

import os
import signal
from pathlib import Path

import pytest

from app.log_store import LogStore, ObjectMissing, StoreUnavailable, open_store
from tests.log_store.conftest import moto_bucket
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


async def test_a_frozen_store_is_unavailable_until_it_is_thawed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with moto_bucket(monkeypatch) as bucket:
        store = open_store(bucket.url, timeout=1.0)
        os.kill(bucket.pid, signal.SIGSTOP)
        for call in (store.put("a/1", b"x"), store.get("a/1"), store.delete(["a/1"]), names(store, "a/")):
            with pytest.raises(StoreUnavailable):
                await call
        os.kill(bucket.pid, signal.SIGCONT)
        await until(lambda: puts(store), what="the store works again")
        # Another name: calls that were given up can have an effect afterwards.
        assert await store.get("b/1") == b"x"


async def puts(store: LogStore) -> bool:
    try:
        await store.put("b/1", b"x")
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("url", ["", "/var/log", "file://", "ftp://host/x", "https://bucket"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="expected s3://…, gs://…, az://…, file://…"):
        open_store(url)
