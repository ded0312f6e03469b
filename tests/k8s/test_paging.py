"""Pages are used in order, each while the next one is requested, and no request outlives the reader."""

import asyncio
from itertools import pairwise

import pytest

from app.base.cancellation import TaskGroup
from app.domain.kubernetes.objects import Pod
from app.k8s.codec import ListPage
from app.k8s.errors import BrokenAnswer, KubeGone
from app.k8s.watching.paging import read_ahead

EXPIRED = KubeGone(410, "Expired", "the continue token is too old")


class Server:
    """Serves the pages with these tokens while `open` is set. The request for the page `gone` fails.

    `events` are the requests, and the pages that are used, which takes two turns of the loop.
    """

    def __init__(self, *tokens: str) -> None:
        self._following = dict(pairwise(["", *tokens, ""]))
        self.open = asyncio.Event()
        self.open.set()
        self.requests = 0
        self.events: list[str] = []

    async def list_page(self, token: str) -> ListPage[Pod]:
        self.events.append(f"list {token}".rstrip())
        self.requests += 1
        try:
            await self.open.wait()
        finally:
            self.requests -= 1
        if token == "gone":
            raise EXPIRED
        return ListPage(items=(), resource_version=token, continue_token=self._following[token])

    async def use(self, page: ListPage[Pod]) -> None:
        self.events.append(f"use {page.resource_version}".rstrip())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.events.append(f"used {page.resource_version}".rstrip())


async def test_one_page_is_requested_while_one_is_used() -> None:
    server = Server("1", "2")
    await read_ahead(server.list_page, server.use)
    assert server.events == [
        *("list", "use", "list 1", "used"),
        *("use 1", "list 2", "used 1"),
        *("use 2", "used 2"),
    ]


async def test_a_single_page_is_used() -> None:
    server = Server()
    await read_ahead(server.list_page, server.use)
    assert server.events == ["list", "use", "used"]


async def test_an_error_of_the_next_page_ends_the_use_of_the_page_and_is_raised() -> None:
    server = Server("gone")
    with pytest.raises(KubeGone) as raised:
        await read_ahead(server.list_page, server.use)
    assert raised.value is EXPIRED
    assert server.events == ["list", "use", "list gone"]


async def test_an_error_of_the_use_of_a_page_ends_the_request_and_is_raised() -> None:
    server = Server("1")
    broken = BrokenAnswer("no pod")

    async def use(_: ListPage[Pod]) -> None:
        server.open.clear()
        await asyncio.sleep(0)
        assert server.requests == 1
        raise broken

    with pytest.raises(BrokenAnswer) as raised:
        await read_ahead(server.list_page, use)
    assert raised.value is broken
    assert server.requests == 0


@pytest.mark.parametrize("used", [0, 1])
async def test_a_cancelled_reader_leaves_no_request(used: int) -> None:
    server = Server("1", "2")

    async def use(page: ListPage[Pod]) -> None:
        await server.use(page)
        server.open.clear()

    if not used:
        server.open.clear()
    async with TaskGroup() as group:
        reader = group.create_task(read_ahead(server.list_page, use))
        while server.open.is_set() or not server.requests:
            await asyncio.sleep(0)
        reader.cancel()
    assert reader.cancelled()
    assert server.requests == 0


async def test_an_error_of_a_cancelled_request_does_not_replace_the_cancellation() -> None:
    begun = asyncio.Event()

    async def list_page(token: str) -> ListPage[Pod]:
        if token:
            begun.set()
            try:
                await asyncio.Future()
            except asyncio.CancelledError:
                raise BrokenAnswer("the connection was closed") from None
        return ListPage(items=(), resource_version="", continue_token="1")

    async def use(_: ListPage[Pod]) -> None:
        await asyncio.Future()

    async with TaskGroup() as group:
        reader = group.create_task(read_ahead(list_page, use))
        await begun.wait()
        reader.cancel()
    assert reader.cancelled()
