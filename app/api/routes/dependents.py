"""What depends on a SampleSet: the live jobs that mount it, and its SampleJobs."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from app.api.podless import PodlessResource
from app.api.routes.reading import Locate, Located, documented, places, sent
from app.api.views import View
from app.db.samples.rows import SampleRow
from app.domain.access.namespaces import NamespaceSet
from app.domain.cache.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.cache.vocabulary import SampleJobPhase
from app.domain.listing import Criteria

_MAX_JOBS: Final = 100


class MountingJobView(View):
    """A live job that mounts the claim of a SampleSet."""

    uid: UUID
    name: str
    kind: str
    phase: str


class JobOfSetView(View):
    """A SampleJob of a SampleSet."""

    uid: UUID
    name: str
    type: str
    phase: SampleJobPhase


class DependentsView(View):
    """What depends on a SampleSet, the newest 100 of each."""

    jobs: list[MountingJobView]
    sample_jobs: list[JobOfSetView]


def router() -> APIRouter:
    resource = PodlessResource(SAMPLE_SET)
    found = APIRouter(tags=[resource.name])
    for prefix, locate, suffix in places(resource):
        _add_dependents(found, prefix, locate, suffix)
    return found


def _add_dependents(router: APIRouter, prefix: str, locate: Locate, suffix: str) -> None:
    @router.get(f"{prefix}/dependents", **documented(f"list_sample_set_dependents{suffix}", DependentsView))
    async def list_sample_set_dependents(where: Annotated[Located, Depends(locate)]) -> Response:
        """The live jobs that mount the set's claim, and the SampleJobs of the set."""
        row: SampleRow = await where.row()
        if row.gone_at is not None:
            # Both are found by the name of the set, which a later set may have.
            return await sent(where, DependentsView(jobs=[], sample_jobs=[]))
        services = where.caller.services.podless
        mine = Criteria(namespaces=NamespaceSet.of(row.namespace), set_name=row.name)
        page = await services[SAMPLE_JOB.resource].reading.page(mine, None, _MAX_JOBS)
        jobs = await services[SAMPLE_SET.resource].reading.mounting_jobs(row)
        view = DependentsView(
            jobs=[MountingJobView(uid=job.uid, name=job.name, kind=job.kind, phase=job.phase) for job in jobs],
            sample_jobs=[
                JobOfSetView(
                    uid=job.uid, name=job.name, type=job.manifest["spec"]["type"], phase=SampleJobPhase(job.phase)
                )
                for job in page.rows
            ],
        )
        return await sent(where, view)
