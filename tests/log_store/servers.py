"""Servers of object stores, one bucket each: what `make test-s3`, `test-gs` and `test-az` name in the environment."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from typing import Final, NamedTuple

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.machine.ports import kept_port
from tests.support.waiting import until

# The variables with the scheme, and with the command of the server without its address.
SCHEME: Final = "JOBGATE_TEST_STORE"
SERVER: Final = "JOBGATE_TEST_STORE_SERVER"
BUCKET: Final = "bucket"
_MOTO: Final = ("-H", "127.0.0.1", "-p")
_AZURITE: Final = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--blobHost", "127.0.0.1")
_S3: Final = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
# The account and key that Azurite has in each installation, and publishes.
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION: Final = "2021-08-06"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of a server that runs as a process. `absent` is the URL of one that it does not have."""

    url: str
    absent: str
    pid: int


class _Sort(NamedTuple):
    """A sort of store: the options of its server before the port, the environment of its clients, and a new bucket."""

    options: Sequence[str]
    environment: Callable[[str], Mapping[str, str]]
    path: str
    headers: Callable[[], Mapping[str, str]]


def _s3(endpoint: str) -> Mapping[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": endpoint,
    }


def _gs(endpoint: str) -> Mapping[str, str]:
    account = {
        "gcs_base_url": endpoint,
        "client_email": "jobgate@test.example",
        "private_key": _private_key(),
        "private_key_id": "1",
    }
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account)}


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _az(endpoint: str) -> Mapping[str, str]:
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{_ACCOUNT}",
    }


def _signed_for_azure() -> Mapping[str, str]:
    date = formatdate(usegmt=True)
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n{resource}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
    return {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}


_SORTS: Final = {
    "s3": _Sort(_MOTO, _s3, f"/{BUCKET}", lambda: _S3),
    # moto takes every request that is not signed as for AWS for one to S3.
    "gs": _Sort(_MOTO, _gs, f"/{BUCKET}", lambda: _S3),
    "az": _Sort((*_AZURITE, "--blobPort"), _az, f"/{_ACCOUNT}/{BUCKET}?restype=container", _signed_for_azure),
}


@asynccontextmanager
async def served_bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bucket]:
    """Run the server that the environment names; skip the test without one."""
    scheme = os.environ.get(SCHEME)
    if not scheme:
        pytest.skip("there is no server of an object store: run `make test-s3`, `make test-gs` and `make test-az`")
    sort = _SORTS[scheme]
    with kept_port() as port:
        command = [*shlex.split(os.environ[SERVER]), *sort.options, port]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            endpoint = f"http://127.0.0.1:{port}"
            async with httpx2.AsyncClient(base_url=endpoint) as client:
                await until(lambda: _creates(client, sort), what="the server has the bucket")
            for name, value in sort.environment(endpoint).items():
                monkeypatch.setenv(name, value)
            yield Bucket(url=f"{scheme}://{BUCKET}/jobgate", absent=f"{scheme}://absent/jobgate", pid=process.pid)
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


async def _creates(client: httpx2.AsyncClient, sort: _Sort) -> bool:
    try:
        return (await client.put(sort.path, headers=sort.headers())).is_success
    except httpx2.TransportError:
        return False
