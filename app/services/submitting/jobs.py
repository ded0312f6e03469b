"""Submission of new jobs: plan, reserved names, and the group commit that stores them."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final
from uuid import UUID

import msgspec
from typing_extensions import override

from app.base.clock import Clock
from app.base.offload import is_large, offloaded
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.rows import JobRow
from app.db.jobs.submit import Answer, NameTaken, NewJob, Submitted
from app.domain.access.actors import Actor
from app.domain.errors import FieldError, InvalidManifest
from app.domain.manifests.rendered import reserved_names
from app.domain.plan import JobPlan, JobWarning, Manifest
from app.domain.planning import Draft, Planner
from app.domain.reservations.name_ranges import NameRange
from app.domain.status.records import JobPendingReason, JobStatus
from app.domain.vocabulary import PendingCode, ReplicaPhase
from app.services.submitting.objects import Hint, Submitter
from app.telemetry import trace_context

# Replicas. Larger jobs are rendered in a thread, so that other requests do not wait for their native status.
LARGE_JOB: Final = 500
_NO_REPLICAS: Final = dict.fromkeys(ReplicaPhase, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJob:
    """A valid document with its plan.

    `text` is the JSON of its manifest. `is_large` says that the document is too large for the event loop.
    """

    draft: Draft
    text: bytes
    posted: Manifest
    uid: UUID
    plan: JobPlan
    names: Sequence[NameRange]
    warnings: tuple[JobWarning, ...]
    is_large: bool

    @property
    def manifest(self) -> Manifest:
        return self.draft.manifest

    @property
    def name(self) -> str:
        return self.draft.name

    @property
    def generated(self) -> bool:
        return self.draft.generated


class JobSubmitter(Submitter[PreparedJob, NewJob, JobRow]):
    """Submits jobs."""

    def __init__(
        self, commit: GroupCommit, planner: Planner, clock: Clock, hint: Hint, randomness: random.Random
    ) -> None:
        super().__init__("job", clock, hint, randomness)
        self._commit = commit
        self._planner = planner

    @override
    async def prepare(
        self, document: Manifest, namespace: str, *, administers: bool = False, posted: Manifest | None = None
    ) -> PreparedJob:
        large = is_large(document)
        prepare = partial(self._prepare, document, posted or document, namespace, administers=administers, large=large)
        return await offloaded(prepare) if large else prepare()

    def _prepare(
        self, document: Manifest, posted: Manifest, namespace: str, *, administers: bool, large: bool
    ) -> PreparedJob:
        draft = self._planner.draft(document, namespace, self.suffix, administers=administers)
        uid = self.draw_uid()
        plan = self._planner.checked_plan(draft.accepted, str(uid))
        # Encoded once for all that needs it, and while the processor still has the manifest in its cache.
        text = msgspec.json.encode(draft.manifest)
        return PreparedJob(
            draft=draft,
            text=text,
            posted=posted,
            uid=uid,
            plan=plan,
            names=reserved_names(plan),
            warnings=tuple(draft.accepted.dialect.warnings(posted, draft.accepted)),
            is_large=large,
        )

    @override
    def new(self, prepared: PreparedJob, actor: Actor, retry_of: UUID | None = None) -> NewJob:
        # The answer and the first reconcile read it.
        self._planner.keep(prepared.draft.accepted, prepared.uid, generation=1, text=prepared.text)
        manifest, pods = prepared.manifest, prepared.plan.size
        return NewJob(
            uid=prepared.uid,
            namespace=manifest["metadata"]["namespace"],
            name=prepared.name,
            kind=manifest["kind"],
            api_version=manifest["apiVersion"],
            manifest=manifest,
            text=prepared.text.decode(),
            posted_manifest=prepared.posted,
            labels=manifest["metadata"].get("labels", {}),
            created_at=self._clock.now(),
            created_by=actor.name,
            created_by_id=actor.id,
            names=prepared.names,
            retry_of=retry_of,
            status=_first_status(pods, prepared.warnings),
            pods=pods,
            **trace_context.columns_of(trace_context.current()),
        )

    @override
    def remedy(self, taken: NameTaken) -> str:
        return "another name, or wait until that job has ended"

    @override
    def as_stored(self, new: NewJob) -> JobRow:
        return JobRow(
            uid=new.uid,
            namespace=new.namespace,
            name=new.name,
            kind=new.kind,
            api_version=new.api_version,
            labels=new.labels,
            manifest=new.manifest,
            generation=1,
            version=1,
            created_at=new.created_at,
            created_by=new.created_by,
            created_by_id=new.created_by_id,
            retry_of=new.retry_of,
            cancel_requested_at=None,
            cancel_requested_by=None,
            cancel_requested_by_id=None,
            cancel_reason=None,
            remove_requested_at=None,
            deleted_at=None,
            status=new.status,
        )

    @override
    def is_slow(self, prepared: PreparedJob) -> bool:
        return prepared.is_large or prepared.plan.size > LARGE_JOB

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
        replicas = sum(one.plan.size for one in prepared)
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
