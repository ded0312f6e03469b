"""Renders the answers about objects: stored rows and planned jobs become views (`app/api/views`) or their JSON."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from app.api.answers.responses import json_bytes
from app.api.views.base import View
from app.api.views.dry_runs import ClusterCheckView, PlanView, TaskPlanView, queue_check_view
from app.api.views.kept_logs import KeptLogView
from app.api.views.objects import (
    AggregateView,
    ConditionView,
    EventView,
    EvictionView,
    FirstFailureView,
    JobStatusView,
    JobView,
    JobWarningView,
    PendingReasonView,
    QueueingView,
    StatusView,
    TaskScalingView,
)
from app.api.views.replicas import AttemptView, ContainerView, ReplicaView
from app.api.views.structs import struct_of
from app.api.views.summaries import JobSummaryView, ListView
from app.db.jobs.rows import JobRow, JobSummary
from app.db.kept_logs import CountedLog
from app.db.objects.history import HistoryRow
from app.db.samples.rows import SampleRow
from app.domain.cluster_check import ClusterCheck
from app.domain.kinds.job_kind import Accepted, Scaling, StatusFacts
from app.domain.queueing.admission import Queueing
from app.domain.status.leftovers import shown_message
from app.domain.status.log_choice import default_attempt, has_log
from app.domain.status.records import Condition, JobStatus, ReplicaFailure
from app.domain.vocabulary import COUNTERS
from app.services.reading.jobs import RelatedRows, ReplicaHistory
from app.services.reading.objects import ResourceEvent
from app.services.reading.queues import QueueCheck
from app.services.submitting.jobs import PreparedJob

_NO_RELATED_ROWS: Final = RelatedRows()
_JOB: Final = struct_of(JobView)
_STATUS: Final = struct_of(StatusView)
_SUMMARY: Final = struct_of(JobSummaryView)


def job_bytes(
    accepted: Accepted[Any], job: JobRow, related: RelatedRows = _NO_RELATED_ROWS, purge_at: datetime | None = None
) -> bytes:
    """Return the JSON of a JobView. The native status is derived from the related rows. A new job has none."""
    kind = accepted.kind
    view = _JOB(
        **identity(job),
        **as_submitted(job),
        retry_of=job.retry_of,
        imported_at=job.imported_at,
        scaling={task: _encode(view) for task, view in _scaling(kind.scaling(accepted)).items()},
        purge_at=purge_at,
        status=_status_struct(job.status),
        native_status=kind.native_status(accepted, _status_facts(job, related)),
        conditions=[_encode(condition_view(condition)) for condition in job.status.conditions],
    )
    return msgspec.json.encode(view)


def _encode(view: View) -> msgspec.Raw:
    """Return a view as a part of an object that msgspec encodes."""
    return msgspec.Raw(json_bytes(view))


def identity(row: JobSummary | SampleRow) -> dict[str, Any]:
    """Return the fields that identify an object and its generation."""
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "kind": row.kind,
        "generation": row.generation,
        "deleted_at": row.deleted_at,
    }


def as_submitted(row: JobRow | SampleRow) -> dict[str, Any]:
    """Return the fields with what was submitted, when and by whom."""
    metadata = row.manifest["metadata"]
    return {
        "api_version": row.api_version,
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        **submission(row),
        "spec": row.manifest["spec"],
    }


def submission(row: JobSummary | SampleRow) -> dict[str, Any]:
    """Return the fields with the time and the author of the submission."""
    return {"created_at": row.created_at, "created_by": row.created_by, "created_by_id": row.created_by_id}


def status_view(job: JobSummary) -> JobStatusView:
    return JobStatusView(
        **identity(job),
        status=_status(job.status),
        conditions=[condition_view(condition) for condition in job.status.conditions],
    )


def summary_bytes(job: JobSummary) -> bytes:
    return msgspec.json.encode(
        _SUMMARY(
            **identity(job),
            **submission(job),
            imported_at=job.imported_at,
            labels=job.labels,
            status=_status_struct(job.status),
        )
    )


def list_bytes(items: Iterable[bytes], next_page_token: str | None = None, view: ListView | None = None) -> bytes:
    """Return the JSON of a list whose items are JSON already. Lists with several views have the field `view`."""
    shown = b"" if view is None else b',"view":"%b"' % view.encode()
    token = msgspec.json.encode(next_page_token)
    return b'{"items":[' + b",".join(items) + b'],"nextPageToken":' + token + shown + b"}"


def kept_log_view(counted: CountedLog) -> KeptLogView:
    log = counted.log
    return KeptLogView(
        task=log.task,
        rank=log.rank,
        attempt=log.attempt,
        container=log.container,
        run=log.run,
        state=log.state,
        bytes=log.text_bytes,
        lines=log.lines,
        first_at=log.first_at,
        last_at=log.last_at,
        gaps=counted.gaps,
        note=log.note,
    )


def replica_view(story: ReplicaHistory) -> ReplicaView:
    replica = story.stored.replica
    current = replica.attempt
    return ReplicaView(
        name=story.stored.pod_name or "",
        task=replica.key.task,
        rank=replica.key.rank,
        phase=replica.phase,
        attempt=current.number,
        restart_count=replica.restarts,
        restarts_in_place=current.restarts_in_place,
        disruptions=replica.disruptions,
        leaving=replica.leaving,
        retry_at=replica.retry_at,
        node=current.node,
        pod_ip=current.pod_ip,
        started_at=current.started_at,
        finished_at=current.finished_at,
        exit_code=current.exit_code,
        reason=current.reason,
        message=current.message,
        containers=[ContainerView.of(container) for container in current.containers],
        attempts=[AttemptView.of(attempt) for attempt in story.attempts],
        log_attempt=shown.number if has_log(shown := default_attempt(story.attempts)) else None,
    )


def history_fields(row: HistoryRow) -> dict[str, Any]:
    """Return the fields of an entry of a history. Its model depends on the resource, whose phases it has."""
    entry = row.entry
    task, rank = entry.key or (None, None)
    return {
        "seq": row.seq,
        "at": entry.at,
        "phase": entry.phase,
        "reason": entry.reason,
        "message": entry.message,
        "actor": entry.actor.name,
        "actor_id": entry.actor.id,
        "task": task,
        "rank": rank,
        "attempt": entry.attempt,
    }


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


def _status_facts(job: JobRow, related: RelatedRows) -> StatusFacts:
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
        **_plain_status(status),
        aggregate=AggregateView(**_aggregate(status)),
        pending_reasons=[PendingReasonView.of(reason) for reason in status.pending_reasons],
        restarts_in_place=status.restarts_in_place,
        still_running=status.still_running,
        warnings=[JobWarningView.of(warning) for warning in status.warnings],
        first_failure=_first_failure(status.first_failure),
        queue=_queue(status.queueing),
    )


def _status_struct(status: JobStatus) -> Any:
    """Return what `_status` returns as a struct. Pending reasons and warnings have the same fields in all formats."""
    failure, queue = _first_failure(status.first_failure), _queue(status.queueing)
    return _STATUS(
        **_plain_status(status),
        aggregate=_aggregate(status),
        pending_reasons=status.pending_reasons,
        restarts_in_place=status.restarts_in_place,
        still_running=status.still_running,
        warnings=status.warnings,
        first_failure=failure and _encode(failure),
        queue=queue and _encode(queue),
    )


def _plain_status(status: JobStatus) -> dict[str, Any]:
    """Return the fields of a status whose values are not objects."""
    return {
        "phase": status.phase,
        "reason": status.reason,
        "message": shown_message(status),
        "observed_generation": status.observed_generation,
        "started_at": status.started_at,
        "finished_at": status.finished_at,
        "observed_at": status.observed_at,
    }


def _aggregate(status: JobStatus) -> dict[str, int]:
    return {counter: status.aggregate.get(phase, 0) for phase, counter in COUNTERS.items()}


def _first_failure(failure: ReplicaFailure | None) -> FirstFailureView | None:
    if failure is None:
        return None
    assert failure.at is not None, "the time of the first failure is always recorded"
    return FirstFailureView(
        replica=str(failure.key),
        attempt=failure.attempt,
        node=failure.node,
        container=failure.container,
        exit_code=failure.exit_code,
        signal=failure.signal,
        reason=failure.reason,
        message=failure.message or None,
        last_lines=None if failure.last_lines is None else list(failure.last_lines),
        at=failure.at,
    )


def _queue(record: Queueing | None) -> QueueingView | None:
    if record is None:
        return None
    eviction = EvictionView(
        reason=record.evicted, message=record.evicted_because, at=record.evicted_at, preempted_by=record.preemptor
    )
    return QueueingView(
        name=record.name,
        admitted=record.admission is not None,
        queued_at=record.queued_at,
        admitted_at=record.admitted_at,
        eviction=eviction if record.evicted else None,
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


def dry_run_bytes(
    run: PreparedJob,
    manifests: Sequence[bytes],
    left_out: int,
    *,
    cluster: ClusterCheck | None,
    queue: QueueCheck | None,
) -> bytes:
    """Return the JSON of a DryRunView. Its manifests are JSON already, because validating them takes too long."""
    plan, row = run.plan, run.new.row
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
    services = [name for task in plan.tasks if task.own_services for name in names[task.name]]
    view = PlanView(
        tasks=tasks,
        pods=[name for of_task in names.values() for name in of_task],
        services=[service.name for service in plan.services] + services,
        active_deadline_seconds=plan.active_deadline,
        pending_deadline_seconds=plan.pending_deadline,
        start_deadline_seconds=plan.start_deadline,
        ttl_seconds_after_finished=plan.ttl_after_finished,
    )
    # Joined by hand, because `manifests` may have 4 MiB that need no second encoding.
    own = msgspec.json.encode(row.status.warnings)
    checks = (
        b"null" if cluster is None else json_bytes(ClusterCheckView.of(cluster)),
        b"null" if queue is None else json_bytes(queue_check_view(queue)),
    )
    parts = (msgspec.json.encode(row.manifest), own, json_bytes(view), b",".join(manifests), left_out, *checks)
    head = b'{"dryRun":true,"manifest":%b,"warnings":%b,"plan":%b,'
    return (head + b'"manifests":[%b],"manifestsOmitted":%d,"cluster":%b,"queue":%b}') % parts
