"""One SampleSet or SampleJob, and its story."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from app.api import paging
from app.api.conditional import company_tag, job_tag, status_tag, wait_seconds
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import IfNoneMatch, Namespace, PageSize, PageToken, Prefer, SampleName
from app.api.polling import answer
from app.api.sample_kinds import SAMPLE_KINDS, Model, SampleKind
from app.api.sample_rendering import Company, sample_event_view, sample_history_view, sample_status_view, sample_view
from app.api.sample_views import SampleEventPage, SampleHistoryPage
from app.api.shared_polls import Poll, Seen
from app.api.waiting import latest
from app.db.samples import SampleFilter, SampleRow
from app.domain.cache.kinds import SAMPLE_JOB
from app.domain.errors import Gone
from app.domain.namespaces import NamespaceSet
from app.services.access import Verb
from app.services.watching import Interest

_MAX_COMPANY: Final = 100
_POLLED: Final = "Poll it with If-None-Match, and `Prefer: wait=30` to hear of a change at once."


@dataclass(frozen=True, slots=True)
class Located:
    """A sample that was asked for, by a caller who may see its namespace."""

    caller: Caller
    kind: SampleKind
    namespace: str
    name: str

    async def row(self) -> SampleRow:
        """What has the name, else the newest that had it.

        Raises:
            NotFound: there never was one.
        """
        return await self.caller.services.samples.row(self.kind.kind, self.namespace, self.name)

    async def present(self) -> SampleRow:
        """What has the name.

        Raises:
            NotFound: there never was one.
            Gone: it has been deleted, and nothing of it is left.
        """
        row = await self.row()
        if row.gone_at is not None:
            raise Gone(f"the {row.kind} has been deleted, and nothing of it is left", code="Deleted")
        return row

    async def interest(self) -> Interest:
        """In its changes."""
        version = await self.caller.services.samples.version(self.kind.kind, self.namespace, self.name)
        return Interest(job_uid=version.uid, resources=frozenset({self.kind.resource}))


def routers() -> list[APIRouter]:
    return [_details(kind) for kind in SAMPLE_KINDS]


def _details(kind: SampleKind) -> APIRouter:
    router = APIRouter(tags=[kind.resource])

    async def locate(namespace: Namespace, name: SampleName, caller: CallerDep) -> Located:
        caller.require(Verb.READ, namespace)
        return Located(caller, kind, namespace, name)

    _add_polled(router, kind, locate)
    _add_story(router, kind, locate)
    return router


def _add_polled(router: APIRouter, kind: SampleKind, locate: Any) -> None:
    said = f"The {kind.kind.kind}"

    @router.get(kind.one, **_documented(f"get_{kind.word}", f"{said}. {_POLLED}", kind.view))
    async def get_sample(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        async def see() -> Seen:
            row = await where.present()
            company = await company_of(where.caller, row)

            async def render() -> bytes:
                return sample_view(row, company).model_dump_json(by_alias=True).encode()

            return Seen(tag=shown_tag(row, company), render=render)

        return await _poll(where, "whole", see, if_none_match, prefer)

    said = f"{said} without its spec and native status: the cheapest to poll."

    @router.get(f"{kind.one}/status", **_documented(f"get_{kind.word}_status", said, kind.status))
    async def get_sample_status(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        async def see() -> Seen:
            row = await where.present()

            async def render() -> bytes:
                return sample_status_view(row).model_dump_json(by_alias=True).encode()

            return Seen(tag=status_tag(row.uid, row.version), render=render)

        return await _poll(where, "status", see, if_none_match, prefer)


async def _poll(
    where: Located, shown: str, see: Callable[[], Awaitable[Seen]], if_none_match: str | None, prefer: list[str] | None
) -> Response:
    interest = await where.interest()
    # What a set is shown with has changes of its own, which wake nobody.
    poll = Poll(
        question=(where.kind.resource, shown, where.namespace, where.name, interest.job_uid),
        interest=interest,
        see=see,
        tag_holds_more=True,
    )
    look = await latest(where.caller, poll, if_none_match, wait_seconds(prefer or ()))
    return answer(look.body or b"", look.tag, await where.caller.services.freshness.read(), if_none_match)


def _add_story(router: APIRouter, kind: SampleKind, locate: Any) -> None:
    said = f"The {kind.kind.kind}'s story from its submission on; it stays when all else has gone."

    @router.get(f"{kind.one}/history", **_documented(f"list_{kind.word}_history", said, SampleHistoryPage))
    async def list_history(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        uid = (await where.row()).uid
        asked = paging.question([uid, "history"])
        size = paging.page_size(page_size)
        start = paging.start_of(page_token, asked)
        rows = await where.caller.services.samples.history(uid, start, size + 1)
        token = paging.after_seq(asked, rows[size - 1].seq) if len(rows) > size else None
        items = [sample_history_view(row) for row in rows[:size]]
        return await _sent(where, SampleHistoryPage(items=items, next_page_token=token))

    said = "What was done and what stood in the way, by upstream's names of events; the oldest first."

    @router.get(f"{kind.one}/events", **_documented(f"list_{kind.word}_events", said, SampleEventPage))
    async def list_events(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        uid = (await where.row()).uid
        asked = paging.question([uid, "events"])
        size = paging.page_size(page_size)
        start = paging.start_of(page_token, asked)
        rows = await where.caller.services.samples.events(uid, start, size + 1)
        token = paging.after_seq(asked, rows[size - 1].seq) if len(rows) > size else None
        items = [sample_event_view(row) for row in rows[:size]]
        return await _sent(where, SampleEventPage(items=items, next_page_token=token))


def _documented(name: str, description: str, model: Model) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "response_model": None,
        "responses": {200: {"model": model}, 410: {}},
    }


async def company_of(caller: Caller, row: SampleRow) -> Company | None:
    """Who has to do with a set, now; of a SampleJob there is nobody to tell."""
    if not row.cache_kind.has_objects:
        return None
    samples = caller.services.samples
    where = SampleFilter(kind=SAMPLE_JOB.kind, namespaces=NamespaceSet.of(row.namespace), set_name=row.name)
    return Company(
        jobs=await samples.mounting_jobs(row.namespace, row.name),
        sample_jobs=(await samples.page(where, None, _MAX_COMPANY)).rows,
    )


def shown_tag(row: SampleRow, company: Company | None) -> str:
    if company is None:
        return job_tag(row.uid, row.version)
    jobs = [(job.uid, job.phase) for job in company.jobs]
    return company_tag(row.uid, row.version, [*jobs, *((job.uid, job.phase) for job in company.sample_jobs)])


async def _sent(where: Located, view: BaseModel) -> Response:
    return answer(view.model_dump_json(by_alias=True).encode(), None, await where.caller.services.freshness.read())
