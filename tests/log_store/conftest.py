"""The stores under test: a folder, and with JOBGATE_TEST_MOTO a bucket of an S3-compatible server."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
import pytest
import pytest_asyncio

from app.log_store import LogStore, open_store
from tests.support.machine.ports import kept_port
from tests.support.waiting import until

SERVER: Final = "JOBGATE_TEST_MOTO"
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of a server that runs as a process."""

    url: str
    pid: int


@asynccontextmanager
async def moto_bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bucket]:
    program = os.environ.get(SERVER)
    if not program:
        pytest.skip("there is no S3-compatible server: run `make test-s3`")
    with kept_port() as port:
        process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            endpoint = f"http://127.0.0.1:{port}"
            signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
            async with httpx2.AsyncClient(base_url=endpoint, headers=signed) as client:
                await until(lambda: _creates_bucket(client), what="moto serves")
            for name, value in (*CREDENTIALS.items(), ("AWS_ENDPOINT", endpoint)):
                monkeypatch.setenv(name, value)
            yield Bucket(url="s3://bucket/jobgate", pid=process.pid)
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


async def _creates_bucket(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.put("/bucket")).status_code == 200
    except httpx2.TransportError:
        return False


@pytest_asyncio.fixture(params=["folder", "s3"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LogStore]:
    if request.param == "folder":
        yield open_store(f"file://{tmp_path}/made/here")
        return
    async with moto_bucket(monkeypatch) as bucket:
        yield open_store(bucket.url)
