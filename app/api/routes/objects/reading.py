"""Reads one object of any resource, and its history and events, by name or by uid."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, TypeAdapter

from app.api.answers.conditional import matches_tag
from app.api.answers.rendering import event_view, history_fields
from app.api.answers.responses import json_bytes, polled_response
from app.api.long_requests.polls import wait_for_change
from app.api.requests import paging
from app.api.requests.dependencies import Caller, CallerDep, caller
from app.api.requests.paging import SequencePage
from app.api.requests.parameters import Name, Namespace, PageSize, PageToken, PollDep, PollOptions, poll_options
from app.api.resources.resource import Resource
from app.api.routers import Parameter, add_resolved_route, arguments_of, new_router
from app.api.shared.job_views import Representation
from app.api.shared.polls import Poll, Snapshot
from app.api.views.objects import EventPage, PostedManifestView
from app.db.objects.resources import FoundRow
from app.domain.errors import Purged
from app.domain.kinds.base import JOBS
from app.services.access import Verb
from app.services.reading.objects import Address
from app.services.watching.positions import Interest


class _Found(Protocol):
    @property
    def namespace(self) -> str: ...


_F = TypeVar("_F", bound=_Found)


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a request addresses.

    The caller's access is checked already if the address has a namespace. The namespace of a uid is known only when the
    object is read: `read` checks the access then.
    """

    caller: Caller
    resource: Resource
    address: Address

    async def row(self) -> Any:
        """Return the row of the object.

        Raises:
            NotFound: the object does not exist, or the caller may not see it.
            Purged: its record was deleted.
        """
        return await self.read(self.resource.reading(self.caller.services).row(self.address))

    async def uid(self) -> UUID:
        """Return the uid of the object, which is a small read. Raise as `row`."""
        found: FoundRow = await self.read(self.resource.reading(self.caller.services).version(self.address))
        return found.uid

    async def read(self, reading: Awaitable[_F]) -> _F:
        """Return the result of a read of the object, if the caller may see the object. Raise as `row`."""
        if self.address.uid is None:
            return await reading
        try:
            found = await reading
        except Purged as purged:
            self.caller.require_visible(purged.namespace, self.resource.noun)
            raise
        self.caller.require_visible(found.namespace, self.resource.noun)
        return found


TargetDependency: TypeAlias = Callable[..., Awaitable[Target]]

# Those of the path of an object.
_PATH: Final = {
    "namespace": Parameter("path", "namespace", TypeAdapter(Namespace)),
    "name": Parameter("path", "name", TypeAdapter(Name)),
}


def _target_by_name(resource: Resource) -> TargetDependency:
    async def by_name(namespace: Namespace, name: Name, caller: CallerDep) -> Target:
        caller.require(Verb.READ, namespace)
        return Target(caller, resource, Address(namespace=namespace, name=name))

    return by_name


def target_by_uid(resource: Resource) -> TargetDependency:
    """Return the dependency for the target of a path with a uid."""

    async def by_uid(uid: Annotated[UUID, Path(description="Uid of the object.")], caller: CallerDep) -> Target:
        return Target(caller, resource, Address(uid=uid))

    return by_uid


def object_paths(resource: Resource) -> list[tuple[str, TargetDependency, str]]:
    """Return the two paths of an object: path, dependency for its target, and suffix of the operation ids."""
    return [
        (resource.object_path, _target_by_name(resource), ""),
        (resource.uid_path, target_by_uid(resource), "_by_uid"),
    ]


def router_of(resource: Resource) -> APIRouter:
    router = new_router(resource.name)
    for path, target_of, suffix in object_paths(resource):
        _add_polls(router, resource, path, target_of, suffix)
        _add_records(router, resource, path, target_of, suffix)
        _add_posted_manifest(router, resource, path, target_of, suffix)
    return router


def read_route(name: str, model: type[BaseModel], description: str | None = None) -> dict[str, Any]:
    """Return the arguments of a GET route: its operation id, and the model of its answer. The handler sends bytes."""
    return {"name": name, "description": description, "response_model": None, "responses": {200: {"model": model}}}


def _add_polls(router: APIRouter, resource: Resource, path: str, target_of: TargetDependency, suffix: str) -> None:
    noun, operation = resource.noun, f"get_{resource.operation_noun}"

    async def resolve(request: Request) -> Mapping[str, Any]:
        asking = await caller(request)
        target = await target_of(**arguments_of(request, _PATH), caller=asking)
        return {"target": target, "options": poll_options(request)}

    # Most polls are by name. A path with a uid must not be tried first, because it also matches `counts` and `watch`.
    add_route = partial(router.add_api_route, methods=["GET"])
    if not suffix:
        add_route = partial(add_resolved_route, router, resolve=resolve)

    async def get_whole(target: Annotated[Target, Depends(target_of)], options: PollDep) -> Response:
        return await poll(target, Representation.WHOLE, options)

    description = (
        f"Return the whole {noun}. To poll efficiently, send If-None-Match and `Prefer: wait=30`: "
        "the answer comes with the next change."
    )
    add_route(path, get_whole, **read_route(f"{operation}{suffix}", resource.models.view, description))

    async def get_status(target: Annotated[Target, Depends(target_of)], options: PollDep) -> Response:
        return await poll(target, Representation.STATUS, options)

    description = f"Return the {noun} without its spec and native status. This is the cheapest read to poll."
    documented = read_route(f"{operation}_status{suffix}", resource.models.status, description)
    add_route(f"{path}/status", get_status, **documented)


async def poll(target: Target, representation: Representation, options: PollOptions) -> Response:
    """Answer with the representation, or with 304 if the client has it and it does not change within its wait."""
    caller, resource = target.caller, target.resource
    rendered = await target.read(resource.read(caller.api, target.address, representation))
    body, tag = None, rendered.tag
    if not matches_tag(options.if_none_match, tag):
        body = rendered.body
    elif options.wait:
        long_poll = Poll(
            # With the uid, because a name may pass to a new object.
            key=(resource.name, representation, target.address, rendered.uid),
            token=caller.principal.id,
            interest=Interest(job_uid=rendered.uid, resources=frozenset({resource.name})),
            read=partial(_snapshot, target, representation),
        )
        result = await wait_for_change(caller, long_poll, options)
        body, tag = result.body, result.tag
    return polled_response(body, tag, await caller.services.freshness.read())


async def _snapshot(target: Target, representation: Representation) -> Snapshot:
    current = await target.resource.read(target.caller.api, target.address, representation)

    async def render() -> bytes:
        return current.body

    return Snapshot(tag=current.tag, render=render)


def _add_records(router: APIRouter, resource: Resource, path: str, target_of: TargetDependency, suffix: str) -> None:
    operation = f"list_{resource.operation_noun}"
    description = f"List the history of the {resource.noun}, oldest first."

    model = resource.models.history

    @router.get(f"{path}/history", **read_route(f"{operation}_history{suffix}", model, description))
    async def list_history(
        target: Annotated[Target, Depends(target_of)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        uid = await target.uid()
        page = SequencePage.of([uid, "history"], page_size, page_token)
        rows = await resource.reading(target.caller.services).history(uid, page.start, page.limit)
        shown, token = page.cut(rows, lambda row: row.seq)
        return await view_response(target, model(items=[history_fields(row) for row in shown], next_page_token=token))

    description = "List the reasons why replicas are pending now, and the last events of the pods of ended attempts."
    if resource.name != JOBS:
        description = f"List the actions and failures of the controller for the {resource.noun}, oldest first."

    @router.get(f"{path}/events", **read_route(f"{operation}_events{suffix}", EventPage, description))
    async def list_events(
        target: Annotated[Target, Depends(target_of)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        row = await target.row()
        query = paging.query_digest([row.uid, "events"])
        after, size = paging.event_after(page_token, query), paging.page_size(page_size)
        # One more event than the page shows tells whether another page follows.
        events = await resource.reading(target.caller.services).events(row, after, size + 1)
        token = paging.token_after_event(events[size - 1].place, query) if len(events) > size else None
        items = [event_view(event) for event in events[:size]]
        return await view_response(target, EventPage(items=items, next_page_token=token))


def _add_posted_manifest(
    router: APIRouter, resource: Resource, path: str, target_of: TargetDependency, suffix: str
) -> None:
    operation = f"get_{resource.operation_noun}_posted_manifest{suffix}"
    description = (
        f"Return the manifest of the {resource.noun} as it was posted: the document of the submission, or of the last "
        "PUT that changed the manifest, with later merge patches applied, and without defaults. Scaling, pausing and "
        "resuming leave it as it is."
    )

    @router.get(f"{path}/posted-manifest", **read_route(operation, PostedManifestView, description))
    async def get_posted_manifest(target: Annotated[Target, Depends(target_of)]) -> Response:
        posted = await resource.reading(target.caller.services).read_posted(await target.uid())
        return await view_response(target, PostedManifestView(manifest=posted))


async def view_response(target: Target, view: BaseModel) -> Response:
    """Answer with a view that has no ETag."""
    return polled_response(json_bytes(view), None, await target.caller.services.freshness.read())
