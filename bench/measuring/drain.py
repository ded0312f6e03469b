"""Reads long answers and drops them.

    python -m bench.measuring.drain PORT PATH CONNECTIONS SECONDS < TOKEN

Each connection repeats the request until the time is over. The result is the number of MiB that arrived.
"""

import socket
import sys
import threading
import time
from typing import Final

_BUFFER: Final = 1024 * 1024
_PATIENCE: Final = 10.0  # seconds without a byte


def _drain(port: int, request: bytes, end: float, received: list[int]) -> None:
    buffer = bytearray(_BUFFER)
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection:
            connection.sendall(request)
            while time.monotonic() < end and (count := connection.recv_into(buffer)):
                received.append(count)


def main() -> None:
    port, path, connections, seconds = sys.argv[1:]
    token = sys.stdin.readline().strip()
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    received: list[int] = []
    arguments = (int(port), head.encode(), time.monotonic() + float(seconds), received)
    threads = [threading.Thread(target=_drain, args=arguments) for _ in range(int(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(received) / 1024 / 1024)


if __name__ == "__main__":
    main()
