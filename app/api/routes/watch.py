"""Streams of the changes of a resource's objects, as server-sent events."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.api.broadcast import EventLoader, StreamEvent
from app.api.dependencies import CallerDep
from app.api.parameters import NamespaceFilter
from app.api.resources import Resource
from app.api.routes.reading import Target, object_paths
from app.api.streaming import EventStream, LastEventId, stream_responses
from app.db.feed.entries import FeedEvent
from app.services.gateway import Services
from app.services.watching import Interest


def router_of(resource: Resource) -> APIRouter:
    """Return the watch routes. The application must include them before the routes by uid, which also match `watch`."""
    router = APIRouter(tags=["watch"])
    responses = stream_responses(resource.event, resource.models.watch.__name__)
    resources = frozenset({resource.name})
    load = event_loader(resource)

    @router.get(
        f"{resource.all_path}/watch",
        name=f"watch_{resource.operation_noun}s",
        description=f"Watch all {resource.noun}s that you may see.",
        status_code=200,
        response_class=EventStream,
        response_model=None,
        responses=responses,
    )
    async def watch_all(caller: CallerDep, last_event_id: LastEventId, namespace: NamespaceFilter = None) -> Response:
        interest = Interest(namespaces=caller.select_namespaces(namespace), resources=resources)
        return EventStream(caller, interest, last_event_id, load)

    for path, target_of, suffix in object_paths(resource):

        @router.get(
            f"{path}/watch",
            name=f"watch_{resource.operation_noun}{suffix}",
            description=f"Watch one {resource.noun}.",
            status_code=200,
            response_class=EventStream,
            response_model=None,
            responses=responses,
        )
        async def watch_one(target: Annotated[Target, Depends(target_of)], last_event_id: LastEventId) -> Response:
            interest = Interest(job_uid=await target.uid(), resources=resources)
            return EventStream(target.caller, interest, last_event_id, load)

    return router


def event_loader(resource: Resource) -> EventLoader:
    """Return the loader of the resource's events. Each event has the object's status at the time of loading."""

    async def load(services: Services, events: Sequence[FeedEvent]) -> list[StreamEvent]:
        views = await resource.statuses(services, {event.job_uid for event in events})
        model = resource.models.watch
        return [
            StreamEvent(event.seq, resource.event, model(type=event.type, at=event.at, object=views[event.job_uid]))
            for event in events
            if event.job_uid in views
        ]

    return load
