"""Long polls of what is read anew at each look."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from app.api.conditional import unchanged
from app.services.gateway import Services
from app.services.watching import Interest, Position

# Changes that come together wake a long poll once: it looks again for all of them.
_COALESCED: Final = 0.05

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Look(Generic[_T]):
    """What was seen, its ETag, and a position of the feed: what was seen may be newer, never older."""

    seen: _T
    tag: str
    position: Position | None


async def latest(
    services: Services,
    interest: Interest,
    if_none_match: str | None,
    wait: int,
    look: Callable[[], Awaitable[tuple[_T, str]]],
) -> Look[_T]:
    """Look until there is something that the caller does not have, or `wait` seconds are over."""
    watcher, clock = services.watcher, services.clock
    until = clock.monotonic() + wait
    with watcher.waiting(interest) as waiter:
        while True:
            position = watcher.position
            found = Look(*await look(), position)
            left = until - clock.monotonic()
            if not wait or left <= 0 or watcher.closing or not unchanged(if_none_match, found.tag):
                return found
            await waiter.wait(left)
            await asyncio.sleep(_COALESCED)
