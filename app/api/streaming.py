"""Server-sent events out of the feed: gap-free, resumable by the id of the last event seen.

ready ─▶ news ─▶ news ─▶ … ─▶ (ten minutes, or shutdown)        reset: what is missing is gone, list again
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from app.api.dependencies import Caller
from app.db.feed import FeedEvent
from app.domain.errors import DomainError
from app.services.watching import Interest, Position, parse_position

_LIFE_SECONDS: Final = 600.0
_PING_SECONDS: Final = 15.0
_EVENTS_A_READ: Final = 100
_PING: Final = b": ping\n\n"
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="Go on after this event.", max_length=64)]
LastEventIdQuery = Annotated[
    str | None,
    Query(alias="lastEventId", max_length=64, description="The same, for clients that cannot set headers."),
]


class Told(NamedTuple):
    """A feed event as a client hears of it: the name and the data of its server-sent event."""

    seq: int
    name: str
    data: BaseModel


# What to tell of some events, in their order; of a thing that is gone for good there is nothing to tell.
Tell: TypeAlias = Callable[[Caller, Sequence[FeedEvent]], Awaitable[list[Told]]]


def documented(event: str, schema: str) -> dict[int | str, dict[str, Any]]:
    """The answer of a watch, whose events are called `event` and have data of this schema."""
    data = {"$ref": f"#/components/schemas/{schema}"}
    stream = {"type": "string", "contentMediaType": "text/event-stream", "contentSchema": data}
    said = f"Events `ready`, `{event}` (data: {schema.removesuffix('View')}), `reset` and `shutdown`"
    return {
        200: {
            "description": f"{said}; ids are `<epoch>.<seq>`.",
            "content": {"text/event-stream": {"schema": stream}},
        }
    }


async def stream(caller: Caller, interest: Interest, last_event_id: str | None, tell: Tell) -> Response:
    position = await caller.services.watcher.begin()
    events = _Stream(caller, interest, tell, position).run(last_event_id)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


def _event(name: str, position: Position, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), name.encode(), data)


@dataclass(slots=True)
class _Stream:
    """One client's stream. It holds no connection to Postgres while it waits."""

    caller: Caller
    interest: Interest
    tell: Tell
    position: Position

    async def run(self, last_event_id: str | None) -> AsyncGenerator[bytes, None]:
        services = self.caller.services
        until = services.clock.monotonic() + _LIFE_SECONDS
        with services.watcher.waiting(self.interest) as waiter:
            yield b"retry: 1000\n" + self._begin(last_event_id)
            while services.clock.monotonic() < until:
                if services.watcher.closing:
                    yield _event("shutdown", self.position, b"{}")
                    return
                said = False
                async for piece in self._news():
                    said = True
                    yield piece
                if not said and not await waiter.wait(min(_PING_SECONDS, until - services.clock.monotonic())):
                    if not await self._still_known():
                        return
                    yield _PING

    def _begin(self, last_event_id: str | None) -> bytes:
        if last_event_id is None:
            return _event("ready", self.position, b"{}")
        asked = parse_position(last_event_id)
        if asked is None:
            return self._reset()
        self.position = asked
        return b"\n"

    def _reset(self) -> bytes:
        """What is between the client and now cannot be told any more: it must list again."""
        now = self.caller.services.watcher.position
        if now is not None:
            self.position = now
        return _event("reset", self.position, b'{"detail":"list again, then go on from this id"}')

    async def _news(self) -> AsyncGenerator[bytes, None]:
        """Everything from the position on that is there now."""
        while True:
            found = await self.caller.services.watcher.after(self.position, self.interest)
            if found is None:
                yield self._reset()
                return
            events, upto = found
            for piece in await self._rendered(events):
                yield piece
            if upto == self.position:
                return
            self.position = upto

    async def _rendered(self, events: list[FeedEvent]) -> list[bytes]:
        epoch = self.position.epoch
        pieces = []
        for start in range(0, len(events), _EVENTS_A_READ):
            for told in await self.tell(self.caller, events[start : start + _EVENTS_A_READ]):
                data = told.data.model_dump_json(by_alias=True).encode()
                pieces.append(_event(told.name, Position(epoch=epoch, seq=told.seq), data))
        return pieces

    async def _still_known(self) -> bool:
        """A revoked token ends its streams at the next ping."""
        try:
            await self.caller.services.access.authenticate(self.caller.request.headers.get("authorization"))
        except DomainError:
            return False
        return True
