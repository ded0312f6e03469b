"""The resource `jobs`: all kinds whose manifests become pods."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import override

from app.api.dependencies import Api
from app.api.openapi_examples import MANIFEST
from app.api.polling import Rendered, Shown
from app.api.rendering import dry_run_bytes, job_bytes, status_view
from app.api.resources import Examples, Models, Resource
from app.api.views import (
    BatchView,
    DryRunList,
    DryRunView,
    JobPage,
    JobStatusView,
    JobView,
    WatchEventView,
)
from app.db.jobs.rows import JobRow
from app.domain.kinds.base import JOBS
from app.domain.vocabulary import JobPhase
from app.services.control import JobControl
from app.services.gateway import Services
from app.services.manifests import Sampler
from app.services.reading import Address, JobReader
from app.services.submitting_jobs import JobSubmitter, PreparedJob

_LOADED_REPLICAS: Final = 2000  # a page of a hundred jobs may have a million


class JobsResource(Resource):
    """Jobs of every kind. Their views are rendered once a version, and kept."""

    name = JOBS
    word = "job"
    what = "job"
    event = "job"
    about = "Submit, list, read and edit jobs."
    phases = JobPhase
    batch_operation = "submit_batch"
    models = Models(
        view=JobView,
        status=JobStatusView,
        page=JobPage,
        dry_run=DryRunView,
        dry_run_list=DryRunList,
        batch=BatchView,
        watch=WatchEventView,
    )
    examples = Examples(manifest=MANIFEST, patch={"metadata": {"labels": {"team": "vision"}}})

    @override
    def reading(self, services: Services) -> JobReader:
        return services.reading

    @override
    def submitter(self, services: Services) -> JobSubmitter:
        return services.submitter

    @override
    def editor(self, services: Services) -> JobControl:
        return services.control

    @override
    def new_bytes(self, services: Services, row: JobRow) -> bytes:
        return job_bytes(services.planner, row)

    @override
    async def read(self, api: Api, address: Address, shown: Shown) -> Rendered:
        return await api.poller.read(address, shown)

    @override
    async def render(self, api: Api, row: JobRow) -> Rendered:
        return await api.poller.of_job(row)

    @override
    async def items(self, api: Api, rows: Sequence[JobRow], max_bytes: int) -> list[bytes]:
        """The replicas of few jobs are loaded at once."""
        poller = api.poller
        items: list[bytes] = []
        size = 0
        for portion in _portions(rows):
            related = await api.services.reading.related_rows([row for row in portion if poller.kept(row) is None])
            for row in portion:
                item = poller.kept(row)
                if item is None:
                    item = await poller.of_row(row, related[row.uid])
                    await asyncio.sleep(0)  # a page of 500 jobs takes longer to render than others should wait
                size += len(item.body)
                if items and size > max_bytes:
                    return items
                items.append(item.body)
        return items

    @override
    async def statuses(self, services: Services, uids: Collection[UUID]) -> Mapping[UUID, BaseModel]:
        return {uid: status_view(job) for uid, job in (await services.reading.summaries(uids)).items()}

    @override
    async def dry_run_bytes(self, prepared: PreparedJob, sampler: Sampler) -> bytes:
        manifests, left_out = await sampler.sample(prepared.plan)
        return dry_run_bytes(prepared, manifests, left_out)


def _portions(rows: Sequence[JobRow]) -> Iterator[Sequence[JobRow]]:
    """The jobs in groups that have few replicas together, or of one job."""
    group: list[JobRow] = []
    replicas = 0
    for row in rows:
        count = sum(row.status.aggregate.values())
        if group and replicas + count > _LOADED_REPLICAS:
            yield group
            group, replicas = [], 0
        group.append(row)
        replicas += count
    if group:
        yield group


JOBS_RESOURCE: Final = JobsResource()
