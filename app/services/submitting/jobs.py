"""Submission of new jobs: plan, reserved names, and the group commit that stores them."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from typing_extensions import override

from app.base.clock import Clock
from app.base.offload import is_large, offload
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.rows import JobRow
from app.db.jobs.submit import NewJob
from app.db.objects.submission import Answer, NameTaken, Submitted
from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.job_kind import Accepted
from app.domain.manifests.rendered import reserved_names
from app.domain.plan import JobPlan, JobWarning, Manifest
from app.domain.planning import Planner
from app.domain.queueing.priorities import known_priority
from app.domain.status.records import JobPendingReason, JobStatus
from app.domain.vocabulary import PendingCode, ReplicaPhase
from app.services.hints import Hint
from app.services.submitting.objects import Prepared, SubmitRequest, Submitter
from app.telemetry import trace_context

# Replicas. Larger jobs are rendered in a thread, so that other requests do not wait for their native status.
LARGE_JOB: Final = 500
_NO_REPLICAS: Final = dict.fromkeys(ReplicaPhase, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJob(Prepared[NewJob]):
    """A valid document as a new job, with its typed form and its plan."""

    accepted: Accepted[Any]
    plan: JobPlan


class JobSubmitter(Submitter[PreparedJob, NewJob]):
    """Submits jobs. `check_plan` raises for a plan that this cluster would refuse."""

    def __init__(
        self,
        commit: GroupCommit,
        planner: Planner,
        clock: Clock,
        hint: Hint,
        randomness: random.Random,
        check_plan: Callable[[JobPlan], Awaitable[None]],
    ) -> None:
        super().__init__("job", clock, hint, randomness)
        self._commit = commit
        self._planner = planner
        self._check_plan = check_plan

    @override
    async def prepare(self, document: Manifest, request: SubmitRequest) -> PreparedJob:
        large = is_large(document)
        prepare = partial(self._prepare, document, request, large=large)
        prepared = await offload(prepare) if large else prepare()
        await self._check_plan(prepared.plan)
        return prepared

    def _prepare(self, document: Manifest, request: SubmitRequest, *, large: bool) -> PreparedJob:
        draft = self._planner.draft(document, request.namespace, self.suffix, administers=request.administers)
        accepted, uid = draft.accepted, self.draw_uid()
        plan = self._planner.checked_plan(accepted, str(uid))
        manifest = accepted.manifest
        posted = request.posted or document
        row = JobRow(
            uid=uid,
            namespace=manifest["metadata"]["namespace"],
            name=accepted.name,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            labels=manifest["metadata"].get("labels", {}),
            manifest=manifest,
            created_at=self._clock.now(),
            created_by=request.actor.name,
            created_by_id=request.actor.id,
            retry_of=request.retry_of,
            status=_first_status(plan.size, tuple(accepted.kind.warnings(posted, accepted))),
            **trace_context.columns_of(trace_context.current()),
        )
        new = NewJob(
            row=row,
            names=reserved_names(plan),
            posted_manifest=posted,
            pods=plan.size,
            priority=known_priority(plan.priority),
        )
        slow = large or plan.size > LARGE_JOB
        return PreparedJob(new=new, accepted=accepted, plan=plan, generated=draft.generated, is_slow=slow)

    @override
    def remedy(self, taken: NameTaken) -> str:
        return "another name, or wait until that job has ended"

    @override
    async def store(self, news: Sequence[NewJob]) -> Mapping[int, Answer]:
        """Store the jobs. A single job shares its commit with other requests that arrive at the same time."""
        if len(news) > 1:
            return await self._commit.submit_together(news)
        answer = await self._commit.submit(news[0])
        return {} if isinstance(answer, Submitted) else {0: answer}

    @override
    def check_total(self, prepared: Sequence[PreparedJob], count: int) -> None:
        """Raise InvalidManifest at the job with which the List has too many replicas. Later jobs are not planned."""
        most = self._planner.limits.max_list_replicas
        replicas = sum(job.plan.size for job in prepared)
        if replicas <= most:
            return
        detail = f"the first {len(prepared)} valid ones of the {count} manifests have {replicas} replicas together"
        error = FieldError(
            pointer="/items", code="TooManyReplicas", detail=detail, accepted=f"{most} replicas or fewer in one List"
        )
        raise InvalidManifest("the List has too many replicas; none was stored", errors=[error])


# Most jobs have one of a few sizes.
@lru_cache(maxsize=256)
def _first_status(count: int, warnings: tuple[JobWarning, ...]) -> JobStatus:
    """Return the status of a job with this number of replicas before its first reconcile."""
    waiting = JobPendingReason(
        code=PendingCode.QUEUED,
        message="the controller has not reconciled this job yet",
        since=None,
        replicas=(),
        count=count,
    )
    # The aggregate adds up to the desired number of replicas from the beginning.
    aggregate = _NO_REPLICAS | {ReplicaPhase.CREATING: count}
    return JobStatus(aggregate=aggregate, pending_reasons=(waiting,), warnings=warnings)
