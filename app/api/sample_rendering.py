"""Rows of SampleSets and SampleJobs to views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.api.sample_views import (
    DeletionView,
    JobOfSetView,
    MountingJobView,
    SampleCacheView,
    SampleEventView,
    SampleHistoryView,
    SampleJobStatusView,
    SampleJobView,
    SampleRuntimeView,
    SampleSetStatusView,
    SampleSetView,
)
from app.db.sample_controller import MountingJob
from app.db.sample_rows import SampleEventRow, SampleHistoryRow, SampleRow
from app.domain.cache.native import native_job_status, native_set_status
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase

SampleView: TypeAlias = SampleSetView | SampleJobView
SampleStatusView: TypeAlias = SampleSetStatusView | SampleJobStatusView


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """Who has to do with a set: the live jobs that mount it, and its SampleJobs."""

    jobs: Sequence[MountingJob] = ()
    sample_jobs: Sequence[SampleRow] = ()


def sample_view(row: SampleRow, company: Company | None = None) -> SampleView:
    """All of it; of a set without its company, who that is stays untold."""
    if isinstance(row.record, SetRecord):
        return SampleSetView(
            **_set_status(row, row.record),
            **_submitted(row, native_set_status(row.record)),
            jobs=None if company is None else [_mounting(job) for job in company.jobs],
            sample_jobs=None if company is None else [_of_set(job) for job in company.sample_jobs],
        )
    return SampleJobView(**_job_status(row, row.record), **_submitted(row, native_job_status(row.record)))


def sample_status_view(row: SampleRow) -> SampleStatusView:
    if isinstance(row.record, SetRecord):
        return SampleSetStatusView(**_set_status(row, row.record))
    return SampleJobStatusView(**_job_status(row, row.record))


def sample_bytes(row: SampleRow) -> bytes:
    """As lists and the answer to a submission show it."""
    return sample_view(row).model_dump_json(by_alias=True).encode()


def sample_history_view(row: SampleHistoryRow) -> SampleHistoryView:
    return SampleHistoryView(
        seq=row.seq, at=row.at, phase=row.phase, reason=row.reason, message=row.message, actor=row.actor
    )


def sample_event_view(row: SampleEventRow) -> SampleEventView:
    return SampleEventView(seq=row.seq, at=row.at, type=row.type, reason=row.reason, message=row.message)


def _set_status(row: SampleRow, record: SetRecord) -> dict[str, Any]:
    cache = record.cache
    return {
        **_status(row, record.stage),
        "phase": SetPhase(row.phase),
        "cache_observed_at": row.cache_observed_at,
        "cache": cache
        and SampleCacheView(total_bytes=cache.total_bytes, cached_bytes=cache.cached_bytes, whole=cache.is_whole),
        "runtime": SampleRuntimeView(ready=record.runtime.ready_replicas, wanted=row.manifest["spec"]["partitions"]),
    }


def _job_status(row: SampleRow, record: JobRecord) -> dict[str, Any]:
    return {
        **_status(row, None),
        "phase": SampleJobPhase(row.phase),
        "type": row.manifest["spec"]["type"],
        "sample_set": row.set_name,
        "job_name": record.job or None,
    }


def _status(row: SampleRow, stage: RemovalStage | None) -> dict[str, Any]:
    return {
        "uid": row.uid,
        "namespace": row.namespace,
        "name": row.name,
        "kind": row.kind,
        "generation": row.generation,
        "observed_generation": row.observed_generation,
        "reason": row.reason,
        "message": row.message,
        "deletion": _deletion(row, stage),
        "observed_at": row.observed_at,
    }


def _deletion(row: SampleRow, stage: RemovalStage | None) -> DeletionView | None:
    if row.delete_requested_at is None:
        return None
    shown = stage if row.gone_at is None else RemovalStage.GONE
    return DeletionView(requested_at=row.delete_requested_at, by=row.delete_requested_by or "", stage=shown)


def _submitted(row: SampleRow, native_status: dict[str, Any]) -> dict[str, Any]:
    metadata = row.manifest["metadata"]
    return {
        "api_version": row.api_version,
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "created_at": row.created_at,
        "created_by": row.created_by,
        "spec": row.manifest["spec"],
        "native_status": native_status,
    }


def _mounting(job: MountingJob) -> MountingJobView:
    return MountingJobView(uid=job.uid, name=job.name, kind=job.kind, phase=job.phase)


def _of_set(row: SampleRow) -> JobOfSetView:
    return JobOfSetView(uid=row.uid, name=row.name, type=row.manifest["spec"]["type"], phase=SampleJobPhase(row.phase))
