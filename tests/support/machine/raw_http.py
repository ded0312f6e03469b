"""Raw TCP connections to an HTTP server, for requests that no HTTP client would send."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

PATIENCE = 120.0  # seconds; the machine may be busy


class Connection:
    """A raw TCP connection to an HTTP server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(
        cls, address: tuple[str, int], *, source: str | None = None, receive_buffer: int | None = None
    ) -> "Connection":
        """Connect, optionally from a source address and with a socket buffer of that many bytes."""
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.setblocking(False)  # noqa: FBT003 - the socket's own signature
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            if source is not None:
                client.bind((source, 0))
            async with asyncio.timeout(PATIENCE):
                await asyncio.get_running_loop().sock_connect(client, address)
                return cls(*await asyncio.open_connection(sock=client, limit=receive_buffer or 2**20))
        except BaseException:
            client.close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> bool:
        """Send data, and return whether the server still accepts it."""
        if self.writer.is_closing():
            return False
        self.writer.write(data)
        try:
            await self.writer.drain()
        except OSError:
            return False
        return True

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        heard = b""
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                while data := await self.reader.read(2**16):
                    heard += data
        return heard

    async def answer(self) -> tuple[int, bytes]:
        """The status and body of the next answer; status 0 if the connection ended without one."""
        async with asyncio.timeout(PATIENCE):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                return int(head.split(b" ", 2)[1]), await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return 0, b""


def request(
    method: str, path: str, *headers: str, body: bytes = b"", host: str = "localhost", length: bool = True
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if length and (body or method != "GET"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(pieces: Iterator[bytes], extension: bytes = b"") -> bytes:
    return b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n\r\n"
