"""Lists the objects of any resource, with filters and pages. A list is joined from rendered objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from app.api.answers.conditional import list_tag
from app.api.answers.rendering import list_bytes
from app.api.long_requests.polls import polled_list
from app.api.requests import paging
from app.api.requests.dependencies import Caller, CallerDep
from app.api.requests.parameters import Namespace, NamespaceFilter, PageSize, PageToken, PollDep, PollOptions
from app.api.resources.filters import CommonFilters, job_filters, phase_filter, set_filter
from app.api.resources.resource import Resource
from app.api.routers import new_router
from app.api.shared.polls import Poll, Snapshot
from app.api.views.summaries import ListView
from app.db.lists.pages import Page
from app.db.postgres.queries import Cursor
from app.domain.access.namespaces import NamespaceSet
from app.domain.listing import Criteria, Extent
from app.fairness.share import next_slice
from app.services.access import Verb
from app.services.watching.positions import Interest

# A page ends early rather than exceed this size; a single object may have a megabyte.
_PAGE_BYTES: Final = 8 * 1024 * 1024
# Rendering a summary takes about 0.1 ms.
_SUMMARIES_AT_ONCE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A request for one page of a list; `digest` identifies its filters in page tokens and ETags."""

    where: Criteria
    size: int
    after: Cursor | None
    digest: str
    is_summary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageQuery:
    """The query parameters of a page."""

    is_summary: bool
    size: int
    token: str | None


async def _page_query(
    view: Annotated[
        ListView,
        Query(description="`summary`: the objects without manifest, conditions and native status, about 1 kB each."),
    ] = "full",
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> _PageQuery:
    return _PageQuery(is_summary=view == "summary", size=paging.page_size(page_size), token=page_token)


def _list_query(resource: Resource) -> Any:
    """Return the dependency for all query parameters of a list except `namespace`. It raises InvalidParameter."""

    # The order of these arguments is that of the parameters in generated clients.
    async def list_query(
        common: CommonFilters,
        page: Annotated[_PageQuery, Depends(_page_query)],
        phases: Annotated[Sequence[str], Depends(phase_filter(resource))],
        set_name: Annotated[str | None, Depends(set_filter(resource))],
        of_jobs: Annotated[Mapping[str, Any], Depends(job_filters(resource))],
    ) -> ListQuery:
        where = replace(common, phases=phases, set_name=set_name, **of_jobs)
        digest = paging.query_digest([resource.name, where])
        start = paging.decode(page.token, paging.ObjectStart, digest) if page.token else None
        after = None if start is None else Cursor(start.created_at, start.uid)
        return ListQuery(where=where, size=page.size, after=after, digest=digest, is_summary=page.is_summary)

    return list_query


def router_of(resource: Resource) -> APIRouter:
    router = new_router(resource.name)
    models = resource.models
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": Annotated[models.page | models.summary_page, Field(discriminator="view")]}
    }
    list_query, noun = _list_query(resource), resource.operation_noun

    @router.get(
        resource.all_path,
        name=f"list_{noun}s",
        description=f"List the {resource.noun}s of all namespaces that you may see, newest first.",
        response_model=None,
        responses=responses,
    )
    async def list_all(
        caller: CallerDep,
        query: Annotated[ListQuery, Depends(list_query)],
        options: PollDep,
        namespace: NamespaceFilter = None,
    ) -> Response:
        return await _list(resource, caller, _within(query, caller.select_namespaces(namespace)), options)

    @router.get(
        resource.collection_path,
        name=f"list_namespace_{noun}s",
        description=f"List the {resource.noun}s of a namespace, newest first.",
        response_model=None,
        responses=responses,
    )
    async def list_namespace(
        namespace: Namespace, caller: CallerDep, query: Annotated[ListQuery, Depends(list_query)], options: PollDep
    ) -> Response:
        caller.require(Verb.READ, namespace)
        return await _list(resource, caller, _within(query, NamespaceSet.of(namespace)), options)

    return router


def _within(query: ListQuery, namespaces: NamespaceSet) -> ListQuery:
    return replace(query, where=replace(query.where, namespaces=namespaces))


async def _list(resource: Resource, caller: Caller, query: ListQuery, options: PollOptions) -> Response:
    api, where = caller.api, query.where

    async def read() -> Snapshot:
        reading = resource.reading(api.services)
        read_page = reading.summary_page if query.is_summary else reading.page
        page = await read_page(where, query.after, query.size)

        async def render() -> bytes:
            if query.is_summary:
                items = await _summaries(resource, page.rows)
            else:
                items = await resource.items(api, page.rows, _PAGE_BYTES)
            return list_bytes(items, _next_token(query, page, len(items)), "summary" if query.is_summary else "full")

        extent = Extent(uids=frozenset(row.uid for row in page.rows), begins_after=query.after, ends_at=page.next)
        return Snapshot(tag=_tag(query, page), render=render, extent=extent)

    poll = Poll(
        # The visible namespaces are part of the key, so callers with different access never share a result.
        key=(resource.name, query.digest, where.namespaces, query.size, query.after, query.is_summary),
        token=caller.principal.id,
        interest=Interest(namespaces=where.namespaces, resources=frozenset({resource.name})),
        read=read,
        criteria=where,
    )
    return await polled_list(caller, poll, options)


async def _summaries(resource: Resource, rows: Sequence[Any]) -> list[bytes]:
    items = []
    for number, row in enumerate(rows, 1):
        items.append(resource.summary_bytes(row))
        if number % _SUMMARIES_AT_ONCE == 0:
            await next_slice()
    return items


def _tag(query: ListQuery, page: Page[Any]) -> str:
    # `page.next` distinguishes a last page from a page of the same objects that has a successor.
    names = query.where.namespaces.names
    visible = "*" if names is None else ",".join(names)
    described = f"{query.digest} {visible} {query.after} {page.next} {query.is_summary}"
    return list_tag(((row.uid, row.version) for row in page.rows), described)


def _next_token(query: ListQuery, page: Page[Any], shown: int) -> str | None:
    # A page that ended early by its size continues after the last object that it shows.
    last = page.next if shown == len(page.rows) else page.rows[shown - 1]
    if last is None:
        return None
    return paging.encode(paging.ObjectStart(query=query.digest, created_at=last.created_at, uid=last.uid))
