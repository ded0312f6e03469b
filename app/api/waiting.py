"""Long polls: RFC 7240's `Prefer: wait` beside If-None-Match."""

from app.api.conditional import unchanged
from app.api.dependencies import Caller
from app.api.long_requests import attended
from app.api.shared_polls import Look, Poll
from app.services.long_requests import DENIED, LongRequestKind, refusal


async def latest(caller: Caller, poll: Poll, if_none_match: str | None, wait: int) -> Look:
    """Look until there is something that the caller does not have, or `wait` seconds are over.

    The look has a body unless the caller has it already.

    Raises:
        TooManyRequests: too many wait already.
        Unauthenticated, Forbidden, Unavailable: the token was revoked, changed or could not be rechecked meanwhile.
    """
    if not wait or if_none_match is None:
        return await _once(caller, poll, if_none_match)
    with caller.api.polls.joined(poll) as (question, waiter):
        look = await question.current(if_none_match)
        if unchanged(if_none_match, look.tag):
            async with attended(caller, LongRequestKind.POLL, wait) as tracked:
                while unchanged(if_none_match, look.tag):
                    await waiter.wait(wait)
                    look = await question.after_news(if_none_match)
            if tracked.end_reason in DENIED:
                raise refusal(tracked.end_reason)
        return look if unchanged(if_none_match, look.tag) else await question.body(look)


async def _once(caller: Caller, poll: Poll, if_none_match: str | None) -> Look:
    position = caller.services.watcher.position
    seen = await poll.see()
    body = None if unchanged(if_none_match, seen.tag) else await seen.render()
    return Look(seen.tag, position, body)
