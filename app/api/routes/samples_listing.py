"""Lists of SampleSets and of SampleJobs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from app.api import paging
from app.api.conditional import list_tag, wait_seconds
from app.api.dependencies import Caller, CallerDep
from app.api.errors import refuse_parameter
from app.api.parameters import (
    IfNoneMatch,
    Moment,
    Namespace,
    NamespaceFilter,
    PageSize,
    PageToken,
    Prefer,
    aware,
)
from app.api.polling import answer
from app.api.rendering import list_bytes
from app.api.routes.listing import MAX_UIDS, PAGE_BYTES, requirements
from app.api.sample_kinds import SAMPLE_KINDS, SampleKind
from app.api.sample_rendering import sample_bytes
from app.api.shared_polls import Poll, Seen
from app.api.waiting import latest
from app.db.queries import Cursor
from app.db.samples import SampleFilter, SamplePage
from app.domain.cache.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.listing import Extent
from app.domain.namespaces import NamespaceSet
from app.services.access import Verb
from app.services.watching import Interest

_TEXT: Final[dict[str, Any]] = {"min_length": 1, "max_length": 253, "pattern": r"^[^\x00]*$"}
_PHASES: Final = "One of these phases; the empty one is that of what is new."


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleListing:
    """A list that was asked for."""

    where: SampleFilter
    size: int
    after: Cursor | None
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What is asked in the same way of both kinds; `where` is of no kind yet."""

    where: SampleFilter
    page_size: int | None
    page_token: str | None


def _shared(  # noqa: PLR0913 - one argument a query parameter
    *,
    name: Annotated[str | None, Query(description="Of this name.", **_TEXT)] = None,
    prefix: Annotated[str | None, Query(description="The beginning of the name.", **_TEXT)] = None,
    search: Annotated[str | None, Query(description="Part of the name.", **_TEXT)] = None,
    uid: Annotated[list[UUID] | None, Query(description="One of these uids; deleted ones included.")] = None,
    label_selector: Annotated[
        str | None, Query(alias="labelSelector", description="As kubectl takes it: `team=vision,tier!=test`.")
    ] = None,
    created_after: Annotated[Moment, Query(alias="createdAfter")] = None,
    created_before: Annotated[Moment, Query(alias="createdBefore")] = None,
    deleted: Annotated[bool, Query(description="Show those, too, of which nothing is left.")] = False,
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> _Shared:
    if uid and len(uid) > MAX_UIDS:
        raise refuse_parameter("query", "uid", "TooMany", "is given too often", f"at most {MAX_UIDS} times")
    where = SampleFilter(
        kind="",
        name=name,
        prefix=prefix,
        search=search,
        uids=uid or (),
        labels=requirements(label_selector),
        created_after=aware("createdAfter", created_after),
        created_before=aware("createdBefore", created_before),
        gone=deleted,
    )
    return _Shared(where=where, page_size=page_size, page_token=page_token)


_SharedDep = Annotated[_Shared, Depends(_shared)]


def _of_sets(
    shared: _SharedDep, phase: Annotated[list[SetPhase] | None, Query(description=_PHASES)] = None
) -> SampleListing:
    return _listing(shared, replace(shared.where, kind=SAMPLE_SET.kind, phases=phase or ()))


def _of_jobs(
    shared: _SharedDep,
    phase: Annotated[list[SampleJobPhase] | None, Query(description=_PHASES)] = None,
    set_name: Annotated[str | None, Query(alias="set", description="Of the SampleSet of this name.", **_TEXT)] = None,
) -> SampleListing:
    return _listing(shared, replace(shared.where, kind=SAMPLE_JOB.kind, phases=phase or (), set_name=set_name))


def _listing(shared: _Shared, where: SampleFilter) -> SampleListing:
    asked = paging.question([where])
    place = paging.decode(shared.page_token, paging.JobPlace, asked) if shared.page_token else None
    after = None if place is None else Cursor(place.created_at, place.uid)
    return SampleListing(where=where, size=paging.page_size(shared.page_size), after=after, asked=asked)


_LISTINGS: Final[dict[str, Callable[..., SampleListing]]] = {SAMPLE_SET.kind: _of_sets, SAMPLE_JOB.kind: _of_jobs}


def routers() -> list[APIRouter]:
    return [_lists(kind) for kind in SAMPLE_KINDS]


def _lists(kind: SampleKind) -> APIRouter:
    router = APIRouter(tags=[kind.resource])
    listing = _LISTINGS[kind.kind.kind]
    shown = f"The {kind.kind.kind}s"

    @router.get(
        kind.of_all,
        name=f"list_{kind.word}s",
        description=f"{shown} of all namespaces that you may see, the newest first.",
        response_model=None,
        responses={200: {"model": kind.page}},
    )
    async def list_all(
        caller: CallerDep,
        listed: Annotated[SampleListing, Depends(listing)],
        namespace: NamespaceFilter = None,
        if_none_match: IfNoneMatch = None,
        prefer: Prefer = None,
    ) -> Response:
        seen = caller.narrowed(namespace)
        return await _answer(caller, kind, _within(listed, seen), if_none_match, wait_seconds(prefer or ()))

    @router.get(
        kind.collection,
        name=f"list_namespace_{kind.word}s",
        description=f"{shown} of a namespace, the newest first.",
        response_model=None,
        responses={200: {"model": kind.page}},
    )
    async def list_namespace(
        namespace: Namespace,
        caller: CallerDep,
        listed: Annotated[SampleListing, Depends(listing)],
        if_none_match: IfNoneMatch = None,
        prefer: Prefer = None,
    ) -> Response:
        caller.require(Verb.READ, namespace)
        listed = _within(listed, NamespaceSet.of(namespace))
        return await _answer(caller, kind, listed, if_none_match, wait_seconds(prefer or ()))

    return router


def _within(listed: SampleListing, namespaces: NamespaceSet) -> SampleListing:
    return replace(listed, where=replace(listed.where, namespaces=namespaces))


async def _answer(
    caller: Caller, kind: SampleKind, listed: SampleListing, if_none_match: str | None, wait: int
) -> Response:
    where, samples = listed.where, caller.services.samples
    question = f"{listed.asked} {where.namespaces.names} {listed.after}"

    async def see() -> Seen:
        page = await samples.page(where, listed.after, listed.size)
        tag = list_tag(((row.uid, row.version) for row in page.rows), f"{question} {page.next}")
        extent = Extent(uids=frozenset(row.uid for row in page.rows), begins_after=listed.after, ends_at=page.next)
        return Seen(tag=tag, render=lambda: _render(listed, page), extent=extent)

    poll = Poll(
        question=(kind.resource, listed.asked, where.namespaces, listed.size, listed.after),
        interest=Interest(namespaces=where.namespaces, resources=frozenset({kind.resource})),
        see=see,
        criteria=where.criteria(),
    )
    look = await latest(caller, poll, if_none_match, wait)
    response = answer(look.body or b"", look.tag, await caller.services.freshness.read(), if_none_match)
    if look.position is not None:
        response.headers["Jobgate-Feed-Position"] = str(look.position)
    return response


async def _render(listed: SampleListing, page: SamplePage) -> bytes:
    items = _items(page)
    return list_bytes(items, _next_token(listed, page, len(items)))


def _items(page: SamplePage) -> list[bytes]:
    """As many as fit an answer, at least one."""
    items: list[bytes] = []
    size = 0
    for row in page.rows:
        item = sample_bytes(row)
        size += len(item)
        if items and size > PAGE_BYTES:
            break
        items.append(item)
    return items


def _next_token(listed: SampleListing, page: SamplePage, shown: int) -> str | None:
    if shown == len(page.rows) and page.next is None:
        return None
    last = page.rows[shown - 1]
    return paging.encode(paging.JobPlace(question=listed.asked, created_at=last.created_at, uid=last.uid))
