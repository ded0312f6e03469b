"""`jobgate demo --server` plays against a running gateway until its stories end or a signal stops it."""

import asyncio
import socket

from app.demo.run import INTERRUPTED, play_against


async def test_a_signal_ends_the_demo_while_the_gateway_does_not_answer() -> None:
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        async with asyncio.TaskGroup() as group:
            playing = group.create_task(play_against(f"http://127.0.0.1:{listener.getsockname()[1]}", None, stop))
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            stop.set()
        connection.close()
    assert playing.result() == INTERRUPTED
