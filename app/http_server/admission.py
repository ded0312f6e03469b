"""Gives each request its share of the process, and sends long bodies in pieces.

    request ─▶ its caller's turn ─▶ handler ─▶ body ─▶ pieces, as the client takes them ─▶ the share is released

Every answer passes here.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from app.fairness.answer_memory import Client
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.fairness.share import CURRENT, FairShares

PIECE: Final = 64 * 1024
"""Bytes of a body that the transport gets at once: it copies what the client does not take."""

Send: TypeAlias = Callable[[Any], Awaitable[None]]


def admit(app: Any, shares: FairShares, address: str, headers: Iterable[tuple[bytes, bytes]], client: Client) -> Any:
    """Return the ASGI application for one request. `client` is its connection."""
    credential = next((value for name, value in headers if name == b"authorization"), None)
    share = shares.share(address, credential, client)

    async def run(scope: Any, receive: Any, send: Send) -> None:
        async def sending(message: Any) -> None:
            body = message.get("body", b"")
            # A stream repeats a piece that had to wait, so its pieces stay whole.
            if len(body) <= UNCOUNTED_BYTES or message.get("more_body", False):
                await send(message)
                return
            # The share holds the bytes of the body in place of those that it was made of.
            share.answer.resize(len(body))
            share.answer.begin_sending()
            for begin in range(0, len(body), PIECE):
                piece, more = body[begin : begin + PIECE], begin + PIECE < len(body)
                await send({"type": message["type"], "body": piece, "more_body": more})

        CURRENT.set(share)
        try:
            await share.next_slice()
            await app(scope, receive, sending)
        finally:
            share.answer.release()

    return run
