"""What goes into columns and documents comes out as it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db.jobs.attempts import ATTEMPT, attempt_from
from app.db.jobs.rows import CONDITION, STATUS, condition_from, status_document, status_from
from app.db.postgres import codec
from app.db.postgres.columns import Columns
from app.domain.plan import JobWarning, Rank
from app.domain.queueing.admission import PodSetAdmission, Queueing, RecordedWorkload, TaskAdmission
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import (
    Attempt,
    Condition,
    FailureSummary,
    JobPendingReason,
    JobStatus,
    Replica,
    ReplicaFailure,
    Transition,
)
from app.domain.usage.holds import Hold, JobUse, Period
from app.domain.vocabulary import (
    ConditionType,
    Evidence,
    JobPhase,
    Outcome,
    ReplicaPhase,
    StopReason,
    Use,
    WarningSource,
)

moments = st.integers(0, 2**52).map(lambda n: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=n))
maybe_moment = st.none() | moments
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
maybe_text = st.none() | texts
counts = st.integers(0, 2**31 - 1)

containers = st.builds(
    ObservedContainer,
    name=texts,
    state=texts,
    init=st.booleans(),
    default=st.booleans(),
    ready=st.booleans(),
    image=maybe_text,
    restart_count=counts,
    exit_code=st.none() | counts,
    signal=st.none() | counts,
    reason=maybe_text,
    message=maybe_text,
    started_at=maybe_moment,
    finished_at=maybe_moment,
)
log_lines = st.none() | st.lists(texts, max_size=2).map(tuple)
sums = st.dictionaries(texts, st.dictionaries(st.sampled_from(Use), st.integers(0, 2**90).map(Decimal)), max_size=2)
periods = st.builds(Period, since=counts, until=st.none() | counts)
holds = st.builds(
    Hold,
    since=counts,
    requests=st.dictionaries(texts, st.integers(1, 2**50), max_size=2),
    started=st.none() | counts,
    until=st.none() | counts,
    work=st.none() | periods,
)
attempts = st.builds(
    Attempt,
    number=st.integers(1, 99),
    pod_uid=maybe_text,
    phase=st.sampled_from(ReplicaPhase),
    outcome=st.none() | st.sampled_from(Outcome),
    stopping=st.none() | st.sampled_from(StopReason),
    evidence=st.sampled_from(Evidence),
    evidence_reason=maybe_text,
    node=maybe_text,
    pod_ip=maybe_text,
    created_at=maybe_moment,
    started_at=maybe_moment,
    finished_at=maybe_moment,
    exit_code=st.none() | counts,
    reason=maybe_text,
    message=maybe_text,
    containers=st.lists(containers, max_size=2).map(tuple),
    last_lines=log_lines,
    hold=st.none() | holds,
)
conditions = st.builds(
    Condition,
    type=st.sampled_from(ConditionType),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=texts,
    message=texts,
    last_transition_at=moments,
    observed_generation=counts,
)
pending = st.builds(
    JobPendingReason,
    code=texts,
    message=texts,
    since=maybe_moment,
    replicas=st.lists(texts, max_size=2).map(tuple),
    count=counts,
)
transitions = st.builds(Transition, at=moments, phase=st.sampled_from(JobPhase), reason=texts, message=texts)
replica_failures = st.builds(
    ReplicaFailure,
    key=st.builds(Rank, texts, counts),
    attempt=counts,
    outcome=st.sampled_from(Outcome),
    exit_code=st.none() | counts,
    reason=maybe_text,
    message=texts,
    node=maybe_text,
    signal=st.none() | counts,
    last_lines=log_lines,
    at=maybe_moment,
)
failure_summaries = st.builds(
    FailureSummary,
    first=st.lists(replica_failures, max_size=2).map(tuple),
    failed=counts,
    disrupted=counts,
)
queues = st.builds(
    Queueing,
    name=texts,
    admission=st.none() | st.just({}),
    evicted=texts,
    evicted_because=texts,
    deactivated=st.booleans(),
    deactivated_in=counts,
    reclaimed=st.dictionaries(texts, counts, max_size=2),
    queued_at=maybe_moment,
    admitted_at=maybe_moment,
    evicted_at=maybe_moment,
)
statuses = st.builds(
    JobStatus,
    queueing=st.none() | queues,
    phase=st.sampled_from(JobPhase),
    reason=texts,
    message=texts,
    aggregate=st.dictionaries(st.sampled_from(ReplicaPhase), counts),
    pending_reasons=st.lists(pending, max_size=2).map(tuple),
    conditions=st.lists(conditions, max_size=3, unique_by=lambda one: one.type).map(tuple),
    observed_generation=counts,
    resumes=counts,
    restarts=counts,
    reschedules=counts,
    transitions=st.lists(transitions, max_size=2).map(tuple),
    crashed=st.lists(replica_failures, max_size=2).map(tuple),
    restored_at=maybe_moment,
    ended_by=failure_summaries,
    first_failure=st.none() | replica_failures,
    failure_rows=counts,
    restarts_in_place=counts,
    still_running=counts,
    warnings=st.lists(
        st.builds(JobWarning, source=st.sampled_from(WarningSource), task=maybe_text, pointer=texts, message=texts),
        max_size=2,
    ).map(tuple),
    initialized_at=maybe_moment,
    started_at=maybe_moment,
    finished_at=maybe_moment,
    observed_at=maybe_moment,
    pending_since=maybe_moment,
    gone_at=maybe_moment,
    usage=st.builds(JobUse, queued_since=st.none() | counts, queued=counts, work=st.none() | periods, ended=sums),
)
replicas = st.builds(
    Replica,
    key=st.builds(Rank, texts, counts),
    attempt=attempts,
    restarts=counts,
    disruptions=counts,
    retry_at=maybe_moment,
    settled=st.booleans(),
    leaving=st.booleans(),
    unreported=st.booleans(),
)


def through_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def as_row(columns: Columns, record: Any) -> dict[str, Any]:
    """The row that PostgreSQL returns after it was given the record."""
    values = dict(zip(columns.names, columns.values(record), strict=True))
    # A value of a JSON column is passed as text.
    known = {name: values[name] for name in ("containers", "last_lines", "first_failure", "hold") if values.get(name)}
    return values | {name: msgspec.json.decode(text) for name, text in known.items()}


@given(statuses)
def test_a_status_survives_columns_document_and_conditions(status: JobStatus) -> None:
    document = through_json(status_document(status))
    assert not set(STATUS.names) & set(document)
    read = [condition_from(as_row(CONDITION, condition)) for condition in status.conditions]
    assert status_from({"status": document} | as_row(STATUS, status), read) == status


@given(attempts)
@settings(max_examples=50)
def test_an_attempt_survives_its_columns(attempt: Attempt) -> None:
    assert attempt_from({"attempt": attempt.number} | as_row(ATTEMPT, attempt)) == attempt


@given(st.one_of(statuses, replicas, attempts, containers))
def test_any_record_survives_json(record: Any) -> None:
    assert codec.load(through_json(codec.dump(record)), type(record)) == record


def test_enum_values_in_the_spelling_of_version_0_1_are_readable() -> None:
    status = {"aggregate": {"creating": 2, "Failed": 1}, "ended_by": {"first": [], "failed": 0, "disrupted": 0}}
    assert codec.load(status, JobStatus).aggregate == {ReplicaPhase.CREATING: 2, ReplicaPhase.FAILED: 1}
    assert codec.load("disrupted", Outcome) is Outcome.DISRUPTED
    assert codec.load("none", Evidence) is Evidence.NONE


def test_a_document_has_only_the_fields_that_differ_from_their_defaults() -> None:
    # As stored jobs are read with them, these values never change.
    assert through_json(codec.dump(JobStatus())) == {
        "phase": "Queued", "reason": "Submitted", "message": "", "aggregate": {}, "pending_reasons": [],
        "conditions": [], "observed_generation": 0, "resumes": 0, "restarts": 0, "reschedules": 0,
        "restarts_in_place": 0, "transitions": [],
        "crashed": [], "restored_at": None, "ended_by": {"first": [], "failed": 0, "disrupted": 0},
        "first_failure": None, "failure_rows": 0, "initialized_at": None, "started_at": None, "active_since": None,
        "finished_at": None, "observed_at": None, "pending_since": None, "gone_at": None, "quiet": False,
        "still_running": 0, "anchors": [],
        "warnings": [], "queueing": None,
        "partial_start": {"since": None, "withdrawals": 0, "again_at": None, "obstacle": ""},
        "usage": {"queued_since": None, "queued": 0, "work": None, "ended": {}},
    }  # fmt: skip
    assert status_document(JobStatus()) == {}
    status = JobStatus(phase=JobPhase.RUNNING, reason="Because", resumes=3, aggregate={ReplicaPhase.RUNNING: 2})
    assert status_document(status) == {"resumes": 3, "aggregate": {"Running": 2}}


def test_a_queue_without_times_is_readable() -> None:
    stored: dict[str, Any] = {
        "name": "team", "admission": None, "evicted": "", "evicted_because": "", "deactivated": False,
        "deactivated_in": 0, "reclaimed": {},
    }  # fmt: skip
    assert codec.load(stored, Queueing) == Queueing(name="team")


def test_fields_that_an_older_version_did_not_store_have_their_defaults() -> None:
    status = JobStatus(phase=JobPhase.RUNNING, resumes=3)
    document = status_document(status)
    del document["resumes"]
    assert status_from({"status": document} | as_row(STATUS, status), ()) == replace(status, resumes=0)


def test_the_admission_of_an_earlier_version_is_that_of_one_workload() -> None:
    task = {"pod_set": "worker", "size": 2, "pods": {"node_labels": {"pool": "a"}}}
    document = {"queueing": {"name": "team", "admission": {"worker": task}, "reclaimed": {"worker": 1}}}
    queueing = status_from({"status": document} | as_row(STATUS, JobStatus()), ()).queueing
    assert queueing is not None
    assert queueing.first.is_for(Rank("worker", 1))
    assert not queueing.first.is_for(Rank("worker", 2))
    assert (queueing.first.reclaimed, queueing.further) == ({"worker": 1}, ())
    admission = queueing.admission_of(Rank("worker", 0))
    assert admission is not None
    assert admission.pods.node_labels == {"pool": "a"}


def test_further_workloads_survive_the_document() -> None:
    task = TaskAdmission(pod_set="worker", from_rank=2, size=5, pods=PodSetAdmission(node_labels={"pool": "a"}))
    further = RecordedWorkload(number=3, tasks={"worker": task}, admitted=True, reclaimed={"worker": 1})
    status = JobStatus(queueing=Queueing(name="team", admission={}, further=(further,)))
    document = through_json(status_document(status))
    assert status_from({"status": document} | as_row(STATUS, status), ()) == status
