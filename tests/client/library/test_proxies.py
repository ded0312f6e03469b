"""Which proxy the requests to a gateway pass, and what is said about one that does not work."""

import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from jobgate.cli.command import app
from jobgate.client import Client, RetryPolicy, config
from jobgate.client.errors import InvalidProxyError, ProblemError, ProxyError
from jobgate.client.proxies import proxy_of
from tests.support.machine.ports import kept_port

GATEWAY = "https://jobgate.example"
PROXY = "http://proxy.example:3128"
Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        (GATEWAY, {}, None),
        (GATEWAY, {"HTTPS_PROXY": PROXY}, PROXY),
        (GATEWAY, {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        (GATEWAY, {"HTTP_PROXY": PROXY}, None),
        (GATEWAY, {"ALL_PROXY": PROXY}, PROXY),
        (GATEWAY, {"HTTPS_PROXY": PROXY, "ALL_PROXY": "socks5://x"}, PROXY),
        (GATEWAY, {"ALL_PROXY": "proxy.example:3128"}, PROXY),
        (GATEWAY, {"ALL_PROXY": " "}, None),
        ("http://jobgate.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://jobgate.example", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, None),
        ("http://127.0.0.1:8080", {"ALL_PROXY": PROXY}, None),
        ("http://localhost:8080", {"ALL_PROXY": PROXY}, None),
        ("http://[::1]:8080", {"ALL_PROXY": PROXY}, None),
    ],
)
def test_the_variable_of_the_scheme_comes_before_that_of_all(
    url: str, environment: dict[str, str], expected: str | None
) -> None:
    found = proxy_of(url, environment)
    assert (found and found.url) == expected


@pytest.mark.parametrize(
    ("entries", "url", "is_excepted"),
    [
        ("*", GATEWAY, True),
        ("jobgate.example", GATEWAY, True),
        ("other, .example", GATEWAY, True),
        ("*.example", GATEWAY, True),
        ("EXAMPLE", GATEWAY, True),
        ("gate.example", GATEWAY, False),
        ("jobgate.example:443", GATEWAY, True),
        ("jobgate.example:8443", GATEWAY, False),
        ("jobgate.example:8443", "https://jobgate.example:8443", True),
        ("192.168.0.0/16", "https://192.168.3.4", True),
        ("192.168.0.0/16", "https://192.169.3.4", False),
        ("192.168.3.4", "https://192.168.3.4", True),
        ("fd00::/8", "https://[fd00::1]", True),
        ("[fd00::1]", "https://[fd00::1]:8443", True),
        ("", GATEWAY, False),
        (",,/:", GATEWAY, False),
    ],
)
def test_no_proxy_excepts_subdomains_and_networks(entries: str, url: str, *, is_excepted: bool) -> None:
    assert (proxy_of(url, {"ALL_PROXY": PROXY, "NO_PROXY": entries}) is None) == is_excepted
    # A proxy that cannot be used is no error for a gateway that needs none.
    if is_excepted:
        assert proxy_of(url, {"ALL_PROXY": "socks4://127.0.0.1:9", "no_proxy": entries}) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks4://127.0.0.1:9", "the proxy socks4://127.0.0.1:9 cannot be used; accepted: http://HOST:PORT"),
        ("foo://me:secret@x", "the proxy foo://x cannot be used"),
        ("http://", "the proxy http:// cannot be used"),
        ("http://[::1", "is no address of a proxy"),
        ("http://me:secret@host:port", "is no address of a proxy"),
        ("http://me:secret@-ü-", "is no address of a proxy"),
        ("http://\udcff", "is no address of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(value: str, said: str) -> None:
    with pytest.raises(InvalidProxyError) as raised:
        proxy_of(GATEWAY, {"ALL_PROXY": value})
    assert str(raised.value).startswith("ALL_PROXY")
    assert said in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_socks_proxy_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobgate.client.proxies.importlib.util.find_spec", lambda _: None)
    with pytest.raises(InvalidProxyError, match="needs the package socksio, which is not installed"):
        proxy_of(GATEWAY, {"ALL_PROXY": "socks5://127.0.0.1:1080"})
    monkeypatch.setattr("jobgate.client.proxies.importlib.util.find_spec", lambda _: object())
    assert proxy_of(GATEWAY, {"ALL_PROXY": "socks5h://127.0.0.1:1080"}) is not None


@pytest.mark.parametrize("value", ["socks4://127.0.0.1:9", "foo://x", "http://[::1"])
@pytest.mark.parametrize("arguments", [["list"], ["logs", "tour", "-f"], ["login", GATEWAY, "--token", "t"]], ids=str)
def test_a_command_with_an_unusable_proxy_ends_with_the_status_of_wrong_usage(
    value: str, arguments: list[str], tmp_path: Path
) -> None:
    environment = dict.fromkeys(config.VARIABLES) | {
        "ALL_PROXY": value,
        "JOBGATE_SERVER": GATEWAY,
        "JOBGATE_CONFIG": str(tmp_path / "config.yaml"),
    }
    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("jobgate: ALL_PROXY")


def test_a_proxy_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with kept_port() as port:
        proxy = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("ALL_PROXY", proxy.replace("//", "//me:secret@"))
        once = RetryPolicy(attempts=1)
        with Client("http://jobgate.example", retries=once) as client, pytest.raises(ProxyError) as raised:
            client.version()
    said = str(raised.value)
    assert said.startswith(f"no answer from the proxy {proxy} of ALL_PROXY, through which http://jobgate.example is")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (407, b"", "is empty; a proxy that asks for a password has the form http://USER:PASSWORD@HOST:PORT"),
        (502, b"<html>broken</html>", "is no problem document: <html>broken</html>"),
    ],
)
def test_an_answer_of_the_proxy_names_it(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, said: str) -> None:
    with serving(status, body) as port:
        monkeypatch.setenv("ALL_PROXY", f"http://user:secret@127.0.0.1:{port}")
        with (
            Client("http://jobgate.example", retries=RetryPolicy(attempts=1)) as client,
            pytest.raises(ProblemError, match=re.escape(said)) as refused,
        ):
            client.kinds()
    assert f"the proxy http://127.0.0.1:{port} of ALL_PROXY" in str(refused.value)


@contextmanager
def serving(status: int, body: bytes) -> Iterator[int]:
    """Answer one connection with a status and a body, and yield the port."""

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode() + body)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer, listener)
        yield listener.getsockname()[1]
        answered.result()
