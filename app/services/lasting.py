"""Requests that last: streams, long polls and logs. Each is counted, rechecked and ended here.

    hold ─▶ counted against the limits ─▶ the token is checked again every few seconds ─▶ ended, with the reason

A request that is refused here was never started; one that is ended is cancelled at its present `await`, and finds the
reason in `Held.ended`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.cancellation import rounds
from app.clock import Clock
from app.db.errors import DatabaseUnavailable
from app.domain.errors import DomainError, Forbidden, TooManyRequests, Unauthenticated, Unavailable
from app.services.access import Access, Principal

# Of a recheck; one that takes longer, for want of a database connection, counts as failed.
_RECHECK_TIMEOUT: Final = 2.0
_ENDED_AT_ONCE: Final = 20

log = logging.getLogger(__name__)


class Kind(StrEnum):
    """What lasts. Logs of pods have a limit of their own: each holds a connection to the Kubernetes API server."""

    STREAM = "stream"
    POLL = "poll"
    LOG = "log"


class Ending(StrEnum):
    """Why a request was ended before it was done."""

    REVOKED = "revoked"
    CHANGED = "changed"
    UNCONFIRMED = "unconfirmed"
    SHUTDOWN = "shutdown"
    DISCONNECTED = "disconnected"
    TIME_OVER = "time over"


DENIED: Final = frozenset({Ending.REVOKED, Ending.CHANGED, Ending.UNCONFIRMED})
"""The endings after which nothing more may be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingLimits:
    """`total`, `per_token` and `logs` are requests of one process; the others are seconds.

    `recheck` is the interval at which tokens are checked. While Postgres does not answer, the last check is good for
    `unconfirmed`: a failover of Postgres is shorter than that.
    """

    total: int = 5000
    per_token: int = 2500
    logs: int = 50
    recheck: float = 3.0
    unconfirmed: float = 15.0


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """One request that lasts, in its own task."""

    principal: Principal
    confirmed_at: float
    ended: Ending | None = None
    _scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    def end(self, reason: Ending) -> None:
        """Cancel the request where it waits. Only the first reason counts."""
        if self.ended is None and not self._scope.expired():
            self.ended = reason
            self._scope.reschedule(asyncio.get_running_loop().time())


class Lasting:
    """All requests of this process that last."""

    def __init__(self, access: Access, clock: Clock, limits: LastingLimits) -> None:
        self._access = access
        self._clock = clock
        self._limits = limits
        self._held: set[Held] = set()
        self._of_token: Counter[str] = Counter()
        self._logs_of_token: Counter[str] = Counter()
        self._of_kind: Counter[Kind] = Counter()
        self._closing = False

    @property
    def count(self) -> int:
        """How many there are now."""
        return len(self._held)

    @asynccontextmanager
    async def hold(self, principal: Principal, kind: Kind, seconds: float | None = None) -> AsyncIterator[Held]:
        """Let the block run until it is done, must end, or has run for `seconds`; `Held.ended` says which.

        Raises:
            TooManyRequests: a limit is reached; nothing was started.
        """
        self._refuse_too_many(principal, kind)
        held = Held(principal=principal, confirmed_at=self._clock.monotonic())
        self._count(held, kind, 1)
        try:
            async with held._scope as scope:  # noqa: SLF001 - both are of this module
                if seconds is not None:
                    scope.reschedule(asyncio.get_running_loop().time() + seconds)
                if self._closing:
                    held.end(Ending.SHUTDOWN)
                self._held.add(held)
                try:
                    yield held
                finally:
                    self._held.discard(held)
        except TimeoutError:
            if not held._scope.expired():  # noqa: SLF001 - as above
                raise
            held.ended = held.ended or Ending.TIME_OVER
        finally:
            self._count(held, kind, -1)

    def close(self) -> None:
        """End all of them, and those that still come: the process is about to stop."""
        self._closing = True
        for held in list(self._held):
            held.end(Ending.SHUTDOWN)

    async def run(self) -> None:
        """Recheck tokens until cancelled."""
        for _ in rounds():
            await asyncio.sleep(self._limits.recheck)
            await self.recheck()

    async def recheck(self) -> None:
        """Look at all tokens in use again, in one statement, and end what they no longer allow."""
        ids = {held.principal.id for held in self._held}
        if not ids:
            return
        try:
            async with asyncio.timeout(_RECHECK_TIMEOUT):
                current = await self._access.current(ids)
        except (DatabaseUnavailable, TimeoutError) as error:
            log.warning("tokens cannot be rechecked: %s", str(error) or "no answer in time")
            await self._end({held: Ending.UNCONFIRMED for held in self._held if self._is_unconfirmed(held)})
            return
        now = self._clock.monotonic()
        due: dict[Held, Ending] = {}
        for held in self._held:
            found = current.get(held.principal.id)
            if found == held.principal:
                held.confirmed_at = now
            elif held.principal.id in ids:
                due[held] = Ending.REVOKED if found is None else Ending.CHANGED
        await self._end(due)

    async def _end(self, due: dict[Held, Ending]) -> None:
        """Each has something to send at its end, so the event loop gets other work in between."""
        for number, (held, reason) in enumerate(due.items(), 1):
            if held in self._held:
                held.end(reason)
            if number % _ENDED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _is_unconfirmed(self, held: Held) -> bool:
        return self._clock.monotonic() - held.confirmed_at > self._limits.unconfirmed

    def _refuse_too_many(self, principal: Principal, kind: Kind) -> None:
        limits = self._limits
        if self._of_token[principal.id] >= limits.per_token:
            raise _too_many(f"this token has {limits.per_token} streams, long polls and logs open here", "this token")
        if self._of_kind.total() >= limits.total:
            raise _too_many(f"{limits.total} streams, long polls and logs are open here", "anybody")
        if kind is Kind.LOG and self._logs_of_token[principal.id] >= max(1, limits.logs // 2):
            raise _too_many(f"this token reads {max(1, limits.logs // 2)} logs here", "this token")
        if kind is Kind.LOG and self._of_kind[kind] >= limits.logs:
            raise _too_many(f"{limits.logs} logs are being read here", "anybody")

    def _count(self, held: Held, kind: Kind, change: int) -> None:
        self._of_kind[kind] += change
        for of_token in (self._of_token, self._logs_of_token) if kind is Kind.LOG else (self._of_token,):
            of_token[held.principal.id] += change
            if not of_token[held.principal.id]:
                del of_token[held.principal.id]


def refusal(reason: Ending) -> DomainError:
    """The error that tells a client why its request was ended."""
    match reason:
        case Ending.REVOKED:
            return Unauthenticated("the token has been revoked", code="InvalidToken")
        case Ending.CHANGED:
            return Forbidden("what the token allows has changed: send the request again", code="AccessChanged")
        case Ending.UNCONFIRMED:
            return Unavailable("the token could not be rechecked: send the request again", code="Unconfirmed")
    return Unavailable("the process is about to stop: send the request again", code="ShuttingDown")


def _too_many(what: str, whose: str) -> TooManyRequests:
    return TooManyRequests(
        f"{what}, the most there may be: repeat it when one of {whose} has ended", code="TooManyOpen"
    )
