"""Reads the pages of a list, each while the one before is used."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from app.base.cancellation import CancellationFirst, TaskGroup
from app.k8s.codec import ListPage

T = TypeVar("T")


async def read_ahead(
    list_page: Callable[[str], Coroutine[Any, Any, ListPage[T]]], use: Callable[[ListPage[T]], Awaitable[None]]
) -> None:
    """Use the pages of a list in order. The next page is requested while one is used, so that both sides work.

    `list_page` gets the token of the page, which is empty for the first one. At most two pages are in memory. An error
    of either function cancels the other one, and is raised.
    """
    page = await list_page("")
    while page.continue_token:
        page = await _use_and_read(page, use, list_page(page.continue_token))
    await use(page)


async def _use_and_read(
    page: ListPage[T], use: Callable[[ListPage[T]], Awaitable[None]], request: Coroutine[Any, Any, ListPage[T]]
) -> ListPage[T]:
    # Without `CancellationFirst`, an error of the request that is cancelled would replace the cancellation.
    with CancellationFirst():
        try:
            async with TaskGroup() as group:
                following = group.create_task(request)
                await use(page)
        except BaseExceptionGroup as errors:
            # The one that came first. Callers handle the errors of `list_page`, not groups of them.
            raise errors.exceptions[0] from None
        return following.result()
