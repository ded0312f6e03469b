"""The hosts of a sync, and the addresses that their names have when it starts."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cacheserver.config import RuntimeConfig
from cacheserver.engine.juicefs import JuiceFSEngine
from cacheserver.errors import JobFailed
from cacheserver.options import Progress, SyncRequest
from cacheserver.programs.source_hosts import check_hosts

# The names that the resolver of a pod knows: their canonical names, and their addresses.
NAMES: Mapping[str, tuple[str, Sequence[str]]] = {
    "files.example.com": ("files.example.com", ["93.184.216.34", "2606:2800:220:1::1"]),
    "rebound.example.com": ("rebound.example.com", ["93.184.216.34", "169.254.169.254"]),
    "loopback.example.com": ("loopback.example.com", ["127.0.0.1"]),
    "mapped.example.com": ("mapped.example.com", ["::ffff:10.0.0.1"]),
    "private.corp.example": ("private.corp.example", ["10.1.2.3"]),
    "metadata.corp.example": ("metadata.corp.example", ["169.254.169.254"]),
    "minio.team-b": ("minio.team-b.svc.cluster.local", ["10.96.3.4"]),
    # A cluster may have public addresses.
    "minio.team-c": ("minio.team-c.svc.cluster.local", ["93.184.216.35"]),
    "node.example.com": ("node.example.com", ["93.184.216.40"]),
    "api.example.com": ("api.example.com", ["93.184.216.41"]),
}


def resolve(name: str, _port: None, **_more: Any) -> list[tuple[Any, ...]]:
    if name not in NAMES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    canonical, addresses = NAMES[name]
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, canonical, (address, 0)) for address in addresses]


def check(source: str = "s3://bucket", *, hosts: Sequence[str] = (), **more: str) -> None:
    check_hosts(SyncRequest(source=source, allowed_hosts=tuple(hosts), **more), resolve)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_ADDRESS", "93.184.216.40")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "93.184.216.41")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket",
        "webdav://files.example.com/x",
        "webdav://AK:SK@files.example.com/x",
        "s3://unknown.example.com/x",
        "minio://93.184.216.34:9000/b",
        "file:///data/",
    ],
)
def test_hosts_of_the_internet_are_allowed(uri: str) -> None:
    check(uri)


@pytest.mark.parametrize("host", [*(name for name in NAMES if name != "files.example.com"), "10.0.0.1", "localhost"])
def test_addresses_inside_are_refused(host: str) -> None:
    for uri in (f"webdav://AK:SK@{host}/x", f"WEBDAV://{host}/x", f"s3://bucket.{host}:9000/x"):
        with pytest.raises(JobFailed, match="is refused: it is") as refused:
            check(uri)
        assert "SK" not in str(refused.value)
    for option in ("worker", "manager"):
        with pytest.raises(JobFailed, match="is refused: it is"):
            check(**{option: f"files.example.com,me@{host}:80"})


@pytest.mark.parametrize(
    ("host", "allowed", "accepted"),
    [
        ("private.corp.example", "*.corp.example", True),
        ("private.corp.example", "10.1.0.0/16", True),
        ("private.corp.example", "10.2.0.0/16", False),
        ("minio.team-b", "minio.team-b", True),
        ("minio.team-c", "minio.team-b", False),
        ("metadata.corp.example", "*.corp.example", False),
        ("loopback.example.com", "loopback.example.com", False),
        ("loopback.example.com", "127.0.0.0/8", True),
        ("node.example.com", "93.184.216.40", True),
    ],
)
def test_an_operator_allows_hosts(host: str, allowed: str, *, accepted: bool) -> None:
    if accepted:
        check(f"webdav://{host}/x", hosts=[allowed])
    else:
        with pytest.raises(JobFailed, match="is refused"):
            check(f"webdav://{host}/x", hosts=[allowed])


def test_an_unknown_storage_is_refused() -> None:
    with pytest.raises(JobFailed, match="there is no storage ftp"):
        check("ftp://files.example.com/")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("minio://AK:SK@127.0.0.1:1/b/", "127.0.0.1 is refused"),
        ("webdav://localhost:1/", "localhost is refused"),
        ("file:///etc/", "is refused"),
    ],
)
async def test_the_engine_checks_before_it_runs_juicefs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.setenv("JUICEFS", "/no/such/program")
    engine = JuiceFSEngine(RuntimeConfig(tmp_path))
    with pytest.raises(JobFailed, match=message):
        await engine.do_sync_job(SyncRequest(source=source, destination=f"file://{tmp_path}/"), Progress())
