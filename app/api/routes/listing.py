"""Lists of jobs: filters, pages, and bytes that are joined rather than rendered."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from app.api import paging
from app.api.conditional import list_tag, wait_seconds
from app.api.dependencies import Api, Caller, CallerDep
from app.api.errors import refuse_parameter
from app.api.parameters import IfNoneMatch, Moment, Namespace, NamespaceFilter, PageSize, PageToken, Prefer, aware
from app.api.polling import Rendered, answer
from app.api.rendering import list_bytes
from app.api.shared_polls import Poll, Seen
from app.api.views import JobPage as JobPageView
from app.api.waiting import latest
from app.db.job_rows import JobRow
from app.db.jobs import Cursor, JobFilter, JobPage
from app.domain.errors import InvalidManifest
from app.domain.listing import Extent
from app.domain.namespaces import NamespaceSet
from app.domain.selectors import Requirement, parse_selector
from app.domain.vocabulary import JobPhase
from app.services.access import Verb
from app.services.watching import Interest

router = APIRouter(tags=["jobs"])

MAX_UIDS: Final = 100
_MAX_TEXT: Final = 253
# A page ends early rather than growing beyond this; jobs may be a megabyte each.
PAGE_BYTES: Final = 8 * 1024 * 1024

LOADED_REPLICAS: Final = 2000  # a page of a hundred jobs may have a million


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list that was asked for."""

    where: JobFilter
    size: int
    after: Cursor | None
    asked: str


def listing(  # noqa: PLR0913 - one argument a query parameter
    *,
    phase: Annotated[list[JobPhase] | None, Query(description="One of these phases.")] = None,
    kind: Annotated[list[str] | None, Query(description="One of these kinds.", max_length=20)] = None,
    uid: Annotated[list[UUID] | None, Query(description="One of these uids; deleted jobs included.")] = None,
    label_selector: Annotated[
        str | None, Query(alias="labelSelector", description="As kubectl takes it: `team=vision,tier!=test`.")
    ] = None,
    search: Annotated[
        str | None, Query(description="Part of the name.", min_length=1, max_length=_MAX_TEXT, pattern=r"^[^\x00]*$")
    ] = None,
    created_after: Annotated[Moment, Query(alias="createdAfter")] = None,
    created_before: Annotated[Moment, Query(alias="createdBefore")] = None,
    finished_after: Annotated[Moment, Query(alias="finishedAfter")] = None,
    finished_before: Annotated[Moment, Query(alias="finishedBefore")] = None,
    deleted: Annotated[bool, Query(description="Show deleted jobs too.")] = False,
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> Listing:
    """All of the query but the namespace.

    Raises:
        InvalidParameter.
    """
    if uid and len(uid) > MAX_UIDS:
        raise refuse_parameter("query", "uid", "TooMany", "is given too often", f"at most {MAX_UIDS} times")
    where = JobFilter(
        phases=phase or (),
        kinds=_plain(kind),
        uids=uid or (),
        labels=requirements(label_selector),
        search=search,
        created_after=aware("createdAfter", created_after),
        created_before=aware("createdBefore", created_before),
        finished_after=aware("finishedAfter", finished_after),
        finished_before=aware("finishedBefore", finished_before),
        deleted=deleted,
    )
    asked = paging.question([where])
    place = paging.decode(page_token, paging.JobPlace, asked) if page_token else None
    after = None if place is None else Cursor(place.created_at, place.uid)
    return Listing(where=where, size=paging.page_size(page_size), after=after, asked=asked)


ListingDep = Annotated[Listing, Depends(listing)]


@router.get("/api/v1/jobs", response_model=None, responses={200: {"model": JobPageView}})
async def list_jobs(
    caller: CallerDep,
    listed: ListingDep,
    namespace: NamespaceFilter = None,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """List jobs of all namespaces that you may see, the newest first."""
    seen = caller.narrowed(namespace)
    return await _answer(caller, listed, seen, if_none_match, wait_seconds(prefer or ()))


@router.get("/api/v1/namespaces/{namespace}/jobs", response_model=None, responses={200: {"model": JobPageView}})
async def list_namespace_jobs(
    namespace: Namespace,
    caller: CallerDep,
    listed: ListingDep,
    if_none_match: IfNoneMatch = None,
    prefer: Prefer = None,
) -> Response:
    """List the jobs of a namespace, the newest first."""
    caller.require(Verb.READ, namespace)
    return await _answer(caller, listed, NamespaceSet.of(namespace), if_none_match, wait_seconds(prefer or ()))


async def _answer(
    caller: Caller, listed: Listing, namespaces: NamespaceSet, if_none_match: str | None, wait: int
) -> Response:
    api, where = caller.api, replace(listed.where, namespaces=namespaces)

    async def see() -> Seen:
        page = await _page(api, listed, where)
        return Seen(
            tag=_tag(listed, namespaces, page), render=lambda: _render(api, listed, page), extent=_extent(listed, page)
        )

    poll = Poll(
        question=("jobs", listed.asked, namespaces, listed.size, listed.after),
        interest=Interest(namespaces=namespaces),
        see=see,
        criteria=where.criteria(),
    )
    look = await latest(caller, poll, if_none_match, wait)
    response = answer(look.body or b"", look.tag, await caller.services.freshness.read(), if_none_match)
    if look.position is not None:
        response.headers["Jobgate-Feed-Position"] = str(look.position)
    return response


async def _page(api: Api, listed: Listing, where: JobFilter) -> JobPage:
    if where.namespaces.names == []:
        return JobPage(rows=(), next=None)
    return await api.services.reading.page(where, listed.after, listed.size)


def _tag(listed: Listing, namespaces: NamespaceSet, page: JobPage) -> str:
    names = namespaces.names
    seen = "*" if names is None else ",".join(names)
    return list_tag(((row.uid, row.version) for row in page.rows), f"{listed.asked} {seen} {listed.after} {page.next}")


def _extent(listed: Listing, page: JobPage) -> Extent:
    return Extent(uids=frozenset(row.uid for row in page.rows), begins_after=listed.after, ends_at=page.next)


async def _render(api: Api, listed: Listing, page: JobPage) -> bytes:
    items = await _items(api, page)
    return list_bytes((item.body for item in items), _next_token(listed, page, len(items)))


async def _items(api: Api, page: JobPage) -> list[Rendered]:
    """As many jobs of the page as fit an answer, at least one. The replicas of few jobs are loaded at once."""
    poller = api.poller
    items: list[Rendered] = []
    size = 0
    for rows in _portions(page.rows):
        belongings = await api.services.reading.belongings_of([row for row in rows if poller.kept(row) is None])
        for row in rows:
            item = poller.kept(row)
            if item is None:
                item = await poller.of_row(row, belongings[row.uid])
                await asyncio.sleep(0)  # a page of 500 jobs takes longer to render than others should wait
            size += len(item.body)
            if items and size > PAGE_BYTES:
                return items
            items.append(item)
    return items


def _portions(rows: Sequence[JobRow]) -> Iterator[Sequence[JobRow]]:
    """The jobs in groups that have few replicas together, or of one job."""
    group: list[JobRow] = []
    replicas = 0
    for row in rows:
        count = sum(row.status.aggregate.values())
        if group and replicas + count > LOADED_REPLICAS:
            yield group
            group, replicas = [], 0
        group.append(row)
        replicas += count
    if group:
        yield group


def _next_token(listed: Listing, page: JobPage, shown: int) -> str | None:
    if shown == len(page.rows) and page.next is None:
        return None
    last = page.rows[shown - 1]
    return paging.encode(paging.JobPlace(question=listed.asked, created_at=last.created_at, uid=last.uid))


def requirements(label_selector: str | None) -> tuple[Requirement, ...]:
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
