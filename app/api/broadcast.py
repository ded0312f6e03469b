"""The feed as server-sent events: rendered once for all streams of a process, and sent to each as the same bytes.

interest, position ─▶ joined before? ─▶ bytes and the next position
└ no: events ─▶ rendered before? ─▶ join them
└ no: read and render each once
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from pydantic import BaseModel

from app.api.rendering import RenderCache
from app.db.feed.entries import FeedEvent
from app.services.gateway import Services
from app.services.watching import Interest, Position

# What a client that reads slowly makes the server hold at once, beside its buffer of 64 KiB.
_BATCH_BYTES: Final = 128 * 1024
_EVENTS_A_READ: Final = 50
# Rendering takes about 0.2 ms an event: other requests get their turn after 2 ms.
_RENDERED_AT_ONCE: Final = 10
_RENDERED_BYTES: Final = 32 * 1024 * 1024
_JOINED_BYTES: Final = 16 * 1024 * 1024


class Told(NamedTuple):
    """A feed event as a client hears of it: the name and the data of its server-sent event."""

    seq: int
    name: str
    data: BaseModel


# What to tell of some events, in their order; of a thing that is gone for good there is nothing to tell.
Tell: TypeAlias = Callable[[Services, Sequence[FeedEvent]], Awaitable[list[Told]]]


@dataclass(frozen=True, slots=True)
class _Rendered:
    body: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events, possibly none, and the position behind them."""

    body: bytes
    upto: Position


def event_bytes(name: str, position: Position, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), name.encode(), data)


class Broadcast:
    """Streams take turns at what has not been prepared yet, so that one of them does it for all."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._rendered: RenderCache[_Rendered] = RenderCache(_RENDERED_BYTES)
        self._joined: RenderCache[Batch] = RenderCache(_JOINED_BYTES)
        # Apart, so that streams that read old events from Postgres do not hold up the others.
        self._recent = asyncio.Lock()
        self._old = asyncio.Lock()

    async def after(self, position: Position, interest: Interest, tell: Tell) -> Batch | None:
        """The next events of an interest; None when the feed cannot go on from there."""
        watcher, key = self._services.watcher, (interest, position)
        if position == watcher.position:
            return Batch(b"", position)
        if (known := self._joined.get(key)) is not None:
            return known
        async with self._recent if watcher.remembers(position) else self._old:
            return self._joined.get(key) or await self._join(position, interest, tell)

    async def _join(self, position: Position, interest: Interest, tell: Tell) -> Batch | None:
        found = await self._services.watcher.after(position, interest)
        if found is None:
            return None
        events, upto = found
        body = bytearray()
        for start in range(0, len(events), _EVENTS_A_READ):
            some = events[start : start + _EVENTS_A_READ]
            for event, piece in zip(some, await self._render(some, position.epoch, tell), strict=True):
                body += piece
                if len(body) >= _BATCH_BYTES:
                    return self._keep(
                        position, interest, Batch(bytes(body), Position(epoch=position.epoch, seq=event.seq))
                    )
        return self._keep(position, interest, Batch(bytes(body), upto))

    def _keep(self, position: Position, interest: Interest, batch: Batch) -> Batch:
        if batch.upto != position:
            self._joined.put((interest, position), batch)
        return batch

    async def _render(self, events: Sequence[FeedEvent], epoch: int, tell: Tell) -> list[bytes]:
        """Each event as bytes, none where there is nothing to tell."""
        known = {event.seq: self._rendered.get((epoch, event.seq)) for event in events}
        missing = [event for event in events if known[event.seq] is None]
        told = {one.seq: one for one in await tell(self._services, missing)} if missing else {}
        for number, event in enumerate(missing, 1):
            piece = b""
            if (one := told.get(event.seq)) is not None:
                data = one.data.model_dump_json(by_alias=True).encode()
                piece = event_bytes(one.name, Position(epoch=epoch, seq=event.seq), data)
            known[event.seq] = rendered = _Rendered(piece)
            self._rendered.put((epoch, event.seq), rendered)
            if number % _RENDERED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return [found.body for found in known.values() if found is not None]
