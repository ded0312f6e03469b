"""Reads lists page by page."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobgate.client.wire import Call, query_of

if TYPE_CHECKING:
    from jobgate.client.asynchronous.client import AsyncClient


async def rows_of(client: "AsyncClient", call: Call[Any]) -> AsyncIterator[Any]:
    """Yield the items of all pages."""
    token: str | None = None
    while True:
        query = tuple(pair for pair in call.query if pair[0] != "pageToken") + query_of(page_token=token)
        page = await client.send(replace(call, query=query))
        for item in page.items:
            yield item
        token = page.next_page_token
        if token is None:
            return
