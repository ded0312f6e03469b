"""Renders feed events as server-sent events, once for all streams of the process.

Each event is rendered once. Each batch of events is joined once for all streams with the same interest and position:

    interest, position ─▶ joined before? ─▶ bytes and the next position
                          └ no: events ─▶ rendered before? ─▶ join them
                                          └ no: load their objects and render each event
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from pydantic import BaseModel

from app.api.answers.responses import json_bytes
from app.base.caches import ENTRY_BYTES, BoundedCache
from app.db.feed.entries import FeedEvent
from app.services.gateway import Services
from app.services.watching.positions import Interest, Position

# Bounds what a stream with a slow client holds in memory, beside the server's write buffer of 64 KiB.
_BATCH_BYTES: Final = 128 * 1024
_EVENTS_PER_READ: Final = 50
# Rendering takes about 0.2 ms per event, so other requests run after 1 ms.
_RENDERED_AT_ONCE: Final = 5
_RENDERED_BYTES: Final = 32 * 1024 * 1024
_JOINED_BYTES: Final = 16 * 1024 * 1024


class StreamEvent(NamedTuple):
    """An event of a stream: the sequence number of its feed entry, its name and its data.

    `is_settled` says that the object has ended and its objects change no more, and that this is its last event.
    """

    seq: int
    name: str
    data: BaseModel
    is_settled: bool


# Returns the server-sent events of feed entries, in their order. An entry whose object no longer exists has none.
EventLoader: TypeAlias = Callable[[Services, Sequence[FeedEvent]], Awaitable[list[StreamEvent]]]


@dataclass(frozen=True, slots=True)
class _Rendered:
    body: bytes
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Rendered events, possibly none, and the position after them.

    `is_settled` says whether the object of the last event has ended and changes no more; None if there is no event.
    """

    body: bytes
    upto: Position
    is_settled: bool | None = None


def event_bytes(name: str, position: Position, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), name.encode(), data)


class Broadcast:
    """The rendered events of this process.

    A lock serializes the streams that need events which are not rendered yet, so that one of them renders for all.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        # Events by epoch and sequence number.
        self._rendered: BoundedCache[tuple[int, int], _Rendered] = BoundedCache(_RENDERED_BYTES)
        self._joined: BoundedCache[tuple[Interest, Position], Batch] = BoundedCache(_JOINED_BYTES)
        # Separate locks, so that streams which read old events from PostgreSQL do not delay the others.
        self._recent = asyncio.Lock()
        self._old = asyncio.Lock()

    async def after(self, position: Position, interest: Interest, load: EventLoader) -> Batch | None:
        """Return the next events of an interest, or None if the feed no longer has the events after the position."""
        watcher = self._services.watcher
        if position == watcher.position:
            return Batch(b"", position)
        if (joined := self.find(position, interest)) is not None:
            return joined
        async with self._recent if watcher.remembers(position) else self._old:
            # Another stream may have joined this batch while this one waited for the lock.
            return self.find(position, interest) or await self._join(position, interest, load)

    def find(self, position: Position, interest: Interest) -> Batch | None:
        """Return the next events if they have been joined for another stream."""
        return self._joined.get((interest, position))

    async def _join(self, position: Position, interest: Interest, load: EventLoader) -> Batch | None:
        found = await self._services.watcher.after(position, interest)
        if found is None:
            return None
        events, upto = found
        body = bytearray()
        is_settled: bool | None = None
        for start in range(0, len(events), _EVENTS_PER_READ):
            some = events[start : start + _EVENTS_PER_READ]
            for event, piece in zip(some, await self._render(some, position.epoch, load), strict=True):
                body += piece.body
                is_settled = piece.is_settled
                if len(body) >= _BATCH_BYTES:
                    last = Position(epoch=position.epoch, seq=event.seq)
                    return self._keep(position, interest, Batch(bytes(body), last, is_settled))
        return self._keep(position, interest, Batch(bytes(body), upto, is_settled))

    def _keep(self, position: Position, interest: Interest, batch: Batch) -> Batch:
        if batch.upto != position:
            self._joined.put((interest, position), batch, len(batch.body) + ENTRY_BYTES)
        return batch

    async def _render(self, events: Sequence[FeedEvent], epoch: int, load: EventLoader) -> list[_Rendered]:
        """Return the bytes of each event, empty if its object no longer exists."""
        rendered = {event.seq: self._rendered.get((epoch, event.seq)) for event in events}
        missing = [event for event in events if rendered[event.seq] is None]
        loaded = {event.seq: event for event in await load(self._services, missing)} if missing else {}
        for number, event in enumerate(missing, 1):
            # An object that no longer exists changes no more.
            entry = _Rendered(b"", is_settled=True)
            if (content := loaded.get(event.seq)) is not None:
                piece = event_bytes(content.name, Position(epoch=epoch, seq=event.seq), json_bytes(content.data))
                entry = _Rendered(piece, content.is_settled)
            rendered[event.seq] = entry
            self._rendered.put((epoch, event.seq), entry, len(entry.body) + ENTRY_BYTES)
            if number % _RENDERED_AT_ONCE == 0:
                # No slice: one stream renders for all of them, and they must not wait for the turn of its caller.
                await asyncio.sleep(0)
        return [entry for entry in rendered.values() if entry is not None]
