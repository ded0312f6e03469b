"""What the composition root promises beyond putting parts together."""

import asyncio
import socket

import pytest

from app.bootstrap import NotConfigured, listening_socket, with_server_url
from app.settings import Settings


async def test_answers_leave_at_once() -> None:
    """Nagle's algorithm holds back an answer's second packet until the client has acknowledged the first: 40 ms."""
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
def test_pods_are_told_the_address_that_is_served_on_or_the_one_that_leads_to_it(given: str | None) -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        served = f"http://127.0.0.1:{listening.getsockname()[1]}"
        site = with_server_url(Settings(port=0, server_url=given), listening).site()
    assert site.server_url == ("http://jobgate.example" if given else served)


def test_an_ipv6_address_is_a_url_too() -> None:
    try:
        with listening_socket("::1", 0) as listening:
            port = listening.getsockname()[1]
            assert with_server_url(Settings(), listening).site().server_url == f"http://[::1]:{port}"
    except (OSError, NotConfigured):
        pytest.skip("this machine has no IPv6")
