"""Which long-running requests a recheck of their tokens ends."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from typing_extensions import override

from app.db.postgres.errors import DatabaseUnavailable
from app.domain.access.actors import Actor
from app.domain.access.credentials import Role
from app.domain.access.grants import Grant
from app.services.access import Access, Principal
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.limits.long_requests import EndReason, LongRequest, LongRequestKind, LongRequests

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS: Final = LongRequestLimits(unconfirmed=15.0)
GRANTS: Final = (Grant(Role.VIEWER),)
STORED: Final = Principal(id="stored", actor=Actor("stored"), grants=GRANTS)
SIGNED: Final = Principal(
    id="signed", actor=Actor("signed"), grants=GRANTS, expires_at=NOW + timedelta(hours=1), is_revocable=False
)


class ManualClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed


class StoredTokens(Access):
    """Tokens in a database that the test stops. `valid` are the tokens that are not revoked."""

    def __init__(self, *valid: Principal) -> None:
        self.valid = set(valid)
        self.is_down = False

    @override
    async def authenticate(self, authorization: str | None) -> Principal:
        return STORED

    @override
    async def current(self, principals: Collection[Principal]) -> Mapping[Principal, Principal]:
        if self.is_down:
            raise DatabaseUnavailable("down")
        return {principal: principal for principal in principals if principal in self.valid}


@asynccontextmanager
async def held(requests: LongRequests, *principals: Principal) -> AsyncIterator[list[LongRequest]]:
    """Hold a stream of each principal open during the block. Yields the streams."""
    found: list[LongRequest] = []
    ended = asyncio.Event()

    async def hold(principal: Principal) -> None:
        async with requests.track(principal, LongRequestKind.STREAM) as request:
            found.append(request)
            if len(found) == len(principals):
                ended.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        for principal in principals:
            group.create_task(hold(principal))
        await ended.wait()
        yield found
        requests.close()


async def reasons_after(access: StoredTokens, *seconds: float) -> dict[str, EndReason | None]:
    """Recheck streams of both principals after each of the periods, and return why they were ended."""
    clock = ManualClock()
    requests = LongRequests(access, clock, LIMITS)
    async with held(requests, STORED, SIGNED) as streams:
        for each in seconds:
            clock.passed += each
            await requests.recheck()
        return {stream.principal.id: stream.end_reason for stream in streams}


@pytest.mark.parametrize(
    ("seconds", "stored"), [((LIMITS.unconfirmed,), None), ((LIMITS.unconfirmed, 1.0), EndReason.UNCONFIRMED)]
)
async def test_an_outage_of_the_database_ends_only_requests_whose_tokens_it_confirms(
    seconds: tuple[float, ...], stored: EndReason | None
) -> None:
    access = StoredTokens(STORED)
    access.is_down = True
    assert await reasons_after(access, *seconds) == {"stored": stored, "signed": None}


async def test_a_signed_token_ends_a_request_when_it_expires_during_an_outage() -> None:
    access = StoredTokens(STORED)
    access.is_down = True
    assert await reasons_after(access, 1.0, 3600.0) == {"stored": EndReason.UNCONFIRMED, "signed": EndReason.EXPIRED}


async def test_a_signed_token_is_not_looked_up_in_the_database() -> None:
    assert await reasons_after(StoredTokens(), 1.0) == {"stored": EndReason.REVOKED, "signed": None}
