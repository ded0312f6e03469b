"""The cluster's certificates: who trusts them, when they are replaced, and who may read the keys."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from devcluster import clock
from devcluster.certificates import CA_VALID, RENEW_BEFORE, SERVER_VALID, Certificates

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FILES = ("ca.crt", "ca.key", "server.crt", "server.key")


def made(directory: Path, host: str = "127.0.0.1", now: datetime = NOW) -> Certificates:
    certificates = Certificates(directory, host)
    assert certificates.renew(now)
    return certificates


def contents(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in FILES}


def changed(before: dict[str, bytes], directory: Path) -> set[str]:
    return {name for name, content in contents(directory).items() if content != before[name]}


def test_files_are_private(tmp_path: Path) -> None:
    made(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_client_that_trusts_the_authority_accepts_the_server(tmp_path: Path) -> None:
    """A handshake in memory; the system's own authorities would not do."""
    certificates = made(tmp_path, now=clock.now())
    trusting = ssl.create_default_context(cadata=certificates.authority_pem().decode())
    for host in ("127.0.0.1", "::1", "localhost"):
        shake_hands(certificates.server_context(), trusting, host)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(certificates.server_context(), trusting, "example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(certificates.server_context(), ssl.create_default_context(), "localhost")


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            sides.remove(side)
    assert not sides


@pytest.mark.parametrize(
    ("later", "host", "replaced"),
    [
        (timedelta(days=1), "127.0.0.1", set()),
        (SERVER_VALID - RENEW_BEFORE - timedelta(days=1), "127.0.0.1", set()),
        (SERVER_VALID - RENEW_BEFORE, "127.0.0.1", {"server.crt", "server.key"}),
        (SERVER_VALID * 2, "127.0.0.1", {"server.crt", "server.key"}),
        (CA_VALID - RENEW_BEFORE, "127.0.0.1", set(FILES)),
        (CA_VALID * 2, "127.0.0.1", set(FILES)),
        (-timedelta(days=30), "127.0.0.1", set(FILES)),  # the clock was set back: not valid yet
        (timedelta(0), "cluster.example", {"server.crt", "server.key"}),
        (timedelta(0), "10.1.2.3", {"server.crt", "server.key"}),
    ],
)
def test_what_is_replaced_when(tmp_path: Path, later: timedelta, host: str, replaced: set[str]) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    certificates = Certificates(tmp_path, host)
    assert certificates.renew(NOW + later) is bool(replaced)
    assert changed(before, tmp_path) == replaced
    assert not certificates.renew(NOW + later)
    server = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(certificates.authority_pem()))


@pytest.mark.parametrize(
    ("name", "content", "replaced"),
    [
        ("server.crt", b"", {"server.crt", "server.key"}),
        ("server.key", b"not a key", {"server.crt", "server.key"}),
        ("ca.key", b"", set(FILES)),
        ("ca.crt", b"not a certificate", set(FILES)),
    ],
)
def test_a_damaged_file_is_replaced(tmp_path: Path, name: str, content: bytes, replaced: set[str]) -> None:
    certificates = made(tmp_path)
    before = contents(tmp_path)
    (tmp_path / name).write_bytes(content)
    assert certificates.renew(NOW)
    assert changed(before, tmp_path) == replaced


@pytest.mark.parametrize("name", ["server", "ca"])
def test_a_key_of_another_certificate_is_replaced(tmp_path: Path, name: str) -> None:
    """A crash between the two writes leaves a new key beside an old certificate."""
    certificates = made(tmp_path / "one")
    made(tmp_path / "other")
    (tmp_path / "other" / f"{name}.key").replace(tmp_path / "one" / f"{name}.key")
    assert certificates.renew(NOW)
    certificates.server_context()
    assert not certificates.renew(NOW)


def test_a_running_server_shows_a_renewed_certificate(tmp_path: Path) -> None:
    now = clock.now()
    server = made(tmp_path / "old", now=now).server_context()
    renewed = made(tmp_path / "renewed", now=now)
    trusting = ssl.create_default_context(cadata=renewed.authority_pem().decode())
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, trusting, "localhost")
    renewed.load_into(server)
    shake_hands(server, trusting, "localhost")
