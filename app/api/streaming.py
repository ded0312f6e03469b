"""Server-sent events out of the feed: gap-free, resumable by the id of the last event seen.

ready ─▶ news ─▶ news ─▶ … ─▶ (ten minutes, or shutdown, or denied)     reset: what is missing is gone, list again
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

from fastapi import Header, Query, Response
from typing_extensions import override

from app.api.broadcast import Batch, Tell, event_bytes
from app.api.dependencies import Caller
from app.api.errors import problem_of
from app.api.long_requests import LongResponse
from app.cancellation import rounds
from app.db.errors import DatabaseUnavailable
from app.domain.errors import DomainError
from app.services.long_requests import EndReason, LongRequestKind
from app.services.watching import Interest, Position, parse_position

_LIFE_SECONDS: Final = 600.0
_PING_SECONDS: Final = 15.0
_PAUSE_AFTER_ERROR: Final = 1.0
_PING: Final = b": ping\n\n"
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="Go on after this event.", max_length=64)]
LastEventIdQuery = Annotated[
    str | None,
    Query(alias="lastEventId", max_length=64, description="The same, for clients that cannot set headers."),
]


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


class _Stream(LongResponse):
    """One client's stream. It holds no connection to Postgres while it waits."""

    media_type = "text/event-stream"

    def __init__(self, caller: Caller, interest: Interest, last_event_id: str | None, tell: Tell) -> None:
        super().__init__(caller, LongRequestKind.STREAM, _LIFE_SECONDS)
        self._watcher = caller.services.watcher
        self._interest = interest
        self._last_event_id = last_event_id
        self._tell = tell
        self._is_live = False  # it has caught up with the feed once

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        self._position = await self._watcher.begin()
        self.headers.update({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        return self._events()

    @override
    def last_words(self, ending: EndReason | None, error: DomainError) -> bytes:
        if ending is EndReason.SHUTDOWN:
            return event_bytes("shutdown", self._position, b"{}")
        return event_bytes("denied", self._position, bytes(problem_of(error).body))

    async def _events(self) -> AsyncGenerator[bytes, None]:
        with self._watcher.waiting(self._interest) as waiter:
            yield b"retry: 1000\n" + self._begin()
            for _ in rounds():
                async for piece in self._news():
                    yield piece
                if await waiter.wait(_PING_SECONDS):
                    self._skip_to(waiter.take_changed_after())
                else:
                    yield _PING
                    self._skip_to(self._watcher.position if waiter.is_idle else None)

    def _begin(self) -> bytes:
        if self._last_event_id is None:
            return event_bytes("ready", self._position, b"{}")
        asked = parse_position(self._last_event_id)
        if asked is None:
            return self._reset()
        self._position = asked
        return b"\n"

    def _skip_to(self, position: Position | None) -> None:
        """Up to there is nothing for this stream: what it has passed by need not be kept for it."""
        if position is not None and self._is_live and position.epoch == self._position.epoch:
            self._position = max(self._position, position, key=lambda place: place.seq)

    def _reset(self) -> bytes:
        """What is between the client and now cannot be told any more: it must list again."""
        now = self._watcher.position
        if now is not None:
            self._position = now
        return event_bytes("reset", self._position, b'{"detail":"list again, then go on from this id"}')

    async def _news(self) -> AsyncGenerator[bytes, None]:
        """Everything from the position on that is there now."""
        while True:
            batch = await self._next()
            if batch is None:
                yield self._reset()
                return
            if batch.body:
                yield batch.body
            if batch.upto == self._position:
                self._is_live = True
                return
            self._position = batch.upto

    async def _next(self) -> Batch | None:
        """The next batch. None for a client that has read so slowly that it is behind what is kept in memory."""
        if self._is_live and not self._watcher.remembers(self._position):
            return None
        batch: Batch | None = None
        for _ in rounds():
            try:
                batch = await self._caller.api.broadcast.after(self._position, self._interest, self._tell)
                break
            except DatabaseUnavailable:
                await asyncio.sleep(_PAUSE_AFTER_ERROR)
        return batch
