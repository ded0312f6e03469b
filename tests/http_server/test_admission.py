"""Every request has a share while it runs, and a long body goes to the transport in pieces."""

import asyncio
from typing import Any

import pytest

from app.fairness.share import FairShares, caller, hold, identify
from app.http_server.admission import PIECE, admit

TOKEN = [(b"authorization", b"Bearer t")]


class Client:
    def abort(self) -> None:
        raise AssertionError("nobody waits for its memory")

    def is_gone(self) -> bool:
        return False


async def served(app: Any, shares: FairShares, headers: list[tuple[bytes, bytes]] | None = None) -> list[Any]:
    """Run the application for one request in a task, and return what it sent."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append((message, shares.memory.budget.held))

    run = admit(app, shares, "192.0.2.1", headers or [], Client())
    async with asyncio.TaskGroup() as group:
        group.create_task(run({}, None, send))
    assert shares.memory.budget.held == 0
    return sent


async def test_a_long_body_is_sent_in_pieces_and_held_until_its_end() -> None:
    body = bytes(range(256)) * (PIECE // 100)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await hold(10 * len(body))
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": body})

    sent = [(message, held) for message, held in await served(app, FairShares()) if "body" in message]
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
    await served(refused, shares, [(b"authorization", b"Bearer invented")])
    await served(app, shares)
    address = "192.0.2.1"
    assert seen == [address, "the token", "the token", "the token", address, address, address]


async def test_the_share_is_released_if_the_handler_fails() -> None:
    shares = FairShares()

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        await hold(1000)
        raise ConnectionError

    with pytest.RaisesGroup(ConnectionError):
        await served(app, shares)
    assert shares.memory.budget.held == 0
