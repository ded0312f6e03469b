"""Every change of SampleSets and of SampleJobs, as server-sent events."""

from collections.abc import Sequence

from fastapi import APIRouter, Response

from app.api.broadcast import Tell, Told
from app.api.dependencies import CallerDep
from app.api.parameters import Namespace, NamespaceFilter, SampleName
from app.api.sample_kinds import SAMPLE_KINDS, SampleKind
from app.api.sample_rendering import sample_status_view
from app.api.streaming import LastEventId, LastEventIdQuery, documented, stream
from app.db.feed import FeedEvent
from app.db.samples import SampleFilter
from app.services.access import Verb
from app.services.gateway import Services
from app.services.watching import Interest


def routers() -> list[APIRouter]:
    return [_watches(kind) for kind in SAMPLE_KINDS]


def _watches(kind: SampleKind) -> APIRouter:
    router = APIRouter(tags=["watch"])
    responses = documented(kind.event, kind.watch.__name__)
    resources = frozenset({kind.resource})
    tell = _telling(kind)

    @router.get(
        f"{kind.of_all}/watch",
        name=f"watch_{kind.word}s",
        description=f"Hear of every change of the {kind.kind.kind}s that you may see.",
        response_model=None,
        responses=responses,
    )
    async def watch_all(
        caller: CallerDep,
        namespace: NamespaceFilter = None,
        last_event_id: LastEventId = None,
        last_event_id_query: LastEventIdQuery = None,
    ) -> Response:
        interest = Interest(namespaces=caller.narrowed(namespace), resources=resources)
        return await stream(caller, interest, last_event_id or last_event_id_query, tell)

    @router.get(
        f"{kind.one}/watch",
        name=f"watch_{kind.word}",
        description=f"Hear of every change of one {kind.kind.kind}.",
        response_model=None,
        responses=responses,
    )
    async def watch_one(
        namespace: Namespace,
        name: SampleName,
        caller: CallerDep,
        last_event_id: LastEventId = None,
        last_event_id_query: LastEventIdQuery = None,
    ) -> Response:
        caller.require(Verb.READ, namespace)
        version = await caller.services.samples.version(kind.kind, namespace, name)
        interest = Interest(job_uid=version.uid, resources=resources)
        return await stream(caller, interest, last_event_id or last_event_id_query, tell)

    return router


def _telling(kind: SampleKind) -> Tell:
    async def tell(services: Services, events: Sequence[FeedEvent]) -> list[Told]:
        """Each event with the status as it is now."""
        where = SampleFilter(kind=kind.kind.kind, uids=sorted({event.job_uid for event in events}))
        page = await services.samples.page(where, None, len(events))
        views = {row.uid: sample_status_view(row) for row in page.rows}
        return [
            Told(event.seq, kind.event, kind.watch(type=event.type, at=event.at, **{kind.word: views[event.job_uid]}))
            for event in events
            if event.job_uid in views
        ]

    return tell
