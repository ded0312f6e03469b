"""The resource `jobs`: the jobs of all kinds whose manifests become pods."""

from collections.abc import AsyncGenerator, Awaitable, Collection, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from typing_extensions import override

from app.api.answers.rendering import dry_run_bytes, job_bytes, status_view, summary_bytes
from app.api.requests.dependencies import Api
from app.api.resources.examples import MANIFEST
from app.api.resources.resource import CurrentStatus, DryRunChecks, Examples, Models, Resource
from app.api.shared.job_views import Rendered, Representation
from app.api.views.dry_runs import DryRunList
from app.api.views.objects import HistoryPage, JobPage, JobStatusView, JobView, WatchEventView
from app.api.views.problems import BatchView
from app.api.views.summaries import JobCountsView, JobSummaryPage, JobSummaryView
from app.db.jobs.rows import JobRow, JobSummary
from app.domain.cluster_check import ClusterCheck
from app.domain.kinds.base import JOBS
from app.domain.manifests.gangs import with_gang_apis
from app.domain.vocabulary import JobPhase
from app.fairness.share import next_slice
from app.services.editing.jobs import JobEditor
from app.services.editing.redaction import JobRedactor
from app.services.gateway import Services
from app.services.reading.jobs import JobReader
from app.services.reading.manifests import Sampler
from app.services.reading.objects import Address
from app.services.reading.queues import QueueCheck
from app.services.submitting.jobs import JobSubmitter, PreparedJob

# Replicas that are loaded at once. A page of a hundred jobs may have a million.
_LOADED_REPLICAS: Final = 2000


class JobsResource(Resource):
    """Jobs of every kind. Their views are rendered once for each version and cached."""

    name = JOBS
    operation_noun = "job"
    noun = "job"
    event = "job"
    description = "Submit, list, read and edit jobs."
    phases = JobPhase
    has_replicas = True
    batch_operation = "submit_batch"
    models = Models(
        view=JobView,
        status=JobStatusView,
        page=JobPage,
        summary=JobSummaryView,
        summary_page=JobSummaryPage,
        counts=JobCountsView,
        history=HistoryPage,
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
    def editor(self, services: Services) -> JobEditor:
        return services.editor

    @override
    def redactor(self, services: Services) -> JobRedactor:
        return services.redactor

    @override
    def created_bytes(self, prepared: PreparedJob) -> bytes:
        return job_bytes(prepared.accepted, prepared.new.row)

    @override
    def read(self, api: Api, address: Address, representation: Representation) -> Awaitable[Rendered]:
        return api.job_views.read(address, representation)

    @override
    async def render(self, api: Api, row: JobRow) -> Rendered:
        return await api.job_views.whole_of(row)

    @override
    async def whole_views(self, api: Api, rows: Sequence[JobRow]) -> AsyncGenerator[bytes, None]:
        """Render the whole views of the jobs, and load the replicas of a bounded number of jobs at once."""
        views = api.job_views
        for portion in _portions(rows):
            related = await api.services.reading.read_related([row for row in portion if views.find(row) is None])
            for row in portion:
                rendered = views.find(row)
                if rendered is None:
                    # The cache may have dropped a view that it had when `related` was loaded.
                    known = related.get(row.uid)
                    rendered = await (views.whole_of(row) if known is None else views.whole(row, known))
                    await next_slice()
                yield rendered.body

    @override
    def summary_bytes(self, row: JobSummary) -> bytes:
        return summary_bytes(row)

    @override
    async def statuses(self, services: Services, uids: Collection[UUID]) -> Mapping[UUID, CurrentStatus]:
        found = await services.reading.summaries(uids)
        return {
            uid: CurrentStatus(status_view(job), job.namespace, job.version, job.is_settled)
            for uid, job in found.items()
        }

    @override
    async def dry_run_bytes(self, prepared: PreparedJob, checks: DryRunChecks, sampler: Sampler) -> bytes:
        manifests, left_out = await sampler.sample(prepared.plan)
        return dry_run_bytes(prepared, manifests, left_out, cluster=checks.cluster, queue=checks.queue)

    @override
    async def cluster_checks(
        self, services: Services, prepared: Sequence[PreparedJob], token_id: str
    ) -> Sequence[ClusterCheck]:
        return await services.cluster.check(prepared, token_id)

    @override
    async def queue_checks(
        self, services: Services, namespace: str, prepared: Sequence[PreparedJob], gang_apis: Collection[str] | None
    ) -> Sequence[QueueCheck | None]:
        plans = [with_gang_apis(job.plan, gang_apis) for job in prepared]
        return await services.queues.check(namespace, plans)


def _portions(rows: Sequence[JobRow]) -> Iterator[Sequence[JobRow]]:
    """Split the jobs into groups that have at most _LOADED_REPLICAS replicas together, or a single job."""
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
