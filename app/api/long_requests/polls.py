"""Long polls: `Prefer: wait` (RFC 7240) beside If-None-Match."""

from fastapi import Response

from app.api.answers.conditional import matches_tag
from app.api.answers.responses import polled_response
from app.api.long_requests.responses import track_while_connected
from app.api.requests.dependencies import Caller
from app.api.requests.parameters import PollOptions
from app.api.shared.polls import Poll, PollResult
from app.services.limits.long_requests import DENIED, LongRequestKind, refusal


async def wait_for_change(caller: Caller, poll: Poll, options: PollOptions) -> PollResult:
    """Return the result of the poll as soon as its tag is not in If-None-Match, or when the wait is over.

    The result has a body unless the caller already has its tag.

    Raises:
        TooManyRequests: too many requests of this token or process are waiting.
        Unauthenticated, Forbidden, Unavailable: the token was revoked, changed or could not be rechecked meanwhile.
    """
    known = options.if_none_match
    if not options.wait or known is None:
        return await _read_once(caller, poll, known)
    with caller.api.polls.join(poll) as (shared, waiter):
        result = await shared.current(known)
        if matches_tag(known, result.tag):
            # Only a request that really waits counts against the limits.
            async with track_while_connected(caller, LongRequestKind.POLL, options.wait) as tracked:
                while matches_tag(known, result.tag):
                    await waiter.wait(options.wait)
                    result = await shared.after_wake(known)
            if tracked.end_reason in DENIED:
                raise refusal(tracked.end_reason)
        if matches_tag(known, result.tag):
            return PollResult(result.tag, result.position, None)
        return await shared.with_body(result)


async def polled_list(caller: Caller, poll: Poll, options: PollOptions) -> Response:
    """Answer with the result of a poll of a list, and the position of the feed from which to watch its objects.

    Raises:
        as `wait_for_change`.
    """
    # Otherwise the first lists after a start would have no position from which to watch.
    await caller.services.watcher.begin()
    result = await wait_for_change(caller, poll, options)
    freshness = await caller.services.freshness.read()
    response = polled_response(result.body, result.tag, freshness)
    if result.position is not None:
        response.headers["Jobgate-Feed-Position"] = str(result.position)
    return response


async def _read_once(caller: Caller, poll: Poll, known: str | None) -> PollResult:
    # Taken before the read: the result may be newer than the position, never older.
    position = caller.services.watcher.position
    snapshot = await poll.read()
    body = None if matches_tag(known, snapshot.tag) else await snapshot.render()
    return PollResult(snapshot.tag, position, body)
