"""The status of SampleSets and SampleJobs as the API shows it: their figures, conditions and native status."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from app.domain.cache.reconcile.progress import OperationProgress
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import ENDED_JOB_PHASES, JobType, RemovalStage, SampleJobPhase, SetPhase
from app.domain.kinds.sample_kind import Facts, Figures
from app.domain.status.conditions import Wanted
from app.domain.vocabulary import ConditionType


class SampleCache(Figures):
    """How much of a SampleSet's data is cached, summed over its runtime servers."""

    total_bytes: int
    cached_bytes: int
    """The sum over the nodes: more than totalBytes where several nodes have the same data."""
    whole: bool
    """Whether all data is cached."""
    observed_at: datetime | None
    """When the servers last reported it."""


class SampleRuntime(Figures):
    """How many runtime servers of a SampleSet are ready. A runtime server serves the cache of one partition."""

    ready: int
    wanted: int
    """The partitions of the manifest."""


class SampleProgress(Figures):
    """How far an operation on a SampleSet is, as its runtime servers last reported. Sums over the servers that did."""

    files_done: int | None
    """Files that are copied, warmed up or removed."""
    files_total: int | None
    """Null unless every server knows how many it has to do: always for a sync, rmr and clear."""
    bytes_done: int | None
    """The bytes of the files that a sync has copied; null for other types."""
    servers_reporting: int
    servers: int
    """The runtime servers that have the operation."""


class SampleNode(Figures):
    """What a node of a SampleSet has cached."""

    node: str
    server: str
    """The pod of the runtime server on the node."""
    cached_bytes: int | None
    """Null if it is not known now."""
    message: str
    """Why the figure is not known or not complete, or empty."""


class SampleSetFigures(Figures):
    cache: SampleCache | None
    """Null until the servers have reported it."""
    runtime: SampleRuntime
    sync: SampleProgress | None
    """The progress of the set's own sync; null if it does not run or its server does not report any."""
    removal: RemovalStage | None
    """What the removal of a deleted set waits for; null until it has begun, gone when nothing is left."""


class SampleSetDetails(Figures):
    nodes: list[SampleNode]
    """The nodes with a running server, as the controller found them at status.observedAt."""


class SampleJobFigures(Figures):
    type: JobType
    sample_set: str
    """The set's name."""
    job_name: str | None
    """The name of the job on the runtime servers; null until it is posted to them."""
    progress: SampleProgress | None
    """Null if no runtime server reports any. A job that has ended keeps that of its end."""


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
        sync=_show(record.sync_progress),
        removal=RemovalStage.GONE if facts.gone else record.stage if facts.deleted else None,
    )


def _show(progress: OperationProgress | None) -> SampleProgress | None:
    if progress is None:
        return None
    return SampleProgress(
        files_done=progress.files_done,
        files_total=progress.files_total,
        bytes_done=progress.bytes_done,
        servers_reporting=progress.reporting,
        servers=progress.servers,
    )


def set_details(record: SetRecord) -> SampleSetDetails:
    nodes = [
        SampleNode(node=each.node, server=each.server, cached_bytes=each.cached_bytes, message=each.message)
        for each in record.nodes
    ]
    return SampleSetDetails(nodes=nodes)


def job_figures(facts: Facts) -> SampleJobFigures:
    record: JobRecord = facts.record
    spec = facts.manifest["spec"]
    return SampleJobFigures(
        type=JobType(spec["type"]),
        sample_set=spec["sampleSetRef"]["name"],
        job_name=record.job or None,
        progress=_show(record.progress),
    )


_SYNC_PHASES = (SetPhase.SYNCING, SetPhase.SYNC_FAILED)


def set_conditions(record: SetRecord, known: Collection[ConditionType]) -> Wanted:
    """Return the conditions of a set that has the conditions `known` already.

    Ready: all servers run and serve the data. Synced: the data of the source is in the volume.
    """
    obstacle = _set_obstacle(record)
    wanted = {ConditionType.READY: (True, "Ready", "") if obstacle is None else (False, *obstacle)}
    if record.synced and record.stage is not RemovalStage.GONE:
        wanted[ConditionType.SYNCED] = (True, "Synced", "")
    elif record.synced or record.phase in _SYNC_PHASES or ConditionType.SYNCED in known:
        # Only the removal of the volume makes a synced set unsynced. The storage keeps the data.
        wanted[ConditionType.SYNCED] = (
            False,
            *(obstacle or ("NotSynced", "the set is ready without a sync of its source")),
        )
    return wanted


def _set_obstacle(record: SetRecord) -> tuple[str, str] | None:
    """Return reason and message why a set is not ready, or None if it is ready."""
    complaint, runtime = record.complaint, record.runtime
    if record.stage is not None:
        # A removal keeps the phase that the set had before.
        reason = "Deleted" if record.stage is RemovalStage.GONE else "Deleting"
        return reason, complaint.message if complaint else ""
    if complaint is not None:
        return complaint.reason, complaint.message
    if record.phase is SetPhase.NONE:
        return "NotBound", "the volume is not bound yet"
    if record.phase is not SetPhase.READY:
        return str(record.phase), ""
    # A set whose StatefulSet was deleted stays in the phase Ready until the StatefulSet exists again.
    if not 0 < runtime.spec_replicas == runtime.ready_replicas:
        return "ServersNotReady", f"{runtime.ready} servers are ready"
    return None


def job_conditions(record: JobRecord, known: Collection[ConditionType]) -> Wanted:
    """Return the conditions of a job that has the conditions `known` already: Running, Completed and Failed.

    Running appears when the job runs, and all three appear when it ends. A new try turns them False.
    """
    phase = record.phase
    reason, message = _job_reason(record)
    wanted = {}
    if phase is SampleJobPhase.RUNNING or phase in ENDED_JOB_PHASES or ConditionType.RUNNING in known:
        wanted[ConditionType.RUNNING] = (phase is SampleJobPhase.RUNNING, reason, message)
    if phase in ENDED_JOB_PHASES or ConditionType.COMPLETED in known:
        wanted[ConditionType.COMPLETED] = (phase is SampleJobPhase.SUCCEEDED, reason, message)
        wanted[ConditionType.FAILED] = (phase is SampleJobPhase.FAILED, reason, message)
    return wanted


def _job_reason(record: JobRecord) -> tuple[str, str]:
    # A complaint about a failed job is about its next try. The condition Failed keeps the message of the failure.
    if record.phase in ENDED_JOB_PHASES:
        return str(record.phase), record.message
    if record.complaint is not None:
        return record.complaint.reason, record.complaint.message
    if record.phase is SampleJobPhase.NONE:
        return "NotPosted", "no runtime server has the job yet"
    return str(record.phase), record.message


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
