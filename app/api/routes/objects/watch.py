"""Streams of the changes of a resource's objects, as server-sent events or JSON lines."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from app.api.answers.responses import json_bytes
from app.api.long_requests.streams import EventStream, LastEventId, ObjectState, stream_responses
from app.api.requests.dependencies import CallerDep
from app.api.requests.parameters import NamespaceFilter
from app.api.resources.resource import Resource
from app.api.routers import new_router
from app.api.routes.objects.reading import Target, object_paths
from app.api.shared.broadcast import EventLoader, StreamEvent
from app.api.views.closed_sets import CURRENT
from app.db.feed.entries import FeedEvent
from app.services.gateway import Services
from app.services.watching.positions import Interest


def router_of(resource: Resource) -> APIRouter:
    """Return the watch routes. The application must include them before the routes by uid, which also match `watch`."""
    router = new_router("watch")
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
            description=(
                f"Watch one {resource.noun}: its current state, then every change, then the event `end` when it has"
                " ended and its objects change no more."
            ),
            status_code=200,
            response_class=EventStream,
            response_model=None,
            responses=responses,
        )
        async def watch_one(target: Annotated[Target, Depends(target_of)], last_event_id: LastEventId) -> Response:
            uid = await target.uid()
            interest = Interest(job_uid=uid, resources=resources)
            return EventStream(target.caller, interest, last_event_id, load, partial(read_state, resource, uid))

    return router


def event_loader(resource: Resource) -> EventLoader:
    """Return the loader of the resource's events. Each event has the object's status at the time of loading."""

    async def load(services: Services, events: Sequence[FeedEvent]) -> list[StreamEvent]:
        found = await resource.statuses(services, {event.job_uid for event in events})
        model = resource.models.watch
        return [
            StreamEvent(
                event.seq,
                resource.event,
                model(type=event.type, at=event.at, object=found[event.job_uid].view),
                # An event may show a newer state than its own, and the events that led to it must still follow.
                found[event.job_uid].is_settled and found[event.job_uid].version <= event.version,
            )
            for event in events
            # The object may have moved to a former namespace since the event.
            if event.job_uid in found and found[event.job_uid].namespace == event.namespace
        ]

    return load


async def read_state(resource: Resource, uid: UUID, services: Services) -> ObjectState | None:
    """Return the event with the current state of an object, for the beginning of its watch; None if it is gone."""
    current = (await resource.statuses(services, [uid])).get(uid)
    if current is None:
        return None
    data = resource.models.watch(type=CURRENT, at=services.clock.now(), object=current.view)
    return ObjectState(resource.event, json_bytes(data), current.is_settled)
