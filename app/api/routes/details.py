"""One job and all that is known of it, by name and by uid."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel

from app.api import paging
from app.api.conditional import unchanged, wait_seconds
from app.api.dependencies import Caller, CallerDep
from app.api.parameters import IfNoneMatch, Name, Namespace, PageSize, PageToken, Prefer
from app.api.polling import Shown, answer
from app.api.rendering import event_view, history_view, list_bytes, replica_view, scale_record_view
from app.api.shared_polls import Poll, Seen
from app.api.views import (
    EventPage,
    HistoryPage,
    JobStatusView,
    JobView,
    ManifestList,
    ReplicaPage,
    ScaleRecordPage,
)
from app.api.waiting import latest
from app.db.job_rows import JobRow
from app.db.replicas import ReplicaFilter
from app.domain.vocabulary import ReplicaPhase
from app.services.access import Verb
from app.services.reading import Address
from app.services.watching import Interest


@dataclass(frozen=True, slots=True)
class Located:
    """A job that was asked for, by a caller who may see its namespace as far as the address tells."""

    caller: Caller
    address: Address

    async def row(self) -> JobRow:
        """The job.

        Raises:
            NotFound: there is none, or none that this caller sees.
        """
        row = await self.caller.services.reading.job(self.address)
        self.caller.require_seen(row.namespace)
        return row

    async def uid(self) -> UUID:
        """The job's uid; cheap where the address is a name."""
        if self.address.uid is None:
            return (await self.caller.services.reading.version(self.address)).uid
        return (await self.row()).uid


async def by_name(namespace: Namespace, name: Name, caller: CallerDep) -> Located:
    caller.require(Verb.READ, namespace)
    return Located(caller, Address(namespace=namespace, name=name))


async def by_uid(uid: Annotated[UUID, Path(description="The job's uid.")], caller: CallerDep) -> Located:
    return Located(caller, Address(uid=uid))


Locate: TypeAlias = Callable[..., Awaitable[Located]]

NAMED: Final = "/api/v1/namespaces/{namespace}/jobs/{name}"
BY_UID: Final = "/api/v1/jobs/{uid}"


def routers() -> list[APIRouter]:
    """The same routes twice: a name leads to the live job, a uid to the very one."""
    return [_details(NAMED, by_name, ""), _details(BY_UID, by_uid, "_by_uid")]


def _details(prefix: str, locate: Locate, suffix: str) -> APIRouter:
    router = APIRouter(tags=["jobs"])
    _add_polled(router, prefix, locate, suffix)
    _add_replicas(router, prefix, locate, suffix)
    _add_records(router, prefix, locate, suffix)
    _add_rest(router, prefix, locate, suffix)
    return router


def _route(router: APIRouter, path: str, name: str, model: type[BaseModel]) -> Callable[[Any], Any]:
    return router.get(path, name=name, response_model=None, responses={200: {"model": model}})


def _add_polled(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @_route(router, prefix, f"get_job{suffix}", JobView)
    async def get_job(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        """The whole job. Poll it with If-None-Match, and `Prefer: wait=30` to hear of a change at once."""
        return await poll(where, Shown.JOB, if_none_match, wait_seconds(prefer or ()))

    @_route(router, f"{prefix}/status", f"get_job_status{suffix}", JobStatusView)
    async def get_job_status(
        where: Annotated[Located, Depends(locate)], if_none_match: IfNoneMatch = None, prefer: Prefer = None
    ) -> Response:
        """The job without its spec and native status: the cheapest to poll."""
        return await poll(where, Shown.STATUS, if_none_match, wait_seconds(prefer or ()))


async def poll(where: Located, shown: Shown, if_none_match: str | None, wait: int) -> Response:
    """The view as bytes, or 304; after `wait` seconds at most where there is nothing new."""
    caller = where.caller
    rendered = await caller.api.poller.read(where.address, shown)
    caller.require_seen(rendered.namespace)
    body, tag = rendered.body, rendered.tag
    if wait and unchanged(if_none_match, tag):
        question = ("job", shown, where.address, rendered.uid)
        poll = Poll(question=question, interest=Interest(job_uid=rendered.uid), see=partial(_see, where, shown))
        look = await latest(caller, poll, if_none_match, wait)
        body, tag = look.body or b"", look.tag
    return answer(body, tag, await caller.services.freshness.read(), if_none_match)


async def _see(where: Located, shown: Shown) -> Seen:
    now = await where.caller.api.poller.read(where.address, shown)

    async def render() -> bytes:
        return now.body

    return Seen(tag=now.tag, render=render)


def _add_replicas(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @_route(router, f"{prefix}/replicas", f"list_job_replicas{suffix}", ReplicaPage)
    async def list_job_replicas(
        where: Annotated[Located, Depends(locate)],
        task: Annotated[str | None, Query(max_length=253)] = None,
        phase: Annotated[list[ReplicaPhase] | None, Query()] = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """The replicas with all their attempts, in order of task and rank; those that leave are marked."""
        uid = await where.uid()
        asked = paging.question([uid, task, phase])
        start = paging.start_of(page_token, asked)
        size = paging.page_size(page_size)
        wanted = ReplicaFilter(task=task, phases=phase or ())
        stories = await where.caller.services.reading.replicas(uid, wanted, start=start, limit=size + 1)
        items = [replica_view(story) for story in stories[:size]]
        token = paging.after_seq(asked, start + size) if len(stories) > size else None
        return await _sent(where, ReplicaPage(items=items, next_page_token=token))


def _add_records(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @_route(router, f"{prefix}/history", f"list_job_history{suffix}", HistoryPage)
    async def list_job_history(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        """The job's story from its submission on."""
        uid = await where.uid()
        asked = paging.question([uid, "history"])
        size = paging.page_size(page_size)
        rows = await where.caller.services.reading.history(uid, paging.start_of(page_token, asked), size + 1)
        token = paging.after_seq(asked, rows[size - 1].seq) if len(rows) > size else None
        return await _sent(where, HistoryPage(items=[history_view(row) for row in rows[:size]], next_page_token=token))

    @_route(router, f"{prefix}/scale-records", f"list_job_scale_records{suffix}", ScaleRecordPage)
    async def list_job_scale_records(
        where: Annotated[Located, Depends(locate)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        """Every change of how many replicas a task shall have, and what became of it; the oldest first."""
        uid = await where.uid()
        asked = paging.question([uid, "scale-records"])
        size = paging.page_size(page_size)
        records = await where.caller.services.reading.scale_records(uid, paging.start_of(page_token, asked), size + 1)
        token = paging.after_seq(asked, records[size - 1].seq) if len(records) > size else None
        items = [scale_record_view(record) for record in records[:size]]
        return await _sent(where, ScaleRecordPage(items=items, next_page_token=token))


def _add_rest(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @_route(router, f"{prefix}/events", f"list_job_events{suffix}", EventPage)
    async def list_job_events(where: Annotated[Located, Depends(locate)]) -> Response:
        """Why replicas are pending now, and the last events about the pods of ended attempts."""
        events = await where.caller.services.reading.events(await where.row())
        return await _sent(where, EventPage(items=[event_view(event) for event in events], next_page_token=None))

    @_route(router, f"{prefix}/manifests", f"list_job_manifests{suffix}", ManifestList)
    async def list_job_manifests(
        where: Annotated[Located, Depends(locate)],
        task: Annotated[
            str | None, Query(max_length=253, description="Only the objects of the replicas of this task.")
        ] = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """The Kubernetes objects that the job becomes, in the order of creation. A page may end early by its size."""
        row = await where.row()
        asked = paging.question([row.uid, row.generation, row.status.resumes > 0, task])
        start, size = paging.start_of(page_token, asked), paging.page_size(page_size)
        page = await where.caller.services.reading.manifests(row, start=start, size=size, task=task)
        token = paging.after_seq(asked, start + len(page.items)) if page.more else None
        return answer(list_bytes(page.items, token), None, await where.caller.services.freshness.read())


async def _sent(where: Located, view: BaseModel) -> Response:
    return answer(view.model_dump_json(by_alias=True).encode(), None, await where.caller.services.freshness.read())
