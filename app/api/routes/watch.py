"""Server-sent events: every change of jobs, gap-free, resumable by the id of the last event seen.

ready ─▶ job ─▶ job ─▶ … ─▶ (ten minutes, or shutdown)        reset: what is missing is gone, list again
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from app.api.dependencies import Caller, CallerDep
from app.api.parameters import Name, Namespace, NamespaceFilter
from app.api.rendering import status_view
from app.api.views import WatchEventView
from app.db.feed import FeedEvent
from app.db.jobs import JobFilter
from app.domain.errors import DomainError
from app.services.access import Verb
from app.services.reading import Address
from app.services.watching import Interest, Position, parse_position

router = APIRouter(tags=["watch"])

_LIFE_SECONDS: Final = 600.0
_PING_SECONDS: Final = 15.0
_ROWS_A_READ: Final = 100
_PING: Final = b": ping\n\n"
_DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `ready`, `job` (data: WatchEvent), `reset` and `shutdown`; ids are `<epoch>.<seq>`.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "string",
                    "contentMediaType": "text/event-stream",
                    "contentSchema": {"$ref": "#/components/schemas/WatchEventView"},
                }
            }
        },
    }
}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="Go on after this event.", max_length=64)]
LastEventIdQuery = Annotated[
    str | None,
    Query(alias="lastEventId", max_length=64, description="The same, for clients that cannot set headers."),
]


@router.get("/api/v1/watch", response_model=None, responses=_DOCUMENTED)
async def watch_jobs(
    caller: CallerDep,
    namespace: NamespaceFilter = None,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Hear of every change of the jobs that you may see."""
    interest = Interest(namespaces=caller.narrowed(namespace))
    return await _stream(caller, interest, last_event_id or last_event_id_query)


@router.get("/api/v1/namespaces/{namespace}/jobs/{name}/watch", response_model=None, responses=_DOCUMENTED)
async def watch_job(
    namespace: Namespace,
    name: Name,
    caller: CallerDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Hear of every change of one job."""
    caller.require(Verb.READ, namespace)
    version = await caller.services.reading.version(Address(namespace=namespace, name=name))
    return await _stream(caller, Interest(job_uid=version.uid), last_event_id or last_event_id_query)


async def _stream(caller: Caller, interest: Interest, last_event_id: str | None) -> Response:
    position = await caller.services.watcher.begin()
    events = _Stream(caller, interest, position).run(last_event_id)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


def _event(name: str, position: Position, data: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), name.encode(), data)


@dataclass(slots=True)
class _Stream:
    """One client's stream. It holds no connection to Postgres while it waits."""

    caller: Caller
    interest: Interest
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
        """Each event with its job as it is now; of a job that is gone for good there is nothing to tell."""
        epoch = self.position.epoch
        pieces = []
        for start in range(0, len(events), _ROWS_A_READ):
            some = events[start : start + _ROWS_A_READ]
            where = JobFilter(uids=sorted({event.job_uid for event in some}), deleted=True)
            page = await self.caller.services.reading.page(where, None, _ROWS_A_READ)
            views = {row.uid: status_view(row) for row in page.rows}
            for event in some:
                if event.job_uid in views:
                    view = WatchEventView(type=event.type, at=event.at, job=views[event.job_uid])
                    data = view.model_dump_json(by_alias=True).encode()
                    pieces.append(_event("job", Position(epoch=epoch, seq=event.seq), data))
        return pieces

    async def _still_known(self) -> bool:
        """A revoked token ends its streams at the next ping."""
        try:
            await self.caller.services.access.authenticate(self.caller.request.headers.get("authorization"))
        except DomainError:
            return False
        return True
