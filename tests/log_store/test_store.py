"""The object store of whole logs, as a folder."""

from pathlib import Path

import pytest

from app.log_store import LogStore, ObjectMissing, StoreUnavailable, open_store


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return open_store(f"file://{tmp_path}/made/here")


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


@pytest.mark.parametrize("url", ["", "/var/log", "file://", "ftp://host/x", "https://bucket"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="expected s3://…, gs://…, az://…, file://…"):
        open_store(url)
