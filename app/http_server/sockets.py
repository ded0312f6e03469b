"""Creates the socket that a server listens on, and its URL."""

import socket


def bind(host: str, port: int) -> socket.socket:
    """Return a TCP socket that is bound but does not listen yet.

    Raises:
        OSError: the address does not belong to this machine, or the port is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only for sockets created with IPPROTO_TCP. Otherwise a body waits 40 ms for an
    # acknowledgement of the headers.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
