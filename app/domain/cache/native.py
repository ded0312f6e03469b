"""The status of a SampleSet and of a SampleJob in upstream's format."""

from typing import Any

from app.domain.cache.reconcile.values import JobRecord, SetRecord


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
