"""Records to views, and the bytes that pollers read: rendered once a version, kept while there is room."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from app.api.views import (
    AggregateView,
    AttemptView,
    ConditionView,
    ContainerView,
    EventView,
    HistoryView,
    JobStatusView,
    JobView,
    PendingReasonView,
    PlanView,
    ReplicaView,
    ScaleRecordView,
    StatusView,
    TaskPlanView,
    TaskScalingView,
)
from app.db.history import HistoryRow
from app.db.jobs.rows import JobRow, JobSummary
from app.db.samples.rows import SampleRow
from app.domain.dialects.base import Scaling, StatusFacts
from app.domain.planning import Planner
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Condition, JobStatus, ScaleRecord
from app.services.reading import RelatedRows, ReplicaHistory, ResourceEvent
from app.services.submitting_jobs import PreparedJob

CACHE_BYTES: Final = 64 * 1024 * 1024
# What an entry costs beside its bytes.
_OVERHEAD: Final = 256
_NONE_YET: Final = RelatedRows()


class Sized(Protocol):
    """What the cache keeps: something with a body."""

    @property
    def body(self) -> bytes: ...


_T = TypeVar("_T", bound=Sized)


class RenderCache(Generic[_T]):
    """Least recently used views go first; the bound is bytes, because jobs differ by a factor of a thousand."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()

    def get(self, key: Hashable) -> _T | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Hashable, entry: _T) -> None:
        if key in self._entries or len(entry.body) > self._max_bytes // 8:
            return
        self._entries[key] = entry
        self._bytes += len(entry.body) + _OVERHEAD
        while self._bytes > self._max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._bytes -= len(dropped.body) + _OVERHEAD


def job_bytes(planner: Planner, job: JobRow, related: RelatedRows = _NONE_YET) -> bytes:
    """The whole job; its native status is made of its related."""
    accepted = planner.read(job.manifest, job.uid, job.generation)
    dialect = accepted.dialect
    view = JobView(
        **identity(job),
        **as_submitted(job),
        retry_of=job.retry_of,
        scaling=_scaling(dialect.scaling(accepted)),
        status=_status(job.status),
        native_status=dialect.native_status(accepted, _facts(job, related)),
        conditions=[condition_view(condition) for condition in job.status.conditions],
    )
    return view.model_dump_json(by_alias=True).encode()


def identity(row: JobSummary | SampleRow) -> dict[str, Any]:
    """The fields that tell which object it is, and which version of it."""
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "kind": row.kind,
        "generation": row.generation,
        "deleted_at": row.deleted_at,
    }


def as_submitted(row: JobRow | SampleRow) -> dict[str, Any]:
    """The fields that tell what was submitted, when and by whom."""
    metadata = row.manifest["metadata"]
    return {
        "api_version": row.api_version,
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "created_at": row.created_at,
        "created_by": row.created_by,
        "spec": row.manifest["spec"],
    }


def status_view(job: JobSummary) -> JobStatusView:
    return JobStatusView(
        **identity(job),
        status=_status(job.status),
        conditions=[condition_view(condition) for condition in job.status.conditions],
    )


def status_bytes(job: JobRow) -> bytes:
    return status_view(job).model_dump_json(by_alias=True).encode()


def list_bytes(items: Iterable[bytes], next_page_token: str | None) -> bytes:
    """A list of items that are bytes already."""
    return b'{"items":[' + b",".join(items) + b'],"nextPageToken":' + msgspec.json.encode(next_page_token) + b"}"


def joined_bytes(items: Iterable[bytes]) -> bytes:
    """New objects, as a list shows them."""
    return list_bytes(items, None)


def replica_view(story: ReplicaHistory) -> ReplicaView:
    replica = story.stored.replica
    now = replica.attempt
    return ReplicaView(
        name=story.stored.pod_name or "",
        task=replica.key.task,
        rank=replica.key.rank,
        phase=replica.phase,
        attempt=now.number,
        restart_count=replica.restarts,
        disruptions=replica.disruptions,
        leaving=replica.leaving,
        retry_at=replica.retry_at,
        node=now.node,
        pod_ip=now.pod_ip,
        started_at=now.started_at,
        finished_at=now.finished_at,
        exit_code=now.exit_code,
        reason=now.reason,
        message=now.message,
        containers=[_container(container) for container in now.containers],
        attempts=[_attempt(attempt) for attempt in (*(a for a in story.ended if a.number != now.number), now)],
    )


def history_view(row: HistoryRow) -> HistoryView:
    entry = row.entry
    task, rank = entry.key or (None, None)
    return HistoryView(
        seq=row.seq,
        at=entry.at,
        phase=entry.phase,
        reason=entry.reason,
        message=entry.message,
        actor=entry.actor,
        task=task,
        rank=rank,
        attempt=entry.attempt,
    )


def scale_record_view(record: ScaleRecord) -> ScaleRecordView:
    return ScaleRecordView(
        seq=record.seq,
        task=record.task,
        from_replicas=record.from_replicas,
        to_replicas=record.to_replicas,
        actor=record.actor,
        reason=record.reason,
        requested_at=record.requested_at,
        settled_at=record.settled_at,
        outcome=record.outcome,
        message=record.message,
    )


def event_view(event: ResourceEvent) -> EventView:
    task, rank = event.key or (None, None)
    return EventView(
        source=event.source,
        task=task,
        rank=rank,
        attempt=event.attempt,
        type=event.type,
        reason=event.reason,
        message=event.message,
        count=event.count,
        first_seen_at=event.first_seen_at,
        last_seen_at=event.last_seen_at,
    )


def _facts(job: JobRow, related: RelatedRows) -> StatusFacts:
    return StatusFacts(
        status=job.status,
        replicas=related.replicas,
        attempts=related.attempts,
        scale_records=related.scale_records,
        reported=job.reported or {},
        created_at=job.created_at,
        deleted=job.deleted_at is not None,
    )


def _scaling(scaling: Scaling | None) -> dict[str, TaskScalingView]:
    if scaling is None:
        return {}
    return {
        task: TaskScalingView(replicas=size, min=scaling.bounds[task][0], max=scaling.bounds[task][1])
        for task, size in scaling.sizes.items()
    }


def _status(status: JobStatus) -> StatusView:
    return StatusView(
        phase=status.phase,
        reason=status.reason,
        message=status.message,
        aggregate=AggregateView(**{phase.counter: count for phase, count in status.aggregate.items()}),
        pending_reasons=[
            PendingReasonView(
                code=reason.code,
                message=reason.message,
                since=reason.since,
                replicas=list(reason.replicas),
                count=reason.count,
            )
            for reason in status.pending_reasons
        ],
        observed_generation=status.observed_generation,
        started_at=status.started_at,
        finished_at=status.finished_at,
        observed_at=status.observed_at,
    )


def condition_view(condition: Condition) -> ConditionView:
    return ConditionView(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=condition.last_transition_at,
        observed_generation=condition.observed_generation,
    )


def _attempt(attempt: Attempt) -> AttemptView:
    return AttemptView(
        number=attempt.number,
        pod_uid=attempt.pod_uid,
        phase=attempt.phase,
        outcome=attempt.outcome,
        evidence=attempt.evidence,
        evidence_reason=attempt.evidence_reason,
        node=attempt.node,
        pod_ip=attempt.pod_ip,
        created_at=attempt.created_at,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        exit_code=attempt.exit_code,
        reason=attempt.reason,
        message=attempt.message,
        containers=[_container(container) for container in attempt.containers],
    )


def _container(container: ObservedContainer) -> ContainerView:
    return ContainerView(
        name=container.name,
        init=container.init,
        state=container.state,
        ready=container.ready,
        image=container.image,
        restart_count=container.restart_count,
        exit_code=container.exit_code,
        signal=container.signal,
        reason=container.reason,
        message=container.message,
        started_at=container.started_at,
        finished_at=container.finished_at,
    )


def dry_run_bytes(run: PreparedJob, manifests: Sequence[bytes], left_out: int) -> bytes:
    """A DryRunView, of parts that are JSON already: checking objects that jobgate made itself would take too long."""
    plan = run.plan
    tasks = [
        TaskPlanView(
            name=task.name,
            replicas=task.size,
            restart_policy=task.restart.policy,
            restart_limit=task.restart.limit,
        )
        for task in plan.tasks
    ]
    names = {task.name: [task.pod_name(rank) for rank in range(task.size)] for task in plan.tasks}
    own = [name for task in plan.tasks if task.own_services for name in names[task.name]]
    view = PlanView(
        tasks=tasks,
        pods=[name for of_task in names.values() for name in of_task],
        services=[service.name for service in plan.services] + own,
        active_deadline_seconds=plan.active_deadline,
        pending_deadline_seconds=plan.pending_deadline,
        ttl_seconds_after_finished=plan.ttl_after_finished,
    )
    manifest, shown = msgspec.json.encode(run.manifest), view.model_dump_json(by_alias=True).encode()
    parts = (manifest, shown, b",".join(manifests), left_out)
    return b'{"dryRun":true,"manifest":%b,"plan":%b,"manifests":[%b],"manifestsOmitted":%d}' % parts
