"""Server-sent events out of the feed: gap-free, resumable by the id of the last event seen.

ready ─▶ news ─▶ news ─▶ … ─▶ (ten minutes, or shutdown, or denied)     reset: what is missing is gone, list again
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from fastapi import Header, Query, Response
from pydantic import BaseModel
from typing_extensions import override

from app.api.dependencies import Caller
from app.api.errors import problem_of
from app.api.lasting import LastingResponse
from app.db.feed import FeedEvent
from app.domain.errors import DomainError
from app.services.lasting import Ending, Kind
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
    said = f"Events `ready`, `{event}` (data: {schema.removesuffix('View')}), `reset`, `shutdown` and `denied`"
    return {
        200: {
            "description": f"{said}; ids are `<epoch>.<seq>`.",
            "content": {"text/event-stream": {"schema": stream}},
        }
    }


async def stream(caller: Caller, interest: Interest, last_event_id: str | None, tell: Tell) -> Response:
    return _Stream(caller, interest, last_event_id, tell)


def _event(name: str, position: Position, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), name.encode(), data)


class _Stream(LastingResponse):
    """One client's stream. It holds no connection to Postgres while it waits."""

    media_type = "text/event-stream"

    def __init__(self, caller: Caller, interest: Interest, last_event_id: str | None, tell: Tell) -> None:
        super().__init__(caller, Kind.STREAM, _LIFE_SECONDS)
        self._watcher = caller.services.watcher
        self._interest = interest
        self._last_event_id = last_event_id
        self._tell = tell

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        self._position = await self._watcher.begin()
        self.headers.update({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        return self._events()

    @override
    def last_words(self, ending: Ending | None, error: DomainError) -> bytes:
        if ending is Ending.SHUTDOWN:
            return _event("shutdown", self._position, b"{}")
        return _event("denied", self._position, bytes(problem_of(error).body))

    async def _events(self) -> AsyncGenerator[bytes, None]:
        with self._watcher.waiting(self._interest) as waiter:
            yield b"retry: 1000\n" + self._begin()
            while True:
                said = False
                async for piece in self._news():
                    said = True
                    yield piece
                if not said and not await waiter.wait(_PING_SECONDS):
                    yield _PING

    def _begin(self) -> bytes:
        if self._last_event_id is None:
            return _event("ready", self._position, b"{}")
        asked = parse_position(self._last_event_id)
        if asked is None:
            return self._reset()
        self._position = asked
        return b"\n"

    def _reset(self) -> bytes:
        """What is between the client and now cannot be told any more: it must list again."""
        now = self._watcher.position
        if now is not None:
            self._position = now
        return _event("reset", self._position, b'{"detail":"list again, then go on from this id"}')

    async def _news(self) -> AsyncGenerator[bytes, None]:
        """Everything from the position on that is there now."""
        while True:
            found = await self._watcher.after(self._position, self._interest)
            if found is None:
                yield self._reset()
                return
            events, upto = found
            for piece in await self._rendered(events):
                yield piece
            if upto == self._position:
                return
            self._position = upto

    async def _rendered(self, events: list[FeedEvent]) -> list[bytes]:
        epoch = self._position.epoch
        pieces = []
        for start in range(0, len(events), _EVENTS_A_READ):
            for told in await self._tell(self._caller, events[start : start + _EVENTS_A_READ]):
                data = told.data.model_dump_json(by_alias=True).encode()
                pieces.append(_event(told.name, Position(epoch=epoch, seq=told.seq), data))
        return pieces
