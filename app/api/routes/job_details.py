"""What only jobs have to read: replicas, scale records and Kubernetes objects."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from app.api import paging
from app.api.jobs import JOBS_RESOURCE
from app.api.parameters import PageSize, PageToken
from app.api.polling import answer
from app.api.rendering import list_bytes, replica_view, scale_record_view
from app.api.routes.reading import Locate, Located, documented, places, sent
from app.api.views import ManifestList, ReplicaPage, ScaleRecordPage
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.vocabulary import ReplicaPhase


def router() -> APIRouter:
    found = APIRouter(tags=["jobs"])
    for prefix, locate, suffix in places(JOBS_RESOURCE):
        _add_replicas(found, prefix, locate, suffix)
        _add_scale_records(found, prefix, locate, suffix)
        _add_manifests(found, prefix, locate, suffix)
    return found


def _add_replicas(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @router.get(f"{prefix}/replicas", **documented(f"list_job_replicas{suffix}", ReplicaPage))
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
        return await sent(where, ReplicaPage(items=items, next_page_token=token))


def _add_scale_records(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @router.get(f"{prefix}/scale-records", **documented(f"list_job_scale_records{suffix}", ScaleRecordPage))
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
        return await sent(where, ScaleRecordPage(items=items, next_page_token=token))


def _add_manifests(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @router.get(f"{prefix}/manifests", **documented(f"list_job_manifests{suffix}", ManifestList))
    async def list_job_manifests(
        where: Annotated[Located, Depends(locate)],
        task: Annotated[
            str | None, Query(max_length=253, description="Only the objects of the replicas of this task.")
        ] = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """The Kubernetes objects that the job becomes, in the order of creation. A page may end early by its size."""
        row: JobRow = await where.row()
        asked = paging.question([row.uid, row.generation, row.status.resumes > 0, task])
        start, size = paging.start_of(page_token, asked), paging.page_size(page_size)
        page = await where.caller.services.reading.manifests(row, start=start, size=size, task=task)
        token = paging.after_seq(asked, start + len(page.items)) if page.more else None
        return answer(list_bytes(page.items, token), None, await where.caller.services.freshness.read())
