"""Long-running requests: streams, long polls, logs and CSV of usage.

    track ─▶ counted against the limits ─▶ token rechecked every few seconds ─▶ ended, with the reason

A request above a limit never starts. Ending a request cancels it at its current `await`; `LongRequest.end_reason` then
says why.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import structlog

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.base.instruments import Values, expose
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.errors import DomainError, Forbidden, TooManyRequests, Unauthenticated, Unavailable
from app.fairness.share import release
from app.services import metrics
from app.services.access import Access, Principal
from app.services.limits.long_request_limits import LongRequestLimits

# Seconds. A recheck that takes longer, such as while no database connection is free, counts as failed.
_RECHECK_TIMEOUT: Final = 2.0
# Each ended request writes its last event, so the event loop runs other tasks after this many.
_ENDED_AT_ONCE: Final = 20

log = structlog.get_logger(__name__)


class LongRequestKind(StrEnum):
    """What a request is that stays open. LOG has a limit of its own: each may hold a connection to kube-apiserver."""

    STREAM = "stream"
    POLL = "poll"
    LOG = "log"
    CSV = "csv"


class EndReason(StrEnum):
    """Why a request was ended before it was complete."""

    REVOKED = "revoked"
    EXPIRED = "expired"
    CHANGED = "changed"
    UNCONFIRMED = "unconfirmed"
    SHUTDOWN = "shutdown"
    DISCONNECTED = "disconnected"
    TIMEOUT = "timeout"


DENIED: Final = frozenset({EndReason.REVOKED, EndReason.EXPIRED, EndReason.CHANGED, EndReason.UNCONFIRMED})
"""The reasons that withdraw access: after them the client must receive no more data."""


@dataclass(slots=True, eq=False, kw_only=True)
class LongRequest:
    """One long-running request.

    `confirmed_at` is the monotonic time of the last successful check of its token, if that is revocable. `logs` is the
    number of logs that it has open.
    """

    principal: Principal
    kind: LongRequestKind
    confirmed_at: float
    logs: int
    end_reason: EndReason | None = None
    _scope: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    def end(self, reason: EndReason) -> None:
        """Cancel the request at its current `await`. Only the first reason is kept."""
        # asyncio raises an error if a scope is rescheduled whose time has run out.
        if self.end_reason is None and not self._scope.expired():
            self.end_reason = reason
            self._scope.reschedule(asyncio.get_running_loop().time())


class LongRequests:
    """Counts, rechecks and ends the long-running requests of this process."""

    def __init__(self, access: Access, clock: Clock, limits: LongRequestLimits) -> None:
        self._access = access
        self._clock = clock
        self._limits = limits
        self._open: set[LongRequest] = set()
        self._of_token: Counter[str] = Counter()
        self._logs_of_token: Counter[str] = Counter()
        self._total = self._logs = 0
        self._closing = False

    @property
    def count(self) -> int:
        """The number of open long-running requests."""
        return len(self._open)

    @asynccontextmanager
    async def track(
        self, principal: Principal, kind: LongRequestKind, seconds: float | None = None
    ) -> AsyncIterator[LongRequest]:
        """Run the block until it completes, is ended, or has run for `seconds`; `end_reason` says which.

        Raises:
            TooManyRequests: a limit is reached. The block did not start.
        """
        self._require_room(principal, kind)
        release()
        request = LongRequest(principal=principal, kind=kind, confirmed_at=self._clock.monotonic(), logs=0)
        # There is no await since the check, so the limits are never exceeded.
        self._count(request, 1)
        self._count_logs(request, 1 if kind is LongRequestKind.LOG else 0)
        try:
            async with request._scope as scope:  # noqa: SLF001 - both classes are of this module
                if seconds is not None:
                    scope.reschedule(asyncio.get_running_loop().time() + seconds)
                if self._closing:
                    request.end(EndReason.SHUTDOWN)
                self._open.add(request)
                try:
                    yield request
                finally:
                    self._open.discard(request)
        except TimeoutError:
            # The block itself has raised it.
            if not request._scope.expired():  # noqa: SLF001 - as above
                raise
            request.end_reason = request.end_reason or EndReason.TIMEOUT
        finally:
            self._count_logs(request, 0)
            self._count(request, -1)

    def reserve_logs(self, request: LongRequest, logs: int) -> bool:
        """Set the number of open logs of a request, and return True. Return False if the limits do not permit it."""
        if self._logs_problem(request.principal, logs - request.logs):
            return False
        self._count_logs(request, logs)
        return True

    def close(self) -> None:
        """End all long-running requests, and every later one as soon as it starts: the process is stopping."""
        self._closing = True
        for request in list(self._open):
            request.end(EndReason.SHUTDOWN)

    async def run(self) -> None:
        """Recheck tokens until cancelled."""
        with expose({metrics.LONG_REQUESTS: self._open_by_kind}):
            for _ in rounds():
                await asyncio.sleep(self._limits.recheck)
                await self.recheck()

    def _open_by_kind(self) -> Values:
        counts = Counter(request.kind for request in self._open)
        return {(kind,): counts[kind] for kind in LongRequestKind}

    async def recheck(self) -> None:
        """Read all revocable tokens in use in one statement. End the requests whose tokens are not valid any more."""
        # First, because it needs no database.
        now = self._clock.now()
        await self._end({each: EndReason.EXPIRED for each in self._open if each.principal.has_expired(now)})
        requests = (request for request in self._open if request.end_reason is None)
        principals = {request.principal for request in requests if request.principal.is_revocable}
        if not principals:
            return
        try:
            async with asyncio.timeout(_RECHECK_TIMEOUT):
                current = await self._access.current(principals)
        except (DatabaseUnavailable, TimeoutError) as error:
            log.warning("tokens.not_rechecked", error=str(error) or "no answer in time")
            await self._end({each: EndReason.UNCONFIRMED for each in self._open if self._is_unconfirmed(each)})
            return
        confirmed_at = self._clock.monotonic()
        ending: dict[LongRequest, EndReason] = {}
        for request in self._open:
            found = current.get(request.principal)
            if found == request.principal:
                request.confirmed_at = confirmed_at
            elif request.principal in principals:  # a request that arrived during the read was authenticated just now
                ending[request] = EndReason.REVOKED if found is None else EndReason.CHANGED
        await self._end(ending)

    async def _end(self, ending: dict[LongRequest, EndReason]) -> None:
        for number, (request, reason) in enumerate(ending.items(), 1):
            # It may have ended while others were being ended.
            if request in self._open:
                request.end(reason)
            if number % _ENDED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _is_unconfirmed(self, request: LongRequest) -> bool:
        # The database confirms only revocable tokens, so its outage ends no other request.
        age = self._clock.monotonic() - request.confirmed_at
        return request.principal.is_revocable and age > self._limits.unconfirmed

    def _require_room(self, principal: Principal, kind: LongRequestKind) -> None:
        """Raise TooManyRequests if another open request of this principal and kind would exceed a limit."""
        limits = self._limits
        if self._of_token[principal.id] >= limits.per_token:
            raise _too_many(
                f"this token has {limits.per_token} open streams, long polls, logs and CSVs", "of this token"
            )
        if self._total >= limits.total:
            raise _too_many(f"this process has {limits.total} open streams, long polls, logs and CSVs")
        if kind is LongRequestKind.LOG and (problem := self._logs_problem(principal, 1)):
            raise problem

    def _logs_problem(self, principal: Principal, more: int) -> TooManyRequests | None:
        """Return the error if this number of additional open logs would exceed a limit; None if it would not."""
        per_token = max(1, self._limits.logs // 2)  # so that no token excludes the others
        if self._logs_of_token[principal.id] + more > per_token:
            return _too_many(f"this token has {per_token} open logs", "of this token")
        if self._logs + more > self._limits.logs:
            return _too_many(f"this process has {self._limits.logs} open logs")
        return None

    def _count(self, request: LongRequest, change: int) -> None:
        self._total += change
        _add(self._of_token, request.principal.id, change)

    def _count_logs(self, request: LongRequest, logs: int) -> None:
        change = logs - request.logs
        request.logs = logs
        self._logs += change
        _add(self._logs_of_token, request.principal.id, change)


def _add(counter: Counter[str], token: str, change: int) -> None:
    """Change the count of a token. A count of zero is removed, so that the counter does not grow with each token."""
    counter[token] += change
    if not counter[token]:
        del counter[token]


def refusal(reason: EndReason) -> DomainError:
    """Return the error that tells a client why its request was ended."""
    match reason:
        case EndReason.REVOKED:
            return Unauthenticated("the token has been revoked", code="InvalidToken")
        case EndReason.EXPIRED:
            return Unauthenticated("the token has expired", code="InvalidToken")
        case EndReason.CHANGED:
            return Forbidden("the rights of the token have changed: send the request again", code="AccessChanged")
        case EndReason.UNCONFIRMED:
            return Unavailable("the token could not be rechecked: send the request again", code="Unconfirmed")
    return Unavailable("the process is about to stop: send the request again", code="ShuttingDown")


def _too_many(what: str, whose: str = "") -> TooManyRequests:
    one = f"one {whose}".rstrip()
    return TooManyRequests(f"{what}, which is the limit: repeat the request when {one} has ended", code="TooManyOpen")
