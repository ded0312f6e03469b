"""The dependents of a SampleSet: the jobs that mount its claim, and its SampleJobs."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from app.api.resources.samples import SampleResource
from app.api.routers import new_router
from app.api.routes.objects.reading import Target, TargetDependency, object_paths, read_route, view_response
from app.api.views.base import View
from app.api.views.closed_sets import JobKindName
from app.db.samples.rows import SampleRow
from app.domain.access.namespaces import NamespaceSet
from app.domain.cache.vocabulary import JobType, SampleJobPhase
from app.domain.kinds.sample_kind import Facts
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.status import SampleProgress
from app.domain.listing import Criteria
from app.domain.vocabulary import JobPhase

# Dependents of each sort that an answer shows.
_MAX_SHOWN: Final = 100


class MountingJobView(View):
    """A job that mounts the claim of a SampleSet, and is live or has replicas that still run."""

    uid: UUID
    name: str
    kind: JobKindName
    phase: JobPhase


class JobOfSetView(View):
    """A SampleJob of a SampleSet."""

    uid: UUID
    name: str
    type: JobType
    phase: SampleJobPhase
    progress: SampleProgress | None


class DependentsView(View):
    """The dependents of a SampleSet, the newest 100 of each sort."""

    jobs: list[MountingJobView]
    sample_jobs: list[JobOfSetView]


def router() -> APIRouter:
    resource = SampleResource(SAMPLE_SET)
    router = new_router(resource.name)
    for path, target_of, suffix in object_paths(resource):
        _add_dependents(router, path, target_of, suffix)
    return router


def _add_dependents(router: APIRouter, path: str, target_of: TargetDependency, suffix: str) -> None:
    @router.get(f"{path}/dependents", **read_route(f"list_sample_set_dependents{suffix}", DependentsView))
    async def list_sample_set_dependents(target: Annotated[Target, Depends(target_of)]) -> Response:
        """List the jobs that mount the claim of the SampleSet, while they are live or still run, and its SampleJobs."""
        row: SampleRow = await target.row()
        if row.gone_at is not None:
            # Dependents are found by the name of the set, which a later set may have.
            return await view_response(target, DependentsView(jobs=[], sample_jobs=[]))
        services = target.caller.services.samples
        of_set = Criteria(namespaces=NamespaceSet.of(row.namespace), set_name=row.name)
        sample_jobs = await services[SAMPLE_JOB.resource].reading.newest(of_set, _MAX_SHOWN)
        jobs = await services[SAMPLE_SET.resource].reading.mounting_jobs(row)
        view = DependentsView(
            jobs=[
                MountingJobView(uid=job.uid, name=job.name, kind=job.kind, phase=JobPhase(job.phase)) for job in jobs
            ],
            sample_jobs=[_job_of_set(job) for job in sample_jobs],
        )
        return await view_response(target, view)


def _job_of_set(job: SampleRow) -> JobOfSetView:
    figures = SAMPLE_JOB.make_figures(Facts(manifest=job.manifest, record=job.record))
    return JobOfSetView(
        uid=job.uid,
        name=job.name,
        type=figures.type,
        phase=SampleJobPhase(job.phase),
        progress=figures.progress,
    )
