"""One object of any resource and its history, by name and by uid."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BaseModel

from app.api import paging
from app.api.conditional import unchanged, wait_seconds
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import IfNoneMatch, Name, Namespace, PageSize, PageToken, Prefer
from app.api.polling import Shown, answer
from app.api.rendering import event_view, history_view
from app.api.resources import Resource
from app.api.shared_polls import Poll, Seen
from app.api.views import EventPage, HistoryPage
from app.api.waiting import latest
from app.domain.kinds.base import JOBS
from app.services.access import Verb
from app.services.reading import Address
from app.services.watching import Interest


@dataclass(frozen=True, slots=True)
class Located:
    """An object that was asked for, by a caller who may see its namespace as far as the address tells."""

    caller: Caller
    resource: Resource
    address: Address

    async def row(self) -> Any:
        """The object.

        Raises:
            NotFound: there is none, or none that this caller sees.
        """
        row = await self.resource.reading(self.caller.services).row(self.address)
        self.caller.require_seen(row.namespace)
        return row

    async def uid(self) -> UUID:
        """The object's uid; cheap where the address is a name."""
        if self.address.uid is None:
            return (await self.resource.reading(self.caller.services).version(self.address)).uid
        return UUID(str((await self.row()).uid))


Locate: TypeAlias = Callable[..., Awaitable[Located]]


def located_by_name(resource: Resource) -> Locate:
    """A dependency: a name leads to the object that has it, else to the newest that had it."""

    async def by_name(namespace: Namespace, name: Name, caller: CallerDep) -> Located:
        caller.require(Verb.READ, namespace)
        return Located(caller, resource, Address(namespace=namespace, name=name))

    return by_name


def located_by_uid(resource: Resource) -> Locate:
    """A dependency: a uid leads to the very object."""

    async def by_uid(uid: Annotated[UUID, Path(description="The object's uid.")], caller: CallerDep) -> Located:
        return Located(caller, resource, Address(uid=uid))

    return by_uid


def places(resource: Resource) -> list[tuple[str, Locate, str]]:
    """Where an object is read: path, dependency, and the end of operation ids."""
    return [(resource.one, located_by_name(resource), ""), (resource.by_uid, located_by_uid(resource), "_by_uid")]


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
    for prefix, locate, suffix in places(resource):
        _add_polled(router, resource, prefix, locate, suffix)
        _add_records(router, resource, prefix, locate, suffix)
    return router


def documented(name: str, model: type[BaseModel], description: str | None = None) -> dict[str, Any]:
    return {"name": name, "description": description, "response_model": None, "responses": {200: {"model": model}}}


def _add_polled(router: APIRouter, resource: Resource, prefix: str, locate: Locate, suffix: str) -> None:
    said = f"The whole {resource.what}. Poll it with If-None-Match, and `Prefer: wait=30` to hear of a change at once."

    @router.get(prefix, **documented(f"get_{resource.word}{suffix}", resource.models.view, said))
    async def get_whole(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        return await poll(where, Shown.WHOLE, if_none_match, wait_seconds(prefer or ()))

    said = f"The {resource.what} without its spec and native status: the cheapest to poll."

    @router.get(f"{prefix}/status", **documented(f"get_{resource.word}_status{suffix}", resource.models.status, said))
    async def get_status(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        return await poll(where, Shown.STATUS, if_none_match, wait_seconds(prefer or ()))


async def poll(where: Located, shown: Shown, if_none_match: str | None, wait: int) -> Response:
    """The view as bytes, or 304; after `wait` seconds at most where there is nothing new."""
    caller, resource = where.caller, where.resource
    rendered = await resource.read(caller.api, where.address, shown)
    caller.require_seen(rendered.namespace)
    body, tag = b"", rendered.tag
    if not unchanged(if_none_match, tag):
        body = rendered.body
    elif wait:
        question = Poll(
            question=(resource.name, shown, where.address, rendered.uid),
            interest=Interest(job_uid=rendered.uid, resources=frozenset({resource.name})),
            see=partial(_see, where, shown),
        )
        look = await latest(caller, question, if_none_match, wait)
        body, tag = look.body or b"", look.tag
    return answer(body, tag, await caller.services.freshness.read(), if_none_match)


async def _see(where: Located, shown: Shown) -> Seen:
    now = await where.resource.read(where.caller.api, where.address, shown)

    async def render() -> bytes:
        return now.body

    return Seen(tag=now.tag, render=render)


def _add_records(router: APIRouter, resource: Resource, prefix: str, locate: Locate, suffix: str) -> None:
    said = f"The history of a {resource.what} from its submission on."

    @router.get(f"{prefix}/history", **documented(f"list_{resource.word}_history{suffix}", HistoryPage, said))
    async def list_history(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        uid = await where.uid()
        asked = paging.question([uid, "history"])
        size = paging.page_size(page_size)
        reading = resource.reading(where.caller.services)
        rows = await reading.history(uid, paging.start_of(page_token, asked), size + 1)
        token = paging.after_seq(asked, rows[size - 1].seq) if len(rows) > size else None
        return await sent(where, HistoryPage(items=[history_view(row) for row in rows[:size]], next_page_token=token))

    said = "Why replicas are pending now, and the last events about the pods of ended attempts."
    if resource.name != JOBS:
        said = "What was done and what stood in the way, the oldest first."

    @router.get(f"{prefix}/events", **documented(f"list_{resource.word}_events{suffix}", EventPage, said))
    async def list_events(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        row = await where.row()
        asked = paging.question([row.uid, "events"])
        size, start = paging.page_size(page_size), paging.start_of(page_token, asked)
        found = await resource.reading(where.caller.services).events(row, start, size + 1)
        token = paging.after_seq(asked, start + size) if len(found) > size else None
        return await sent(where, EventPage(items=[event_view(one) for one in found[:size]], next_page_token=token))


async def sent(where: Located, view: BaseModel) -> Response:
    return answer(view.model_dump_json(by_alias=True).encode(), None, await where.caller.services.freshness.read())
