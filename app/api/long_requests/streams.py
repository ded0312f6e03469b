"""Streams of events from the feed. A client resumes a stream without gaps by the id of its last event.

    ready ─▶ change ─▶ change ─▶ … ─▶ end after ten minutes, or `shutdown`, or `denied`

`reset` replaces changes that are no longer available: the client must list again. The stream of one object contains its
current state after `ready` and `reset`, and closes with `end` once the object has ended and its objects change no more.

The events are rendered as server-sent events. For a client that accepts only JSON lines, each piece is converted.

The task of a stream runs to catch up, to render events that no stream has rendered yet, to ping, to end, and while its
client has to make room. All other events are written by the waker, while the task waits:

    change ─▶ waker ─▶ joined already, and the client has room? ─▶ the waker writes the shared bytes
                                                             └ no: the task runs, from the same position
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from fastapi import Depends, Header, Query
from typing_extensions import override

from app.api.answers.errors import problem_of
from app.api.long_requests.responses import LongResponse
from app.api.requests.dependencies import Caller
from app.api.shared.broadcast import Batch, EventLoader, event_bytes
from app.base.cancellation import rounds
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.errors import DomainError
from app.services.gateway import Services
from app.services.limits.long_requests import EndReason, LongRequestKind
from app.services.watching.positions import Interest, Position, parse_position
from app.services.watching.waking import Waiter

# Clients reconnect by themselves, so a bounded life lets streams spread over processes that were started later.
_LIFE_SECONDS: Final = 600.0
# Proxies commonly close a connection after 60 s without data.
_PING_SECONDS: Final = 15.0
_PAUSE_AFTER_ERROR: Final = 1.0
EVENT_STREAM: Final = "text/event-stream"
_PING: Final = b": ping\n\n"
# The names that clients use for JSON lines; none of them is registered.
_LINE_TYPES: Final = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines")
# An event as `event_bytes` renders it. Its data is JSON without newlines.
_EVENT: Final = re.compile(rb"id: (.*)\nevent: (.*)\ndata: (.*)\n\n")


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The event with the current state of the one object of a stream: its name, its data, and whether the object has
    ended and its objects change no more.
    """

    event: str
    data: bytes
    is_settled: bool


_T = TypeVar("_T")
StateReader: TypeAlias = Callable[[Services], Awaitable[ObjectState | None]]


async def _last_event_id(
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
    events = f"`ready`, `{event}` (data: {schema.removesuffix('View')}), `reset`, `end`, `shutdown` and `denied`"
    description = (
        f"A stream of the events {events}. Event ids have the form `<epoch>.<seq>`. With `Accept: {_LINE_TYPES[0]}`,"
        " each line is a JSON object with `id`, `event` and `data`."
    )
    # Client generators fail on a response with two media types.
    return {200: {"description": description, "content": {EVENT_STREAM: {"schema": stream}}}}


def line_type(accept: str) -> str | None:
    """Return the media type of JSON lines that a client accepts; None if it also accepts server-sent events."""
    accepted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return None if EVENT_STREAM in accepted else next((name for name in _LINE_TYPES if name in accepted), None)


def as_lines(piece: bytes) -> bytes:
    """Convert a piece of a stream from server-sent events to JSON lines."""
    if piece == _PING:
        return b'{"event":"ping"}\n'
    return b"".join(b'{"id":"%b","event":"%b","data":%b}\n' % event.groups() for event in _EVENT.finditer(piece))


class EventStream(LongResponse):
    """The stream of one client. It holds no connection to PostgreSQL while it waits.

    `read_state` reads the one object of the interest; None if the interest covers several.
    """

    media_type = EVENT_STREAM

    def __init__(
        self,
        caller: Caller,
        interest: Interest,
        last_event_id: str | None,
        load: EventLoader,
        read_state: StateReader | None = None,
    ) -> None:
        lines = line_type(caller.request.headers.get("accept", ""))
        self.media_type = lines or EVENT_STREAM
        self._is_lines = lines is not None
        super().__init__(caller, LongRequestKind.STREAM, _LIFE_SECONDS)
        self._watcher = caller.services.watcher
        self._interest = interest
        self._last_event_id = last_event_id
        self._load = load
        self._read_state = read_state
        self._is_live = False  # whether it has once caught up with the feed
        self._lacks_state = False  # whether the client needs the current state of the object
        self._is_settled: bool | None = None  # whether the object has ended and changes no more; None if unknown

    @override
    async def open(self) -> AsyncGenerator[bytes, None]:
        self._position = await self._watcher.begin()
        # nginx would otherwise collect events in its buffer.
        self.headers.update({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        return self._lines() if self._is_lines else self._events()

    @override
    def final_piece(self, ending: EndReason | None, error: DomainError) -> bytes:
        piece = event_bytes("denied", self._position, bytes(problem_of(error).body))
        if ending is EndReason.SHUTDOWN:
            piece = event_bytes("shutdown", self._position, b"{}")
        return as_lines(piece) if self._is_lines else piece

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._events()) as pieces:
            async for piece in pieces:
                yield as_lines(piece)

    async def _events(self) -> AsyncGenerator[bytes, None]:
        # Registered before the first read, so that no change falls between them.
        with self._watcher.waiting(self._interest) as waiter:
            # Milliseconds until a client reconnects. This first piece also makes proxies send the headers on.
            yield b"retry: 1000\n" + self._begin()
            for _ in rounds():
                if self._lacks_state:
                    yield await self._state()
                async for piece in self._changes():
                    yield piece
                if self._lacks_state:  # after a reset
                    continue
                if await self._is_over():
                    yield event_bytes("end", self._position, b"{}")
                    return
                if await waiter.wait(_PING_SECONDS, partial(self._serve, waiter)):
                    self._skip_to(waiter.take_changed_after())
                else:
                    yield _PING
                    self._skip_to(self._watcher.position if waiter.is_idle else None)

    def _serve(self, waiter: Waiter) -> bool:
        """Send all events after the position while the task of the stream waits. Return False if the task has to run.

        Each piece is sent as a whole or not at all, and the position follows it at once, so the task continues without
        a gap or a duplicate.
        """
        self._skip_to(waiter.take_changed_after())
        while self._position != self._watcher.position:
            batch = self._take_batch()
            if batch is None:
                return False
            if batch.body and not self.send_at_once(as_lines(batch.body) if self._is_lines else batch.body):
                return False
            self._advance(batch)
        return self._read_state is None or self._is_settled is False

    def _take_batch(self) -> Batch | None:
        """Return the next batch if that needs no wait; None if the task has to get it, or to reset the stream."""
        if not self._is_live or not self._watcher.remembers(self._position):
            return None
        return self._caller.api.broadcast.find(self._position, self._interest)

    def _begin(self) -> bytes:
        if self._last_event_id is None:
            self._lacks_state = self._read_state is not None
            return event_bytes("ready", self._position, b"{}")
        asked = parse_position(self._last_event_id)
        if asked is None:
            return self._reset()
        self._position = asked
        return b"\n"

    async def _state(self) -> bytes:
        """Return the event with the current state of the object; empty if its record is no longer stored."""
        self._lacks_state = False
        state = await self._read()
        self._is_settled = state is None or state.is_settled
        return b"" if state is None else event_bytes(state.event, self._position, state.data)

    async def _is_over(self) -> bool:
        """Return whether the one object of the stream has ended and its objects change no more."""
        if self._read_state is None:
            return False
        if self._is_settled is None:  # the client has resumed the stream, and there was no event since
            state = await self._read()
            if state is not None and not state.is_settled:
                self._is_settled = False
            elif not await self._has_further():
                # The client has the last event already.
                self._is_settled = True
        return bool(self._is_settled)

    async def _has_further(self) -> bool:
        """Return whether the feed has events of the one object that this process has not read yet."""
        assert self._interest.job_uid is not None
        further = partial(self._watcher.has_further, self._position, self._interest.job_uid)
        return await _retry_read(further)

    async def _read(self) -> ObjectState | None:
        assert self._read_state is not None
        return await _retry_read(partial(self._read_state, self._caller.services))

    def _skip_to(self, position: Position | None) -> None:
        """Advance to a position up to which the feed has no event for this stream.

        Without this, a stream that rarely has an event would fall behind the events that are kept in memory.
        """
        if position is not None and self._is_live and position.epoch == self._position.epoch:
            self._position = max(self._position, position, key=lambda each: each.seq)

    def _reset(self) -> bytes:
        """Continue at the end of the feed, because events after the client's position are no longer available."""
        current = self._watcher.position
        if current is not None:
            self._position = current
        self._lacks_state = self._read_state is not None
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
            self._advance(batch)

    def _advance(self, batch: Batch) -> None:
        self._position = batch.upto
        if batch.is_settled is not None:
            self._is_settled = batch.is_settled

    async def _next(self) -> Batch | None:
        """Return the next batch, or None if events are missing.

        A live stream whose events are no longer in memory counts as missing events: its client reads too slowly, and
        reading them from PostgreSQL would let slow clients load the database.
        """
        if self._is_live and not self._watcher.remembers(self._position):
            return None
        # The stream continues from its position when PostgreSQL is available again.
        return await _retry_read(partial(self._caller.api.broadcast.after, self._position, self._interest, self._load))


async def _retry_read(read: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of `read`, which is repeated until PostgreSQL answers."""
    for _ in rounds():
        try:
            return await read()
        except DatabaseUnavailable:
            await asyncio.sleep(_PAUSE_AFTER_ERROR)
    raise AssertionError("rounds never ends")
