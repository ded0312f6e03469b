"""Every request has a share while it runs, and a long body goes to the server in pieces."""

import asyncio
from typing import Any

from app.api.layers.answer import PIECE
from app.api.layers.requests import RequestLayer
from app.api.metrics import HttpMetrics
from app.fairness.share import SHARE, FairShares, caller, hold, identify
from app.http_server.forwarding import TrustedProxies

TOKEN = b"Bearer t"


class Client:
    def abort(self) -> None:
        raise AssertionError("nobody waits for its memory")

    def is_gone(self) -> bool:
        return False


async def served(app: Any, shares: FairShares, credential: bytes | None = None) -> list[Any]:
    """Run the application for one request in a task. Return the parts of the body, each with the bytes held then."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append((message, shares.memory.budget.held))

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    scope[SHARE] = shares.share("192.0.2.1", credential, Client())
    layer = RequestLayer(app, metrics=HttpMetrics(), access_log=False, proxies=TrustedProxies(), enveloped="/none")
    async with asyncio.TaskGroup() as group:
        group.create_task(layer(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
    assert shares.memory.budget.held == 0
    assert SHARE not in scope
    return sent


async def test_a_long_body_is_sent_in_pieces_and_held_until_its_end() -> None:
    body = bytes(range(256)) * (PIECE // 100)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await hold(10 * len(body))
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": body})

    sent = await served(app, FairShares())
    assert b"".join(message["body"] for message, _ in sent) == body
    assert max(len(message["body"]) for message, _ in sent) == PIECE
    assert [message["more_body"] for message, _ in sent] == [True] * (len(sent) - 1) + [False]
    assert {held for _, held in sent} == {len(body)}


async def test_a_piece_of_a_stream_stays_whole() -> None:
    piece = {"type": "http.response.body", "body": b"x" * 3 * PIECE, "more_body": True}

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(piece)

    assert await served(app, FairShares()) == [(piece, 0)]


async def test_a_request_counts_for_its_address_until_its_credential_was_verified() -> None:
    shares, seen = FairShares(), []

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(caller())
        identify("the token")
        seen.append(caller())

    async def refused(_scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(caller())

    await served(app, shares, TOKEN)
    await served(app, shares, TOKEN)
    await served(refused, shares, b"Bearer invented")
    await served(app, shares)
    address = "192.0.2.1"
    assert seen == [address, "the token", "the token", "the token", address, address, address]


async def test_the_share_is_released_if_the_handler_fails() -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        await hold(1000)
        raise ConnectionError

    [(problem, held)] = await served(app, FairShares())
    assert b"InternalError" in problem["body"]
    assert held == 1000
