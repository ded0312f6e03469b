"""Gives each request its share of the process, and sends long bodies in pieces.

    request ─▶ its caller's turn ─▶ handler ─▶ body ─▶ pieces, as the client takes them ─▶ the share is released

Every answer passes here, whichever handler gives it.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from app.fairness.answer_memory import Client
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.fairness.share import CURRENT, FairShares, Share
from app.http_server.writes import PIECE

Send: TypeAlias = Callable[[Any], Awaitable[None]]


def admitted(app: Any, shares: FairShares, address: str, headers: Iterable[tuple[bytes, bytes]], client: Client) -> Any:
    """Return the ASGI application for one request. `client` is its connection."""
    share = _share(shares, address, headers, client)

    async def run(scope: Any, receive: Any, send: Send) -> None:
        async def sending(message: Any) -> None:
            body = message.get("body", b"")
            # A stream repeats a piece that had to wait, so its pieces stay whole.
            if len(body) <= UNCOUNTED_BYTES or message.get("more_body", False):
                await send(message)
                return
            await _begin_sending(share, len(body))
            for begin in range(0, len(body), PIECE):
                piece, more = body[begin : begin + PIECE], begin + PIECE < len(body)
                await send({"type": message["type"], "body": piece, "more_body": more})

        await _with_share(share, lambda: app(scope, receive, sending))

    return run


def admitted_shortcut(
    handler: Any, shares: FairShares, address: str, headers: Iterable[tuple[bytes, bytes]], client: Client
) -> Any:
    """Return the handler of one request that takes a shortcut."""
    share = _share(shares, address, headers, client)

    async def run(respond: Send) -> None:
        async def responding(answer: Any) -> None:
            if len(answer.body) > UNCOUNTED_BYTES:
                await _begin_sending(share, len(answer.body))
            await respond(answer)

        await _with_share(share, lambda: handler(responding))

    return run


def _share(shares: FairShares, address: str, headers: Iterable[tuple[bytes, bytes]], client: Client) -> Share:
    credential = next((value for name, value in headers if name == b"authorization"), None)
    return shares.share(address, credential, client)


async def _with_share(share: Share, run: Callable[[], Awaitable[None]]) -> None:
    CURRENT.set(share)
    try:
        await share.next_slice()
        await run()
    finally:
        share.answer.release()


async def _begin_sending(share: Share, count: int) -> None:
    """Hold the bytes of the body in place of those that it was made of."""
    share.answer.resize(count)
    share.answer.begin_sending()
