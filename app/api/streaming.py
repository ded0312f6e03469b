"""Streams of server-sent events from the feed. A client resumes a stream without gaps by the id of its last event.

ready ─▶ change ─▶ change ─▶ … ─▶ end after ten minutes, or `shutdown`, or `denied`

`reset` replaces changes that are no longer available: the client must list again.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Query
from typing_extensions import override

from app.api.broadcast import Batch, EventLoader, event_bytes
from app.api.dependencies import Caller
from app.api.errors import problem_of
from app.api.long_requests import LongResponse
from app.cancellation import rounds
from app.db.errors import DatabaseUnavailable
from app.domain.errors import DomainError
from app.services.long_requests import EndReason, LongRequestKind
from app.services.watching import Interest, Position, parse_position

# Clients reconnect by themselves, so a bounded life lets streams spread over processes that were started later.
_LIFE_SECONDS: Final = 600.0
# Proxies commonly close a connection after 60 s without data.
_PING_SECONDS: Final = 15.0
_PAUSE_AFTER_ERROR: Final = 1.0
_PING: Final = b": ping\n\n"


def _last_event_id(
    header: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=64, description="Id of an event. The stream continues after it."),
    ] = None,
    query: Annotated[
        str | None,
        Query(
            alias="lastEventId", max_length=64, description="Like Last-Event-ID, for clients that cannot set headers."
        ),
    ] = None,
) -> str | None:
    return header or query


LastEventId = Annotated[str | None, Depends(_last_event_id)]


def stream_responses(event: str, schema: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a watch with events of this name and data of this schema."""
    data = {"$ref": f"#/components/schemas/{schema}"}
    stream = {"type": "string", "contentMediaType": "text/event-stream", "contentSchema": data}
    events = f"`ready`, `{event}` (data: {schema.removesuffix('View')}), `reset`, `shutdown` and `denied`"
    return {
        200: {
            "description": f"A stream of the events {events}. Event ids have the form `<epoch>.<seq>`.",
            "content": {"text/event-stream": {"schema": stream}},
        }
    }


class EventStream(LongResponse):
    """The stream of one client. It holds no connection to PostgreSQL while it waits."""

    media_type = "text/event-stream"

    def __init__(self, caller: Caller, interest: Interest, last_event_id: str | None, load: EventLoader) -> None:
        super().__init__(caller, LongRequestKind.STREAM, _LIFE_SECONDS)
        self._watcher = caller.services.watcher
        self._interest = interest
        self._last_event_id = last_event_id
        self._load = load
        self._is_live = False  # whether it has once caught up with the feed

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        self._position = await self._watcher.begin()
        # nginx would otherwise collect events in its buffer.
        self.headers.update({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        return self._events()

    @override
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        if ending is EndReason.SHUTDOWN:
            return event_bytes("shutdown", self._position, b"{}")
        return event_bytes("denied", self._position, bytes(problem_of(error).body))

    async def _events(self) -> AsyncGenerator[bytes, None]:
        # Registered before the first read, so that no change falls between them.
        with self._watcher.waiting(self._interest) as waiter:
            # Milliseconds until a client reconnects. This first piece also makes proxies send the headers on.
            yield b"retry: 1000\n" + self._begin()
            for _ in rounds():
                async for piece in self._changes():
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
        """Advance to a position up to which the feed has no event for this stream.

        Without this, a stream that rarely has an event would fall behind the events that are kept in memory.
        """
        if position is not None and self._is_live and position.epoch == self._position.epoch:
            self._position = max(self._position, position, key=lambda place: place.seq)

    def _reset(self) -> bytes:
        """Continue at the end of the feed, because events after the client's position are no longer available."""
        current = self._watcher.position
        if current is not None:
            self._position = current
        return event_bytes(
            "reset", self._position, b'{"detail":"list again, then continue after the id of this event"}'
        )

    async def _changes(self) -> AsyncGenerator[bytes, None]:
        """Yield all events after the position that the feed has at present."""
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
        """Return the next batch, or None if events are missing.

        A live stream whose events are no longer in memory counts as missing events: its client reads too slowly, and
        reading them from PostgreSQL would let slow clients load the database.
        """
        if self._is_live and not self._watcher.remembers(self._position):
            return None
        batch: Batch | None = None
        for _ in rounds():
            try:
                batch = await self._caller.api.broadcast.after(self._position, self._interest, self._load)
                break
            except DatabaseUnavailable:
                # The stream continues from its position when PostgreSQL is available again.
                await asyncio.sleep(_PAUSE_AFTER_ERROR)
        return batch
