"""Lists of the objects of any resource: filters, pages, and bytes that are joined rather than rendered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import GenericAlias
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from app.api import paging
from app.api.conditional import list_tag, wait_seconds
from app.api.dependencies import Caller, CallerDep
from app.api.errors import refuse_parameter
from app.api.parameters import IfNoneMatch, Moment, Namespace, NamespaceFilter, PageSize, PageToken, Prefer, aware
from app.api.polling import answer
from app.api.rendering import list_bytes
from app.api.resources import Resource
from app.api.shared_polls import Poll, Seen
from app.api.waiting import latest
from app.db.queries import Cursor
from app.db.resources import Page
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import InvalidManifest
from app.domain.kubernetes.selectors import Requirement, parse_selector
from app.domain.listing import Criteria, Extent
from app.services.access import Verb
from app.services.watching import Interest

_MAX_UIDS: Final = 100
_TEXT: Final[dict[str, Any]] = {"min_length": 1, "max_length": 253, "pattern": r"^[^\x00]*$"}
# A page ends early rather than growing beyond this; objects may be a megabyte each.
_PAGE_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list that was asked for."""

    where: Criteria
    size: int
    after: Cursor | None
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What is asked in the same way of every resource."""

    where: Criteria
    page_size: int | None
    page_token: str | None


def _shared(  # noqa: PLR0913 - one argument a query parameter
    *,
    kind: Annotated[list[str] | None, Query(description="One of these kinds.", max_length=20)] = None,
    name: Annotated[str | None, Query(description="Of this name.", **_TEXT)] = None,
    prefix: Annotated[str | None, Query(description="The beginning of the name.", **_TEXT)] = None,
    search: Annotated[str | None, Query(description="Part of the name.", **_TEXT)] = None,
    uid: Annotated[list[UUID] | None, Query(description="One of these uids; deleted ones included.")] = None,
    label_selector: Annotated[
        str | None, Query(alias="labelSelector", description="As kubectl takes it: `team=vision,tier!=test`.")
    ] = None,
    created_after: Annotated[Moment, Query(alias="createdAfter")] = None,
    created_before: Annotated[Moment, Query(alias="createdBefore")] = None,
    finished_after: Annotated[Moment, Query(alias="finishedAfter")] = None,
    finished_before: Annotated[Moment, Query(alias="finishedBefore")] = None,
    deleted: Annotated[bool, Query(description="Show deleted ones too.")] = False,
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> _Shared:
    if uid and len(uid) > _MAX_UIDS:
        raise refuse_parameter("query", "uid", "TooMany", "is given too often", f"at most {_MAX_UIDS} times")
    where = Criteria(
        kinds=_plain(kind),
        name=name,
        prefix=prefix,
        search=search,
        uids=uid or (),
        labels=_requirements(label_selector),
        created_after=aware("createdAfter", created_after),
        created_before=aware("createdBefore", created_before),
        finished_after=aware("finishedAfter", finished_after),
        finished_before=aware("finishedBefore", finished_before),
        deleted=deleted,
    )
    return _Shared(where=where, page_size=page_size, page_token=page_token)


def _set_filter(
    set_name: Annotated[
        str | None, Query(alias="set", description="About the SampleSet of this name.", **_TEXT)
    ] = None,
) -> str | None:
    return set_name


def _no_filter() -> None:
    """For resources that are about no SampleSet."""


def _phase_filter(resource: Resource) -> Any:
    """A dependency: the phases of the query, which are words of the resource."""

    def phases(phase: Any = None) -> Sequence[str]:
        return phase or ()

    query = Query(description="One of these phases.")
    phases.__annotations__["phase"] = Annotated[GenericAlias(list, (resource.phases,)) | None, query]
    return phases


def _listing(resource: Resource) -> Any:
    """A dependency: all of the query but the namespace. It raises InvalidParameter."""
    of_set = _set_filter if resource.is_about_set else _no_filter

    def listing(
        shared: Annotated[_Shared, Depends(_shared)],
        phases: Annotated[Sequence[str], Depends(_phase_filter(resource))],
        set_name: Annotated[str | None, Depends(of_set)],
    ) -> Listing:
        where = replace(shared.where, phases=phases, set_name=set_name)
        asked = paging.question([resource.name, where])
        place = paging.decode(shared.page_token, paging.JobPlace, asked) if shared.page_token else None
        after = None if place is None else Cursor(place.created_at, place.uid)
        return Listing(where=where, size=paging.page_size(shared.page_size), after=after, asked=asked)

    return listing


def router_of(resource: Resource) -> APIRouter:
    router = APIRouter(tags=[resource.name])
    responses: dict[int | str, dict[str, Any]] = {200: {"model": resource.models.page}}
    listing, word = _listing(resource), resource.word

    @router.get(
        resource.of_all,
        name=f"list_{word}s",
        description=f"List the {resource.what}s of all namespaces that you may see, the newest first.",
        response_model=None,
        responses=responses,
    )
    async def list_all(
        caller: CallerDep,
        listed: Annotated[Listing, Depends(listing)],
        namespace: NamespaceFilter = None,
        if_none_match: IfNoneMatch = None,
        prefer: Prefer = None,
    ) -> Response:
        seen = caller.narrowed(namespace)
        return await _answer(resource, caller, _within(listed, seen), if_none_match, wait_seconds(prefer or ()))

    @router.get(
        resource.collection,
        name=f"list_namespace_{word}s",
        description=f"List the {resource.what}s of a namespace, the newest first.",
        response_model=None,
        responses=responses,
    )
    async def list_namespace(
        namespace: Namespace,
        caller: CallerDep,
        listed: Annotated[Listing, Depends(listing)],
        if_none_match: IfNoneMatch = None,
        prefer: Prefer = None,
    ) -> Response:
        caller.require(Verb.READ, namespace)
        listed = _within(listed, NamespaceSet.of(namespace))
        return await _answer(resource, caller, listed, if_none_match, wait_seconds(prefer or ()))

    return router


def _within(listed: Listing, namespaces: NamespaceSet) -> Listing:
    return replace(listed, where=replace(listed.where, namespaces=namespaces))


async def _answer(
    resource: Resource, caller: Caller, listed: Listing, if_none_match: str | None, wait: int
) -> Response:
    api, where = caller.api, listed.where

    async def see() -> Seen:
        page = await resource.reading(api.services).page(where, listed.after, listed.size)

        async def render() -> bytes:
            items = await resource.items(api, page.rows, _PAGE_BYTES)
            return list_bytes(items, _next_token(listed, page, len(items)))

        extent = Extent(uids=frozenset(row.uid for row in page.rows), begins_after=listed.after, ends_at=page.next)
        return Seen(tag=_tag(listed, page), render=render, extent=extent)

    poll = Poll(
        question=(resource.name, listed.asked, where.namespaces, listed.size, listed.after),
        interest=Interest(namespaces=where.namespaces, resources=frozenset({resource.name})),
        see=see,
        criteria=where,
    )
    look = await latest(caller, poll, if_none_match, wait)
    response = answer(look.body or b"", look.tag, await caller.services.freshness.read(), if_none_match)
    if look.position is not None:
        response.headers["Jobgate-Feed-Position"] = str(look.position)
    return response


def _tag(listed: Listing, page: Page[Any]) -> str:
    names = listed.where.namespaces.names
    seen = "*" if names is None else ",".join(names)
    return list_tag(((row.uid, row.version) for row in page.rows), f"{listed.asked} {seen} {listed.after} {page.next}")


def _next_token(listed: Listing, page: Page[Any], shown: int) -> str | None:
    if shown == len(page.rows) and page.next is None:
        return None
    last = page.rows[shown - 1]
    return paging.encode(paging.JobPlace(question=listed.asked, created_at=last.created_at, uid=last.uid))


def _requirements(label_selector: str | None) -> tuple[Requirement, ...]:
    if label_selector is None:
        return ()
    try:
        return parse_selector(label_selector, "/query/labelSelector")
    except InvalidManifest as error:
        first = error.errors[0]
        raise refuse_parameter("query", "labelSelector", first.code, first.detail, first.accepted) from error


def _plain(kinds: list[str] | None) -> list[str]:
    if kinds and any("\0" in kind for kind in kinds):
        raise refuse_parameter("query", "kind", "InvalidParameter", "contains a NUL character", "a kind")
    return kinds or []
