"""Finds out without a driver whether a PostgreSQL server accepts connections on a socket."""

import asyncio
import struct
from pathlib import Path

# Version 3.0 of the frontend/backend protocol: 3 << 16.
PROTOCOL = 196608
AUTHENTICATION = b"R"
TERMINATE = b"X" + struct.pack("!I", 4)


async def answers(socket: Path, *, user: str, timeout_seconds: float = 5.0) -> bool:
    """Return whether a connection reaches authentication. A server in recovery refuses it earlier."""
    writer = None
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await asyncio.open_unix_connection(socket)
            body = struct.pack("!I", PROTOCOL) + f"user\0{user}\0database\0postgres\0\0".encode()
            writer.write(struct.pack("!I", len(body) + 4) + body)
            reply = await reader.read(1)
            writer.write(TERMINATE)
            await writer.drain()
            return reply == AUTHENTICATION
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()
