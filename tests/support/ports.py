"""A port that stays a test's own while the process that serves on it is dead: elsewhere somebody else would draw it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[str]:
    """A free loopback port, bound but not listening: only who names it and reuses addresses, as servers do, gets it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield str(holder.getsockname()[1])
