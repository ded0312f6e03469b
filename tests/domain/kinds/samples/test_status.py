"""The native status of sets and jobs: upstream's fields, those that are known."""

from app.domain.cache.reconcile.cache_status import ServerReport, aggregate
from app.domain.cache.reconcile.values import JobRecord, RuntimeStatus, SetRecord
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.kinds.samples.status import native_job_status, native_set_status


def test_a_new_set_and_a_new_job_have_an_empty_phase() -> None:
    assert native_set_status(SetRecord()) == {"phase": ""}
    assert native_job_status(JobRecord()) == {"phase": ""}


def test_a_set_shows_what_is_known() -> None:
    report = ServerReport(node="n0", total_size="2048", total_files="3", cached_size="1024", error_message="x")
    record = SetRecord(
        phase=SetPhase.PARTIAL_READY,
        sync_job="4f2c",
        synced=True,
        cache=aggregate([report]),
        runtime=RuntimeStatus(spec_replicas=2, ready_replicas=1),
    )
    assert native_set_status(record) == {
        "phase": "PartialReady",
        "cacheStatus": {
            "totalSize": "2.0 KiB",
            "totalFiles": "3",
            "cachedSize": "1.0 KiB",
            "diskSize": "0 B",
            "diskUsed": "0 B",
            "diskAvail": "0 B",
            "diskUsageRate": "0.0%",
            "errorMassage": "x",
        },
        "runtimeStatus": {"runtimeReady": "1/2", "specReplicas": 2, "readyReplicas": 1},
        "jobsName": {"syncJobName": "4f2c"},
    }


def test_a_job_shows_the_name_of_its_files() -> None:
    record = JobRecord(phase=SampleJobPhase.RUNNING, job="4f2c")
    assert native_job_status(record) == {"phase": "Running", "jobName": "4f2c"}
