"""Properties of the composition root: unbuffered answers, and the URL for pods."""

import asyncio
import socket

import pytest

from app.running.bootstrap import listening_socket, with_server_url
from app.settings import Settings


async def test_answers_are_sent_without_delay() -> None:
    """Nagle's algorithm delays the second packet of an answer by 40 ms, until the client acknowledges the first."""
    accepted = asyncio.Queue[socket.socket]()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.put_nowait(writer.get_extra_info("socket"))
        writer.close()

    with listening_socket("127.0.0.1", 0) as listening:
        server = await asyncio.start_server(answer, sock=listening)
        async with server, asyncio.timeout(60):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            connection = await accepted.get()
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("given", [None, "http://jobgate.example/"])
def test_the_url_for_pods_is_the_setting_or_the_served_address(given: str | None) -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        served = f"http://127.0.0.1:{listening.getsockname()[1]}"
        site = with_server_url(Settings(port=0, server_url=given), listening).site()
    assert site.server_url == ("http://jobgate.example" if given else served)


def test_an_ipv6_address_is_in_brackets() -> None:
    if not has_ipv6():
        pytest.skip("the loopback interface of this machine has no IPv6 address")
    with listening_socket("::1", 0) as listening:
        port = listening.getsockname()[1]
        assert with_server_url(Settings(), listening).site().server_url == f"http://[::1]:{port}"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
