"""`jobgate login` at an OIDC issuer with a device code, and the renewal of its tokens."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import msgspec
import pytest
import pytest_asyncio
from typer.testing import CliRunner, Result

from devcluster import clock
from devcluster.certificates import Certificates
from jobgate.cli import oidc
from jobgate.cli.command import app
from jobgate.client import config, renewal
from tests.support.gateways.gateway import running_gateway
from tests.support.gateways.oidc_issuer import running_issuer
from tests.support.gateways.oidc_site import Site, running_site
from tests.support.waiting import until

HOSTILE_DEVICE = b'{"device_code": "d", "user_code": "\\u001b[2J", "verification_uri": "https://x", "expires_in": 1}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between polls, which end at once."""
    found: list[float] = []
    begin = oidc.sign_in

    def sign_in(gateway: config.Context, issuer: Any, announce: Any) -> Any:
        return begin(gateway, issuer, announce, found.append)

    monkeypatch.setattr(oidc, "sign_in", sign_in)
    return found


async def run(file: Path, *arguments: str, stdin: str | None = None) -> Result:
    environment = dict.fromkeys(config.VARIABLES) | {"JOBGATE_CONFIG": str(file)}
    # In a thread, because the gateway and the issuer run in the event loop of the test.
    return await asyncio.to_thread(
        CliRunner().invoke, app, list(arguments), input=stdin, env=environment, prog_name="jobgate"
    )


async def login(site: Site, file: Path, *arguments: str) -> Result:
    return await run(file, "login", site.gateway.url, "-n", "team", *arguments)


async def test_a_user_signs_in_with_a_device_code(site: Site, file: Path, pauses: list[float]) -> None:
    site.issuer.device_answers = ["authorization_pending", "slow_down", "authorization_pending"]
    result = await login(site, file)
    assert result.exit_code == 0, result.output
    assert f"open {site.issuer.url}/activate?user_code=WDJB-MJHT in a browser" in result.stderr
    assert pauses == [1, 1, 6, 6]
    assert file.stat().st_mode & 0o777 == 0o600
    saved = config.load(file).contexts["default"]
    assert (saved.refresh_token or "").rpartition(".")[2] in site.issuer.refresh_tokens
    assert saved.token is not None
    assert saved.token not in result.output
    listed = await run(file, "list")
    assert listed.exit_code == 0, listed.output


async def test_an_expired_token_is_renewed_once_for_commands_at_the_same_time(
    site: Site, file: Path, pauses: list[float]
) -> None:
    assert (await login(site, file)).exit_code == 0
    saved = config.load(file)
    old = saved.contexts["default"]
    due = msgspec.structs.replace(old, token="expired", expires_at=datetime.now(UTC) - timedelta(hours=1))  # noqa: TID251
    config.save(file, config.with_context(saved, "default", due))
    before = site.issuer.requests["/token"]
    warnings: list[str] = []
    found = await asyncio.gather(
        *(asyncio.to_thread(renewal.renew, due, file, "default", warnings.append) for _ in range(3))
    )
    assert warnings == []
    assert len({each.token for each in found} - {"expired"}) == 1
    assert (await run(file, "list")).exit_code == 0
    assert site.issuer.requests["/token"] - before == 1
    assert config.load(file).contexts["default"].refresh_token not in (None, old.refresh_token)
    assert len(pauses) == 1


@pytest.mark.parametrize("hours", [-3, 3])
async def test_a_token_is_renewed_when_it_ends_also_if_the_clock_of_the_client_is_wrong(
    site: Site, file: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    def wrong() -> datetime:
        return datetime.now(UTC) + timedelta(hours=hours)  # noqa: TID251

    monkeypatch.setattr(renewal, "_now", wrong)
    assert (await login(site, file)).exit_code == 0
    saved = config.load(file).contexts["default"]
    assert saved.token is not None
    expiry = jwt.decode(saved.token, options={"verify_signature": False})["exp"]
    assert saved.expires_at is not None
    late = saved.expires_at - timedelta(hours=hours) - datetime.fromtimestamp(expiry, UTC)
    assert timedelta() <= late < timedelta(minutes=1), "the leeway of the gateway, and the time until its answer"
    before = site.issuer.requests["/token"]
    assert (await run(file, "list")).exit_code == 0
    assert site.issuer.requests["/token"] == before
    assert len(pauses) == 1


async def test_a_token_is_renewed_for_one_command_if_the_file_cannot_be_written(
    site: Site, file: Path, pauses: list[float]
) -> None:
    assert (await login(site, file)).exit_code == 0
    saved = config.load(file)
    due = msgspec.structs.replace(
        saved.contexts["default"], token=site.issuer.token(exp=1), expires_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    config.save(file, config.with_context(saved, "default", due))
    # In the way of the lock and of the file that replaces the old one. The tests may run as root, for whom every
    # directory is writable.
    for blocked in (f"{file.name}.lock", f"{file.name}.{os.getpid()}"):
        file.with_name(blocked).unlink(missing_ok=True)
        file.with_name(blocked).mkdir()
    result = await run(file, "list")
    assert result.exit_code == 0, result.output
    assert "the renewed token is not saved" in result.stderr
    assert config.load(file).contexts["default"] == due
    assert len(pauses) == 1


async def test_the_sign_in_goes_on_after_polls_without_an_answer(
    site: Site, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.issuer.device_answers = ["authorization_pending", "slow_down"]
    begin, exchange, found = oidc.sign_in, renewal.exchange, list[float]()

    def pause(seconds: float) -> None:
        found.append(seconds)
        site.issuer.replies = {"/token": (500, b"{}")} if len(found) == 2 else {}

    def exchanged(*arguments: Any) -> Any:
        return exchange(
            config.Context(server="http://127.0.0.1:1") if len(found) == 3 else arguments[0], *arguments[1:]
        )

    monkeypatch.setattr(oidc, "exchange", exchanged)
    monkeypatch.setattr(oidc, "sign_in", lambda server, issuer, announce: begin(server, issuer, announce, pause))
    result = await login(site, file)
    assert result.exit_code == 0, result.output
    # Confirmed at the fifth poll, after: not yet, an error of the issuer, no gateway, too fast.
    assert found == [1, 1, 2, 4, 6]


async def test_a_sign_in_without_an_answer_ends_with_its_code(site: Site, file: Path, pauses: list[float]) -> None:
    site.issuer.replies = {"/token": (503, b"{}")}
    result = await login(site, file)
    assert result.exit_code == 2
    assert "not confirmed in time: the issuer has answered a sign-in with the status 503" in result.stderr
    assert sum(pauses) >= 600
    assert max(pauses) == 60


async def test_a_refused_renewal_asks_for_a_new_login(site: Site, file: Path, pauses: list[float]) -> None:
    assert (await login(site, file)).exit_code == 0
    saved = config.load(file)
    due = msgspec.structs.replace(
        saved.contexts["default"], refresh_token="unknown", expires_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    config.save(
        file, config.with_context(saved, "default", msgspec.structs.replace(due, token=site.issuer.token(exp=1)))
    )
    result = await run(file, "list")
    assert result.exit_code == 2
    assert "the token has expired" in result.stderr
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device_answers": ["access_denied"]}, "access_denied"),
        ({"device_answers": ["authorization_pending", *["slow_down"] * 700]}, "not confirmed in time"),
        ({"replies": {"/device": (500, b"")}}, "gives no device code"),
        ({"replies": {"/device": (200, b"{}")}}, "gives no device code"),
        ({"replies": {"/device": (200, HOSTILE_DEVICE)}}, "not valid"),
        ({"user": {"sub": "u", "groups": []}}, "none of its groups has a grant"),
    ],
)
async def test_a_failed_sign_in_saves_nothing(
    site: Site, file: Path, pauses: list[float], change: dict[str, Any], words: str
) -> None:
    for name, value in change.items():
        setattr(site.issuer, name, value)
    result = await login(site, file)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert "\x1b" not in result.output
    assert not file.exists()
    assert len(pauses) <= 600


async def test_a_token_is_preferred_unless_oidc_is_asked_for(site: Site, file: Path, pauses: list[float]) -> None:
    headers = await site.gateway.token("viewer", "team")
    token = headers["Authorization"].removeprefix("Bearer ")
    for arguments in (("--token", token), ("--no-oidc",)):
        result = await run(file, "login", site.gateway.url, "-n", "team", *arguments, stdin=f"{token}\n")
        assert result.exit_code == 0, result.output
        assert config.load(file).contexts["default"].refresh_token is None
    assert pauses == []
    assert (await login(site, file, "--token", token, "--oidc")).exit_code == 0
    assert len(pauses) == 1


async def test_a_gateway_without_an_issuer_asks_for_a_token(closed_gateway_url: str, file: Path) -> None:
    result = await run(file, "login", closed_gateway_url, "--oidc")
    assert result.exit_code == 2
    assert "has no OIDC issuer" in result.stderr
    asked = await run(file, "login", closed_gateway_url, stdin="jg_a_b\n")
    assert "does not accept this token" in asked.output


@pytest_asyncio.fixture
async def closed_gateway_url(database_url: str) -> AsyncIterator[str]:
    async with running_gateway(database_url, closed=True) as running:
        yield running.url


@asynccontextmanager
async def tls_before(url: str, directory: Path) -> AsyncIterator[str]:
    """The address of a proxy that ends TLS, with a certificate of an authority that no system knows."""
    parts = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.crt", directory / "server.key")

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(parts.hostname, parts.port)
        with suppress(ConnectionError):
            await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_sign_in_and_its_renewal_use_the_saved_authority(
    database_url: str, file: Path, pauses: list[float], tmp_path: Path
) -> None:
    assert Certificates(tmp_path / "tls", "127.0.0.1").renew(clock.now())
    async with running_issuer() as issuer, tls_before(issuer.url, tmp_path / "tls") as private_issuer:
        async with httpx2.AsyncClient() as client:
            document = (await client.get(f"{issuer.url}/.well-known/openid-configuration")).json()
        document["device_authorization_endpoint"] = f"{private_issuer}/device"
        issuer.replies["/.well-known/openid-configuration"] = (200, json.dumps(document).encode())
        issuer.user["groups"] = ["team"]
        async with running_site(database_url, issuer) as site, tls_before(site.gateway.url, tmp_path / "tls") as url:
            sign_in = site.gateway.services.sign_in
            assert sign_in is not None
            await until(lambda: sign_in.issuer.metadata is not None, what="the gateway has reached the issuer")
            refused = await run(file, "login", url, "--oidc")
            assert refused.exit_code == 2
            assert "jobgate login --ca-file FILE" in refused.stderr
            given = ("login", url, "--oidc", "--ca-file", str(tmp_path / "tls" / "ca.crt"))
            unreached = await run(file, *given)
            assert unreached.exit_code == 2
            assert "does not reach the namespace default; nothing was saved; accepted: -n team" in unreached.stderr
            signed_in = await run(file, *given, "-n", "team")
            assert signed_in.exit_code == 0, signed_in.output
            assert len(pauses) == 2
            saved = config.load(file)
            old = saved.contexts["default"]
            due = msgspec.structs.replace(old, token=issuer.token(exp=1), expires_at=datetime(2020, 1, 1, tzinfo=UTC))
            config.save(file, config.with_context(saved, "default", due))
            for command in (["list"], ["whoami"]):
                result = await run(file, *command)
                assert result.exit_code == 0, result.output
            assert config.load(file).contexts["default"].refresh_token != old.refresh_token
