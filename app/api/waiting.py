"""Long polls of what is read anew at each look."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from app.api.conditional import unchanged
from app.api.dependencies import Caller
from app.api.lasting import attended
from app.services.lasting import DENIED, Ending, Kind, refusal
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
    caller: Caller,
    interest: Interest,
    if_none_match: str | None,
    wait: int,
    look: Callable[[], Awaitable[tuple[_T, str]]],
) -> Look[_T]:
    """Look until there is something that the caller does not have, or `wait` seconds are over.

    Raises:
        TooManyRequests: too many wait already.
        Unauthenticated, Forbidden, Unavailable: the token was revoked, changed or could not be rechecked meanwhile.
    """
    watcher = caller.services.watcher
    position = watcher.position
    found = Look(*await look(), position)
    if not wait or not unchanged(if_none_match, found.tag):
        return found
    async with attended(caller, Kind.POLL, wait) as held:
        with watcher.waiting(interest) as waiter:
            while unchanged(if_none_match, found.tag):
                position = watcher.position
                found = Look(*await look(), position)
                if unchanged(if_none_match, found.tag):
                    await waiter.wait(wait)
                    await asyncio.sleep(_COALESCED)
    if held.ended in DENIED:
        raise refusal(held.ended)
    # The tag may hold more than what wakes a poll.
    return Look(*await look(), watcher.position) if held.ended is Ending.TIME_OVER else found
