"""The stores under test: a folder, and with JOBGATE_TEST_STORE a bucket of a server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.log_store import LogStore, open_store
from tests.log_store.servers import served_bucket


@pytest_asyncio.fixture(params=["folder", "bucket"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LogStore]:
    if request.param == "folder":
        yield open_store(f"file://{tmp_path}/made/here")
        return
    async with served_bucket(monkeypatch) as bucket:
        yield open_store(bucket.url)
