"""Reserves a port for a test while its server process is dead. Otherwise another process could get the port."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[str]:
    """Reserve a free loopback port: bound, but not listening. Servers that name it can bind it with SO_REUSEADDR."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield str(holder.getsockname()[1])
