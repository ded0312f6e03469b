"""Lists the objects of any resource, with filters and pages. A list is joined from rendered objects."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import GenericAlias
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from app.api import paging
from app.api.conditional import list_tag
from app.api.dependencies import Caller, CallerDep
from app.api.errors import parameter_error
from app.api.long_polls import wait_for_change
from app.api.parameters import (
    NO_NUL,
    Namespace,
    NamespaceFilter,
    PageSize,
    PageToken,
    PollDep,
    PollOptions,
    Timestamp,
    require_offset,
    stated,
)
from app.api.rendering import list_bytes
from app.api.resources import Resource
from app.api.responses import polled_response
from app.api.shared_polls import Poll, Snapshot
from app.api.summary_views import ListView
from app.db.pages import Page
from app.db.queries import Cursor
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import InvalidManifest
from app.domain.kubernetes.selectors import MAX_SELECTOR_LENGTH, SELECTOR_PATTERN, Requirement, parse_selector
from app.domain.listing import Criteria, Extent
from app.services.access import Verb
from app.services.watching import Interest

_MAX_UIDS: Final = 100
_TEXT: Final[dict[str, Any]] = {"min_length": 1, "max_length": 253, "pattern": NO_NUL}
# A page ends early rather than exceed this size; a single object may have a megabyte.
_PAGE_BYTES: Final = 8 * 1024 * 1024
# Rendering a summary takes about 0.1 ms, so other requests run after 2 ms.
_SUMMARIES_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A request for one page of a list; `digest` identifies its filters in page tokens and ETags."""

    where: Criteria
    size: int
    after: Cursor | None
    digest: str
    is_summary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommonQuery:
    """The query parameters that lists of all resources have."""

    where: Criteria
    is_summary: bool
    page_size: int | None
    page_token: str | None


def _common_query(  # noqa: PLR0913 - one argument for each query parameter
    *,
    kind: Annotated[
        list[Annotated[str, Field(**stated(pattern=NO_NUL))]] | None,
        Query(description="List only objects of these kinds.", max_length=20),
    ] = None,
    name: Annotated[str | None, Query(description="List only objects with this name.", **_TEXT)] = None,
    prefix: Annotated[
        str | None, Query(description="List only objects with names that start with this.", **_TEXT)
    ] = None,
    search: Annotated[str | None, Query(description="List only objects with names that contain this.", **_TEXT)] = None,
    uid: Annotated[
        list[UUID] | None,
        Query(description="List only objects with these uids, deleted ones included.", **stated(maxItems=_MAX_UIDS)),
    ] = None,
    label_selector: Annotated[
        str | None,
        Query(
            alias="labelSelector",
            description="A label selector as in kubectl, such as `team=vision,tier!=test`.",
            **stated(pattern=SELECTOR_PATTERN, maxLength=MAX_SELECTOR_LENGTH),
        ),
    ] = None,
    created_after: Annotated[Timestamp, Query(alias="createdAfter")] = None,
    created_before: Annotated[Timestamp, Query(alias="createdBefore")] = None,
    finished_after: Annotated[Timestamp, Query(alias="finishedAfter")] = None,
    finished_before: Annotated[Timestamp, Query(alias="finishedBefore")] = None,
    deleted: Annotated[bool, Query(description="Also list deleted objects.")] = False,
    view: Annotated[
        ListView,
        Query(description="`summary`: the objects without manifest, conditions and native status, about 1 kB each."),
    ] = "full",
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> _CommonQuery:
    if uid and len(uid) > _MAX_UIDS:
        raise parameter_error("query", "uid", "TooMany", f"is given {len(uid)} times", f"at most {_MAX_UIDS} times")
    where = Criteria(
        kinds=_without_nul(kind),
        name=name,
        prefix=prefix,
        search=search,
        uids=uid or (),
        labels=_requirements(label_selector),
        created_after=require_offset("createdAfter", created_after),
        created_before=require_offset("createdBefore", created_before),
        finished_after=require_offset("finishedAfter", finished_after),
        finished_before=require_offset("finishedBefore", finished_before),
        deleted=deleted,
    )
    return _CommonQuery(where=where, is_summary=view == "summary", page_size=page_size, page_token=page_token)


def _set_filter(
    set_name: Annotated[
        str | None,
        Query(alias="set", description="List only objects that concern the SampleSet of this name.", **_TEXT),
    ] = None,
) -> str | None:
    return set_name


def _no_set_filter() -> None:
    """Stand in for `_set_filter` in resources that concern no SampleSet, so that `set` is an unknown parameter."""


def _phase_filter(resource: Resource) -> Any:
    """Return the dependency for the query parameter `phase`, whose values are the phases of the resource."""

    def phases(phase: Any = None) -> Sequence[str]:
        return phase or ()

    query = Query(description="List only objects in one of these phases.")
    phases.__annotations__["phase"] = Annotated[GenericAlias(list, (resource.phases,)) | None, query]
    return phases


def _list_query(resource: Resource) -> Any:
    """Return the dependency for all query parameters of a list except `namespace`. It raises InvalidParameter."""
    set_filter = _set_filter if resource.is_about_set else _no_set_filter

    def list_query(
        common: Annotated[_CommonQuery, Depends(_common_query)],
        phases: Annotated[Sequence[str], Depends(_phase_filter(resource))],
        set_name: Annotated[str | None, Depends(set_filter)],
    ) -> ListQuery:
        where = replace(common.where, phases=phases, set_name=set_name)
        digest = paging.query_digest([resource.name, where])
        start = paging.decode(common.page_token, paging.ObjectStart, digest) if common.page_token else None
        after = None if start is None else Cursor(start.created_at, start.uid)
        size = paging.page_size(common.page_size)
        return ListQuery(where=where, size=size, after=after, digest=digest, is_summary=common.is_summary)

    return list_query


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
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
    # Otherwise the first lists after a start would not say from which position to watch.
    await api.services.watcher.begin()
    result = await wait_for_change(caller, poll, options)
    freshness = await caller.services.freshness.read()
    response = polled_response(result.body or b"", result.tag, freshness, options.if_none_match)
    if result.position is not None:
        response.headers["Jobgate-Feed-Position"] = str(result.position)
    return response


async def _summaries(resource: Resource, rows: Sequence[Any]) -> list[bytes]:
    items = []
    for number, row in enumerate(rows, 1):
        items.append(resource.summary_bytes(row))
        if number % _SUMMARIES_AT_ONCE == 0:
            await asyncio.sleep(0)
    return items


def _tag(query: ListQuery, page: Page[Any]) -> str:
    # `page.next` distinguishes a last page from a page of the same objects that has a successor.
    names = query.where.namespaces.names
    visible = "*" if names is None else ",".join(names)
    described = f"{query.digest} {visible} {query.after} {page.next} {query.is_summary}"
    return list_tag(((row.uid, row.version) for row in page.rows), described)


def _next_token(query: ListQuery, page: Page[Any], shown: int) -> str | None:
    # A page that ended early by its size continues after the last object that it shows.
    place = page.next if shown == len(page.rows) else page.rows[shown - 1]
    if place is None:
        return None
    return paging.encode(paging.ObjectStart(query=query.digest, created_at=place.created_at, uid=place.uid))


def _requirements(label_selector: str | None) -> tuple[Requirement, ...]:
    if label_selector is None:
        return ()
    try:
        return parse_selector(label_selector, "/query/labelSelector")
    except InvalidManifest as error:
        first = error.errors[0]
        raise parameter_error("query", "labelSelector", first.code, first.detail, first.accepted) from error


def _without_nul(kinds: list[str] | None) -> list[str]:
    """Return the kinds. Raises InvalidParameter for a NUL character, which PostgreSQL does not accept in text."""
    if kinds and any("\0" in kind for kind in kinds):
        raise parameter_error("query", "kind", "InvalidParameter", "contains a NUL character", "the name of a kind")
    return kinds or []
