"""Reads lists page by page.

`make openapi` generates this module from its asynchronous counterpart.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobgate.client.wire import Call, query_of

if TYPE_CHECKING:
    from jobgate.client.synchronous.client import Client


def rows_of(client: "Client", call: Call[Any]) -> Iterator[Any]:
    """Yield the items of all pages."""
    token: str | None = None
    while True:
        query = tuple(pair for pair in call.query if pair[0] != "pageToken") + query_of(page_token=token)
        page = client.send(replace(call, query=query))
        for item in page.items:
            yield item
        token = page.next_page_token
        if token is None:
            return
