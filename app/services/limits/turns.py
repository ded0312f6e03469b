"""Turns of requests at work that one process can do only a little of at a time, shared fairly among tokens.

    request ─▶ a turn is free: it runs
            └▶ it waits ─▶ its turn comes ─▶ it runs
                        └▶ no room is left ─▶ 503 Overloaded

An overloaded process refuses what it cannot do in a few seconds, because a client that waits for minutes repeats its
request, which adds to the load.
"""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Final

from app.domain.errors import Unavailable
from app.fairness.fair_memory import NoRoomError
from app.fairness.fair_slots import FairSlots, NoSlotError
from app.fairness.share import hold
from app.services import metrics

_NO_MEMORY: Final = metrics.OVERLOAD_REFUSALS.labels("answers")


class Overloaded(Unavailable):
    """Too many requests wait for their turn. The request had no effect."""

    default_code = "Overloaded"


async def room_for(count: int) -> None:
    """Wait until this request may hold this number of bytes for its documents and its answer.

    Raises:
        Overloaded: other requests use the memory for too long.
    """
    try:
        await hold(count)
    except NoRoomError:
        _NO_MEMORY.inc()
        raise Overloaded("this process has no memory for the request: repeat the request later") from None


class Turns:
    """Lets `at_once` requests run. Tokens that wait take turns, each with its oldest request.

    At most `max_waiting` requests wait, each at most `max_seconds`. If more arrive, the newest request of a token with
    the most waiting requests is refused. `work` names the work in metrics and errors, such as "submissions".
    """

    def __init__(self, work: str, *, at_once: int, max_waiting: int, max_seconds: float | None = None) -> None:
        self._work = work
        self._max_seconds = max_seconds
        self._slots = FairSlots(at_once, max_waiting)
        self._refused = metrics.OVERLOAD_REFUSALS.labels(work)
        metrics.WAITING.labels(work).set_function(lambda: self.waiting)

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return self._slots.waiting

    @asynccontextmanager
    async def turn(self, token: Hashable) -> AsyncIterator[None]:
        """Run the block when it is the turn of this token.

        Raises:
            Overloaded: too many requests wait, or this one has waited for too long. The block did not start.
        """
        try:
            await self._slots.take(token, self._max_seconds)
        except (NoSlotError, TimeoutError):
            raise self._overload_error() from None
        try:
            yield
        finally:
            self._slots.release()

    def _overload_error(self) -> Overloaded:
        self._refused.inc()
        return Overloaded(f"this process has too many waiting {self._work}: repeat the request later")
