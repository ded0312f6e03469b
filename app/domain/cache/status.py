"""The status of SampleSets and SampleJobs as the API shows it: their figures, conditions and native status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase
from app.domain.kinds.base import Facts, Figures
from app.domain.vocabulary import ConditionType


class SampleCache(Figures):
    """How much of the set's data its servers have cached, in all."""

    total_bytes: int
    cached_bytes: int
    """The sum over the nodes: more than totalBytes where several nodes have the same data."""
    whole: bool
    """Whether as much is cached as there is."""
    observed_at: datetime | None
    """When the servers last reported it."""


class SampleRuntime(Figures):
    """The set's servers."""

    ready: int
    wanted: int
    """The partitions that the manifest asks for."""


class SampleSetFigures(Figures):
    cache: SampleCache | None
    """Null until the servers have reported it."""
    runtime: SampleRuntime
    removal: RemovalStage | None
    """What the removal of a deleted set waits for; null until it has begun, gone when nothing is left."""


class SampleJobFigures(Figures):
    type: str
    sample_set: str
    """The set's name."""
    job_name: str | None
    """The name under which the set's servers have the job; null until it is posted to them."""


def set_figures(facts: Facts) -> SampleSetFigures:
    record: SetRecord = facts.record
    cache = (
        None
        if record.cache is None
        else SampleCache(
            total_bytes=record.cache.total_bytes,
            cached_bytes=record.cache.cached_bytes,
            whole=record.cache.is_whole,
            observed_at=facts.cache_observed_at,
        )
    )
    return SampleSetFigures(
        cache=cache,
        runtime=SampleRuntime(ready=record.runtime.ready_replicas, wanted=facts.manifest["spec"]["partitions"]),
        removal=RemovalStage.GONE if facts.gone else record.stage if facts.deleted else None,
    )


def job_figures(facts: Facts) -> SampleJobFigures:
    record: JobRecord = facts.record
    spec = facts.manifest["spec"]
    return SampleJobFigures(type=spec["type"], sample_set=spec["sampleSetRef"]["name"], job_name=record.job or None)


Wanted: TypeAlias = Mapping[ConditionType, tuple[bool, str, str]]


def set_conditions(record: SetRecord) -> Wanted:
    """Ready: all servers run and serve the data. Synced: the data of the source is in the volume."""
    if record.phase is SetPhase.NONE:
        return {}
    blocked = (record.complaint.reason, record.complaint.message) if record.complaint else (str(record.phase), "")
    is_ready = record.phase is SetPhase.READY
    wanted = {ConditionType.READY: (is_ready, *(("Ready", "") if is_ready else blocked))}
    if record.synced:
        wanted[ConditionType.SYNCED] = (True, "Synced", "")
    elif record.phase in (SetPhase.SYNCING, SetPhase.SYNC_FAILED):
        wanted[ConditionType.SYNCED] = (False, *blocked)
    return wanted


def job_conditions(record: JobRecord) -> Wanted:
    """Running, and once it has ended Completed and Failed, as of every job."""
    phase, message = record.phase, record.complaint.message if record.complaint else record.message
    if phase is SampleJobPhase.NONE:
        return {}
    wanted = {ConditionType.RUNNING: (phase is SampleJobPhase.RUNNING, str(phase), message)}
    if phase in (SampleJobPhase.SUCCEEDED, SampleJobPhase.FAILED):
        wanted[ConditionType.COMPLETED] = (phase is SampleJobPhase.SUCCEEDED, str(phase), message)
        wanted[ConditionType.FAILED] = (phase is SampleJobPhase.FAILED, str(phase), message)
    return wanted


def native_set_status(record: SetRecord) -> dict[str, Any]:
    """Return the status of a set. Like upstream, it leaves out what is not known yet."""
    status: dict[str, Any] = {"phase": str(record.phase)}
    if record.cache is not None:
        status["cacheStatus"] = record.cache.status.native()
    if record.runtime.spec_replicas:
        status["runtimeStatus"] = {
            "runtimeReady": record.runtime.ready,
            "specReplicas": record.runtime.spec_replicas,
            "readyReplicas": record.runtime.ready_replicas,
        }
    if record.sync_job:
        status["jobsName"] = {"syncJobName": record.sync_job}
    return status


def native_job_status(record: JobRecord) -> dict[str, Any]:
    """Return the status of a job."""
    status = {"phase": str(record.phase)}
    return {**status, "jobName": record.job} if record.job else status
