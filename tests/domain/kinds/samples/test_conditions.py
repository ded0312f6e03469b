"""The conditions of SampleSets and SampleJobs, for every state that a record can have."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.cache.reconcile.values import Complaint, JobRecord, RuntimeStatus, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.sample_status import SampleStatus, deleted_status, updated_status
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.status.records import Condition
from tests.domain.cache.reconcile.made import ALL, at_work, decide_set
from tests.support.json_values import UNHURRIED

T0 = datetime(2026, 1, 1, tzinfo=UTC)
COMPLAINT = Complaint(reason="ErrorStatefulSetAlreadyExist", message="another StatefulSet has the name")
RUNTIMES = [RuntimeStatus(spec_replicas=spec, ready_replicas=ready) for spec, ready in ((0, 0), (2, 0), (2, 1), (2, 2))]
set_records = st.builds(
    SetRecord,
    phase=st.sampled_from(SetPhase),
    synced=st.booleans(),
    runtime=st.sampled_from(RUNTIMES),
    complaint=st.sampled_from([None, COMPLAINT]),
    stage=st.sampled_from([None, *RemovalStage]),
)
job_records = st.builds(
    JobRecord,
    phase=st.sampled_from(SampleJobPhase),
    message=st.sampled_from(["", "no space"]),
    complaint=st.sampled_from([None, COMPLAINT]),
)


def after(kind: SampleKind, *records: Any) -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of the conditions after these reconciles."""
    status = SampleStatus()
    for record in records:
        status = updated_status(kind, status, record, 1, T0)
    return {str(one.type): (one.status, one.reason, one.message) for one in status.conditions}


@pytest.mark.parametrize("complaint", [None, COMPLAINT], ids=["fine", "blocked"])
@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.ready)
@pytest.mark.parametrize("stage", [None, *RemovalStage], ids=str)
@pytest.mark.parametrize("phase", list(SetPhase), ids=str)
def test_a_set_is_ready_only_while_all_its_servers_are(
    phase: SetPhase, stage: RemovalStage | None, runtime: RuntimeStatus, complaint: Complaint | None
) -> None:
    record = SetRecord(phase=phase, stage=stage, runtime=runtime, complaint=complaint)
    status, reason, _ = after(SAMPLE_SET, record)["Ready"]
    is_ready = phase is SetPhase.READY and runtime == RUNTIMES[-1] and (stage, complaint) == (None, None)
    assert status == str(is_ready)
    assert (reason == "Ready") == is_ready
    if stage is not None:
        assert reason == ("Deleted" if stage is RemovalStage.GONE else "Deleting")


SETS: list[tuple[list[SetRecord], dict[str, tuple[str, str]]]] = [
    ([SetRecord()], {"Ready": ("False", "NotBound")}),
    ([SetRecord(complaint=COMPLAINT)], {"Ready": ("False", COMPLAINT.reason)}),
    ([SetRecord(phase=SetPhase.READY)], {"Ready": ("False", "ServersNotReady")}),
    (
        [SetRecord(phase=phase) for phase in (SetPhase.SYNCING, SetPhase.MOUNT)],
        {"Ready": ("False", "Mount"), "Synced": ("False", "Mount")},
    ),
    (
        [SetRecord(phase=SetPhase.SYNC_FAILED, complaint=COMPLAINT), SetRecord(phase=SetPhase.MOUNT)],
        {"Ready": ("False", "Mount"), "Synced": ("False", "Mount")},
    ),
    (
        [SetRecord(phase=SetPhase.READY, synced=True, runtime=RUNTIMES[-1])],
        {"Ready": ("True", "Ready"), "Synced": ("True", "Synced")},
    ),
    (
        [SetRecord(phase=SetPhase.READY, synced=True, stage=RemovalStage.VOLUME)],
        {"Ready": ("False", "Deleting"), "Synced": ("True", "Synced")},
    ),
    (
        [SetRecord(phase=SetPhase.READY, synced=True, stage=RemovalStage.GONE)],
        {"Ready": ("False", "Deleted"), "Synced": ("False", "Deleted")},
    ),
]


@pytest.mark.parametrize(("records", "expected"), SETS)
def test_the_conditions_of_a_set(records: list[SetRecord], expected: dict[str, tuple[str, str]]) -> None:
    assert {name: said[:2] for name, said in after(SAMPLE_SET, *records).items()} == expected


def test_a_claim_in_use_is_named_while_the_set_is_deleted() -> None:
    in_use = Complaint(reason="ClaimInUse", message="a pod names the claim")
    record = SetRecord(phase=SetPhase.READY, stage=RemovalStage.CLAIM, complaint=in_use)
    assert after(SAMPLE_SET, record)["Ready"] == ("False", "Deleting", "a pod names the claim")


def test_the_servers_of_a_set_that_is_removed_are_counted_as_they_go() -> None:
    left = at_work(labelled={}, runtime=RuntimeStatus(spec_replicas=2, ready_replicas=1))
    decision = decide_set(SetPhase.READY, left, deleted=True, made=ALL, runtime=RUNTIMES[-1])
    assert decision.record.runtime == left.runtime


PENDING, RUNNING = JobRecord(phase=SampleJobPhase.PENDING), JobRecord(phase=SampleJobPhase.RUNNING)
SUCCEEDED = JobRecord(phase=SampleJobPhase.SUCCEEDED)
FAILED = JobRecord(phase=SampleJobPhase.FAILED, message="no space", complaint=COMPLAINT)
RETRIED = JobRecord(complaint=COMPLAINT)
JOBS: list[tuple[list[JobRecord], dict[str, tuple[str, str]]]] = [
    ([JobRecord()], {}),
    ([PENDING], {}),
    ([PENDING, RUNNING], {"Running": ("True", "Running")}),
    (
        [PENDING, SUCCEEDED],
        {"Running": ("False", "Succeeded"), "Completed": ("True", "Succeeded"), "Failed": ("False", "Succeeded")},
    ),
    (
        [PENDING, FAILED],
        {"Running": ("False", "Failed"), "Completed": ("False", "Failed"), "Failed": ("True", "Failed")},
    ),
    (
        [RUNNING, FAILED, JobRecord()],
        dict.fromkeys(("Running", "Completed", "Failed"), ("False", "NotPosted")),
    ),
    (
        [RUNNING, FAILED, RETRIED],
        dict.fromkeys(("Running", "Completed", "Failed"), ("False", COMPLAINT.reason)),
    ),
    (
        [RUNNING, FAILED, PENDING, SUCCEEDED],
        {"Running": ("False", "Succeeded"), "Completed": ("True", "Succeeded"), "Failed": ("False", "Succeeded")},
    ),
]


@pytest.mark.parametrize(("records", "expected"), JOBS)
def test_the_conditions_of_a_job(records: list[JobRecord], expected: dict[str, tuple[str, str]]) -> None:
    assert {name: said[:2] for name, said in after(SAMPLE_JOB, *records).items()} == expected


def test_a_failed_job_keeps_the_reason_of_its_failure_despite_a_later_problem() -> None:
    assert after(SAMPLE_JOB, FAILED)["Failed"] == ("True", "Failed", "no space")


def history(kind: SampleKind, records: Sequence[Any]) -> list[tuple[Condition, ...]]:
    status, found = SampleStatus(), []
    for second, record in enumerate(records):
        status = updated_status(kind, status, record, 1, T0 + timedelta(seconds=second))
        found.append(status.conditions)
    return found


@UNHURRIED
@given(st.lists(set_records, max_size=8).map(lambda records: history(SAMPLE_SET, records)))
def test_a_condition_of_a_set_stays_and_changes_its_time_with_its_status(found: list[tuple[Condition, ...]]) -> None:
    check_history(found)


@UNHURRIED
@given(st.lists(job_records, max_size=8).map(lambda records: history(SAMPLE_JOB, records)))
def test_a_condition_of_a_job_stays_and_changes_its_time_with_its_status(found: list[tuple[Condition, ...]]) -> None:
    check_history(found)


def check_history(found: list[tuple[Condition, ...]]) -> None:
    before: dict[str, Condition] = {}
    for second, conditions in enumerate(found):
        now = {str(one.type): one for one in conditions}
        assert now.keys() >= before.keys()
        assert all(one.reason for one in conditions)
        for name, one in now.items():
            old = before.get(name)
            is_same = old is not None and old.status == one.status
            assert one.last_transition_at == (old.last_transition_at if old and is_same else T0 + timedelta(0, second))
        before = now


@pytest.mark.parametrize(
    ("records", "started", "finished", "expected"),
    [
        ([JobRecord()], None, None, {}),
        ([PENDING], T0, 9, {}),
        ([PENDING, RUNNING], T0, 9, {"Running": ("False", "Deleted", "")}),
        ([RUNNING, FAILED], T0, 0, after(SAMPLE_JOB, RUNNING, FAILED)),
    ],
    ids=["new", "pending", "running", "failed"],
)
def test_a_job_that_is_deleted_has_ended(
    records: list[JobRecord],
    started: datetime | None,
    finished: int | None,
    expected: dict[str, tuple[str, str, str]],
) -> None:
    status = SampleStatus()
    for record in records:
        status = updated_status(SAMPLE_JOB, status, record, 1, T0)
    ended = deleted_status(status, 1, T0 + timedelta(seconds=9))
    assert ended.started_at == started
    assert ended.finished_at == (None if finished is None else T0 + timedelta(seconds=finished))
    assert {str(one.type): (one.status, one.reason, one.message) for one in ended.conditions} == expected
