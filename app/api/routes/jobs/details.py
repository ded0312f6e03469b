"""Reads that only jobs have: replicas, kept logs, scale records and Kubernetes manifests."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from app.api.answers.rendering import kept_log_view, list_bytes, replica_view
from app.api.answers.responses import polled_response
from app.api.requests.paging import SequencePage
from app.api.requests.parameters import MAX_INT32, PageSize, PageToken, TaskFilter
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routers import new_router
from app.api.routes.objects.reading import Target, TargetDependency, object_paths, read_route, view_response
from app.api.views.kept_logs import KeptLogPage
from app.api.views.objects import ManifestList, ScaleRecordPage, ScaleRecordView
from app.api.views.replicas import ReplicaPage
from app.api.views.usage import JobUsageView, job_view
from app.db.jobs.replicas import ReplicaFilter
from app.db.jobs.rows import JobRow
from app.domain.vocabulary import ReplicaPhase


def router() -> APIRouter:
    router = new_router("jobs")
    for path, target_of, suffix in object_paths(JOBS_RESOURCE):
        _add_replicas(router, path, target_of, suffix)
        _add_kept_logs(router, path, target_of, suffix)
        _add_scale_records(router, path, target_of, suffix)
        _add_manifests(router, path, target_of, suffix)
        _add_usage(router, path, target_of, suffix)
    return router


def _add_replicas(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/replicas", **read_route(f"list_job_replicas{suffix}", ReplicaPage))
    async def list_job_replicas(
        target: Annotated[Target, Depends(target_of)],
        task: TaskFilter = None,
        phase: Annotated[
            list[ReplicaPhase] | None, Query(description="List only replicas in one of these phases.")
        ] = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """List the replicas of the job with all their attempts, ordered by task and rank."""
        uid = await target.uid()
        page = SequencePage.of([uid, task, phase], page_size, page_token)
        wanted = ReplicaFilter(task=task, phases=phase or ())
        stories = await target.caller.services.reading.replicas(uid, wanted, start=page.start, limit=page.limit)
        shown, token = page.cut(stories)
        return await view_response(
            target, ReplicaPage(items=[replica_view(story) for story in shown], next_page_token=token)
        )


def _add_kept_logs(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/kept-logs", **read_route(f"list_job_kept_logs{suffix}", KeptLogPage))
    async def list_job_kept_logs(
        target: Annotated[Target, Depends(target_of)],
        task: TaskFilter = None,
        rank: Annotated[int | None, Query(ge=0, le=MAX_INT32, description="Only the replicas of this rank.")] = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """List the whole logs of the job that are kept, with their sizes, times and gaps.

        There is one for each run of each container of each attempt. `GET .../logs` reads them.
        """
        uid = await target.uid()
        page = SequencePage.of([uid, "kept-logs", task, rank], page_size, page_token)
        found = await target.caller.services.reading.kept_logs(uid, task, rank, page.start, page.limit)
        shown, token = page.cut(found)
        return await view_response(target, KeptLogPage(items=list(map(kept_log_view, shown)), next_page_token=token))


def _add_scale_records(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/scale-records", **read_route(f"list_job_scale_records{suffix}", ScaleRecordPage))
    async def list_job_scale_records(
        target: Annotated[Target, Depends(target_of)], page_size: PageSize = None, page_token: PageToken = None
    ) -> Response:
        """List all changes of the desired number of replicas, with their outcomes, oldest first."""
        uid = await target.uid()
        page = SequencePage.of([uid, "scale-records"], page_size, page_token)
        records = await target.caller.services.reading.scale_records(uid, page.start, page.limit)
        shown, token = page.cut(records, lambda record: record.seq)
        return await view_response(
            target, ScaleRecordPage(items=[ScaleRecordView.of(record) for record in shown], next_page_token=token)
        )


def _add_manifests(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/manifests", **read_route(f"list_job_manifests{suffix}", ManifestList))
    async def list_job_manifests(
        target: Annotated[Target, Depends(target_of)],
        task: TaskFilter = None,
        page_size: PageSize = None,
        page_token: PageToken = None,
    ) -> Response:
        """List the Kubernetes objects of the job in the order of their creation.

        A page may have fewer items than `pageSize`, because its size in bytes is limited, too.
        """
        row: JobRow = await target.row()
        # An edit of the spec and a resume change the manifests, and thereby the places of objects in the list.
        parts = [row.uid, row.generation, row.status.resumes > 0, task]
        page = SequencePage.of(parts, page_size, page_token)
        services = target.caller.services
        found = await services.reading.manifests(row, start=page.start, size=page.size, task=task)
        token = page.token_after(page.start + len(found.items)) if found.more else None
        return polled_response(list_bytes(found.items, token), None, await services.freshness.read())


def _add_usage(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/usage", **read_route(f"get_job_usage{suffix}", JobUsageView))
    async def get_job_usage(target: Annotated[Target, Depends(target_of)]) -> Response:
        """Return what the job has used: what it requested while its pods held it, and how long it waited."""
        row: JobRow = await target.row()
        services = target.caller.services
        used, now = await services.usage.of_job(row), services.clock.now()
        return await view_response(target, job_view(used, now, services.usage.prices))
