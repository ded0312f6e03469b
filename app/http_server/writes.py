"""Joins the head of an answer with its body, so that a short answer takes one system call and one packet."""

import asyncio
from typing import Final

from typing_extensions import override

# Longer data is not joined, because that copies it: a client that reads slowly would make the process hold its copy.
PIECE: Final = 64 * 1024
"""Bytes of a body that the transport gets at once: it copies what the client does not take."""
_JOINED_BYTES: Final = 16 * 1024


def write_both(transport: asyncio.WriteTransport, first: bytes, second: bytes) -> None:
    """Write both, with one system call if the loop can do that."""
    if len(second) <= _JOINED_BYTES:
        transport.write(first + second)
    else:
        transport.writelines((first, second))


class JoinedWrites(asyncio.Transport):
    """The transport that uvicorn writes one answer to. It keeps the first write, the head, until the second one.

    Without a second write it sends the head in the next iteration of the event loop: a stream may have no data yet.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None
        self._has_written = False

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            write_both(self._transport, held, bytes(data))
        elif self._has_written:
            self._transport.write(data)
        else:
            self._has_written, self._held = True, bytes(data)
            self._loop.call_soon(self._flush)

    @override
    def close(self) -> None:
        self._flush()
        self._transport.close()

    @override
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            if not self._transport.is_closing():  # the client may have gone since
                self._transport.write(held)
