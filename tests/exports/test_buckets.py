"""An export and an archive in a bucket of a server (`make test-s3`, `test-gs`, `test-az`)."""

import os
from uuid import UUID

import pytest

from app.db.objects.resources import RowVersion
from app.exports import exporter
from app.exports.folders import new_file, open_folder
from app.exports.importer import ImportSummary
from tests.exports.ended_jobs import ended_job, exported, imported, remove, stored
from tests.exports.test_archive import archive
from tests.log_store.servers import served_bucket
from tests.support.gateways.gateway import Gateway

LARGE = 24 * 1024 * 1024  # bytes: more than one part of an upload


async def test_exports_and_archives_are_in_a_bucket(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "JOBS_AT_ONCE", 1)
    async with served_bucket(monkeypatch) as bucket:
        uids = [await ended_job(gateway, name) for name in ("one", "two")]
        before = await stored(gateway.db, *uids)
        place = f"{bucket.url}/export"
        assert (await exported(gateway.db, place, segment_bytes=1)).segments == 3
        assert (await exported(gateway.db, place)).added == 0
        await remove(gateway.db, *uids)
        assert await imported(gateway.db, place) == ImportSummary(imported=2, is_complete=True)
        assert await stored(gateway.db, *uids) == before
        copies = f"{bucket.url}/archive"
        await archive(gateway.db, copies).copy([RowVersion(UUID(uid), 1) for uid in uids])
        (name,) = await open_folder(copies).names()
        assert await imported(gateway.db, f"{copies}/{name}") == ImportSummary(present=2, is_complete=True)


async def test_a_segment_of_several_parts_is_put_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(LARGE)
    async with served_bucket(monkeypatch) as bucket:
        folder = open_folder(bucket.url)
        with new_file() as file:
            file.write(content)
            await folder.put("segment.jsonl.zst", file)
        async with folder.get("segment.jsonl.zst") as copy:
            copy.seek(0)
            assert copy.read() == content
