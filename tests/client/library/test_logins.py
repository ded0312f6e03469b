"""The gateway of a client without an address, private certificate authorities, and who the gateway takes a user for."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner
from typing_extensions import override

from devcluster import clock
from devcluster.certificates import Certificates
from jobgate.cli.command import app
from jobgate.client import AsyncClient, Client, InvalidAuthorityError, RetryPolicy, UnreachableError, config
from tests.client.scripted import RunCommand, ok, page, problem

CALLER = {"name": "me", "role": "submitter", "namespaces": ["vision"], "grants": [], "administers": False}


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"items": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def private_gateway(directory: Path) -> Iterator[tuple[str, str]]:
    """A server whose authority no system knows: its address, and the file of the authority."""
    certificates = Certificates(directory, "127.0.0.1")
    assert certificates.renew(clock.now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.crt", directory / "server.key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}", str(directory / "ca.crt")
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of contexts of this user, which is the only source."""
    for variable in config.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "config.yaml"
    monkeypatch.setenv("JOBGATE_CONFIG", str(file))
    return file


def test_a_client_without_an_address_uses_the_saved_login(saved: Path) -> None:
    lab = config.Context(server="http://lab.example", token="jg_lab", namespace="vision")
    config.save(saved, config.Contexts(current="lab", contexts={"lab": lab}))
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return page([])

    with Client(transport=httpx2.MockTransport(answer)) as client:
        assert list(client.jobs.list()) == []
    assert str(asked[0].url).startswith("http://lab.example/api/v1/namespaces/vision/jobs")
    assert asked[0].headers["Authorization"] == "Bearer jg_lab"


async def test_both_clients_take_the_gateway_of_the_environment(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not saved.exists()
    monkeypatch.setenv("JOBGATE_SERVER", "http://lab.example/")
    monkeypatch.setenv("JOBGATE_TOKEN", "jg_1")
    monkeypatch.setenv("JOBGATE_NAMESPACE", "vision")
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return page([])

    with Client(transport=httpx2.MockTransport(answer)) as client:
        assert list(client.jobs.list()) == []
    async with AsyncClient(namespace="other", token="jg_2", transport=httpx2.MockTransport(answer)) as other:
        assert [job async for job in other.jobs.list()] == []
    assert [request.url.path.split("/")[4] for request in asked] == ["vision", "other"]
    assert [request.headers["Authorization"] for request in asked] == ["Bearer jg_1", "Bearer jg_2"]


def test_an_address_has_no_token_of_another_gateway(saved: Path) -> None:
    lab = config.Context(server="http://lab.example", token="jg_lab")
    config.save(saved, config.Contexts(current="lab", contexts={"lab": lab}))

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert "Authorization" not in request.headers
        return page([])

    with Client("http://other.example", transport=httpx2.MockTransport(answer)) as client:
        assert list(client.jobs.list()) == []


def test_a_private_authority_is_saved_with_the_login(saved: Path, tmp_path: Path) -> None:
    """A real handshake, through the command and then through a client without arguments."""
    (tmp_path / "tls").mkdir()
    with private_gateway(tmp_path / "tls") as (url, ca_file):
        refused = CliRunner().invoke(app, ["login", url, "--token", "jg_1"])
        assert refused.exit_code == 2
        assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr
        assert "--ca-file FILE" in refused.stderr
        accepted = CliRunner().invoke(app, ["login", url, "--token", "jg_1", "--ca-file", ca_file])
        assert accepted.exit_code == 0, accepted.output
        assert config.load(saved).contexts["default"].ca_file == ca_file
        with Client() as client:
            assert list(client.jobs.list()) == []
        with Client(url, retries=RetryPolicy(attempts=1)) as other, pytest.raises(UnreachableError):
            list(other.jobs.list())


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_authorities_is_an_error_that_names_it(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidAuthorityError, match=str(file)):
        Client("https://lab.example", ca_file=str(file))


def test_a_login_with_a_wrong_token_says_so(run: RunCommand, tmp_path: Path) -> None:
    result, _ = run(["login", "http://lab", "--token", "wrong"], problem(401, "Unauthenticated"))
    assert result.exit_code == 2
    assert result.stderr == "jobgate: the gateway http://lab does not accept this token; nothing was saved\n"
    assert not (tmp_path / "none.yaml").exists()


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, "me, submitter in vision of http://127.0.0.1:8080\n"),
        ({"namespaces": None, "role": "admin"}, "me, admin in all namespaces of http://127.0.0.1:8080\n"),
        ({"namespaces": []}, "me, submitter in no namespace of http://127.0.0.1:8080\n"),
    ],
)
def test_whoami_shows_the_caller(run: RunCommand, changed: dict[str, object], shown: str) -> None:
    result, script = run(["whoami"], ok(CALLER | changed))
    assert result.stdout == shown
    assert script.requests[0].url.path == "/api/v1/whoami"
