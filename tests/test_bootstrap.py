"""What the composition root promises beyond putting parts together."""

import asyncio
import socket

from app.bootstrap import _bound


async def test_answers_leave_at_once() -> None:
    """Nagle's algorithm holds back an answer's second packet until the client has acknowledged the first: 40 ms."""
    accepted = asyncio.Queue[socket.socket]()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.put_nowait(writer.get_extra_info("socket"))
        writer.close()

    with _bound("127.0.0.1", 0) as listening:
        server = await asyncio.start_server(answer, sock=listening)
        async with server, asyncio.timeout(60):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            connection = await accepted.get()
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            await writer.wait_closed()
