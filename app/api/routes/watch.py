"""Every change of the objects of a resource, as server-sent events."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.api.broadcast import Tell, Told
from app.api.dependencies import CallerDep
from app.api.parameters import NamespaceFilter
from app.api.resources import Resource
from app.api.routes.reading import Located, places
from app.api.streaming import LastEventId, LastEventIdQuery, documented, stream
from app.db.feed.entries import FeedEvent
from app.services.gateway import Services
from app.services.watching import Interest


def router_of(resource: Resource) -> APIRouter:
    """Include it before the routes by uid: `watch` is no uid."""
    router = APIRouter(tags=["watch"])
    responses = documented(resource.event, resource.models.watch.__name__)
    resources = frozenset({resource.name})
    tell = _telling(resource)

    @router.get(
        f"{resource.of_all}/watch",
        name=f"watch_{resource.word}s",
        description=f"Hear of every change of the {resource.what}s that you may see.",
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

    for path, locate, suffix in places(resource):

        @router.get(
            f"{path}/watch",
            name=f"watch_{resource.word}{suffix}",
            description=f"Hear of every change of one {resource.what}.",
            response_model=None,
            responses=responses,
        )
        async def watch_one(
            where: Annotated[Located, Depends(locate)],
            last_event_id: LastEventId = None,
            last_event_id_query: LastEventIdQuery = None,
        ) -> Response:
            interest = Interest(job_uid=await where.uid(), resources=resources)
            return await stream(where.caller, interest, last_event_id or last_event_id_query, tell)

    return router


def _telling(resource: Resource) -> Tell:
    async def tell(services: Services, events: Sequence[FeedEvent]) -> list[Told]:
        """Each event with the object as it is now."""
        views = await resource.statuses(services, {event.job_uid for event in events})
        model = resource.models.watch
        return [
            Told(event.seq, resource.event, model(type=event.type, at=event.at, object=views[event.job_uid]))
            for event in events
            if event.job_uid in views
        ]

    return tell
