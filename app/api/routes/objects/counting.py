"""Counts the objects of any resource by phase and by kind, with the filters of lists."""

from dataclasses import asdict, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.api.answers.conditional import body_tag
from app.api.answers.responses import json_bytes
from app.api.long_requests.polls import polled_list
from app.api.requests import paging
from app.api.requests.dependencies import Caller, CallerDep
from app.api.requests.parameters import NamespaceFilter, PollDep, PollOptions
from app.api.resources.filters import filters
from app.api.resources.resource import Resource
from app.api.routers import new_router
from app.api.routes.objects.reading import read_route
from app.api.shared.polls import Poll, Snapshot
from app.db.lists.facets import Facets
from app.domain.listing import Criteria
from app.fairness.share import next_slice
from app.services.watching.positions import Interest


def router_of(resource: Resource) -> APIRouter:
    """Return the route. The application must include it before the routes by uid, which also match `counts`."""
    router = new_router(resource.name)
    description = (
        f"Count the {resource.noun}s that match the filters, by phase and by kind. The numbers by phase ignore the "
        "filter `phase`, and those by kind ignore `kind`. A number that is not complete is a lower bound."
    )

    @router.get(
        f"{resource.all_path}/counts",
        **read_route(f"count_{resource.operation_noun}s", resource.models.counts, description),
    )
    async def count(
        caller: CallerDep,
        where: Annotated[Criteria, Depends(filters(resource))],
        options: PollDep,
        namespace: NamespaceFilter = None,
    ) -> Response:
        namespaces = caller.select_namespaces(namespace)
        return await _counts(resource, caller, replace(where, namespaces=namespaces), options)

    return router


async def _counts(resource: Resource, caller: Caller, where: Criteria, options: PollOptions) -> Response:
    async def read() -> Snapshot:
        facets = await resource.reading(caller.services).facets(where)
        await next_slice()
        body = _body(resource, facets, where)

        async def render() -> bytes:
            return body

        return Snapshot(tag=body_tag(body), render=render)

    poll = Poll(
        # The visible namespaces are part of the key, so callers with different access never share a result.
        key=(resource.name, "counts", paging.query_digest([where]), where.namespaces),
        token=caller.principal.id,
        interest=Interest(namespaces=where.namespaces, resources=frozenset({resource.name})),
        read=read,
        # An object that no longer matches changes a number too.
        criteria=replace(where, kinds=()).of_constants,
    )
    return await polled_list(caller, poll, options)


def _body(resource: Resource, facets: Facets, where: Criteria) -> bytes:
    phases = [{"phase": phase, **asdict(facets.count(kinds=where.kinds, phases=[phase]))} for phase in resource.phases]
    kinds = [{"kind": kind, **asdict(facets.count(kinds=[kind], phases=where.phases))} for kind in resource.kinds]
    return json_bytes(resource.models.counts(phases=phases, kinds=kinds))
