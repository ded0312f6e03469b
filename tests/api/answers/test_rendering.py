"""Views that are filled from a record by field name."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from app.api.answers.rendering import job_bytes, replica_view, summary_bytes
from app.api.answers.responses import json_bytes
from app.api.views.base import View
from app.api.views.objects import JobView, PendingReasonView, ScaleRecordView
from app.api.views.replicas import AttemptView, ContainerView
from app.api.views.summaries import JobSummaryView
from app.base.clock import SystemClock
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.replicas import StoredReplica
from app.db.jobs.rows import JobRow
from app.domain.access.actors import Actor
from app.domain.kinds.envelope import postable
from app.domain.kinds.registry import JOB_KINDS
from app.domain.plan import Rank
from app.domain.planning import Planner
from app.domain.queueing.admission import Queueing
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Condition, JobPendingReason, Replica, ReplicaFailure, ScaleRecord
from app.domain.vocabulary import ConditionType, JobPhase, Outcome
from app.services.reading.jobs import ReplicaHistory
from app.services.submitting.jobs import JobSubmitter
from app.services.submitting.objects import SubmitRequest
from tests.support.kinds.every_kind import example
from tests.support.kinds.variations import JOBS, accepted
from tests.support.plans import accept_any_plan

AT = datetime(2026, 1, 2, tzinfo=UTC)
PLANNER = Planner(installation="i")


def posted(job: str) -> dict[str, Any]:
    return postable(accepted(job))


async def new_row(document: dict[str, Any]) -> JobRow:
    """The row of a new job, as the database would store it."""
    no_commit = cast(GroupCommit, None)
    submitter = JobSubmitter(no_commit, PLANNER, SystemClock(), lambda: None, random.Random(7), accept_any_plan)
    metadata = {"name": "one", "labels": {"team": "a"}, "annotations": {"note": 'tab\t quote" \u2028 ü 😀 \x7f'}}
    request = SubmitRequest(namespace="team", actor=Actor("me", "token:1"), administers=True)
    prepared = await submitter.prepare({**document, "metadata": metadata}, request)
    return prepared.new.row


def a_failed_status(row: JobRow) -> JobRow:
    """The row with a value in each optional field that the view of a job shows."""
    later = AT.replace(microsecond=120_000)
    failure = ReplicaFailure(
        key=Rank("worker", 0), attempt=1, outcome=Outcome.FAILED, exit_code=3, message="m", last_lines=("a", "b"), at=AT
    )
    condition = Condition(
        type=ConditionType.FAILED,
        status="True",
        reason="R",
        message="m",
        last_transition_at=later,
        observed_generation=2,
    )
    status = replace(
        row.status,
        phase=JobPhase.FAILED,
        started_at=AT,
        finished_at=later,
        conditions=(condition,),
        first_failure=failure,
        queueing=Queueing(name="team", evicted="Preempted", evicted_because=f"JobUID: {UUID(int=8)}", evicted_at=AT),
    )
    return replace(row, status=status, deleted_at=later, retry_of=UUID(int=7))


@pytest.mark.parametrize(
    ("view", "record"),
    [
        (AttemptView, Attempt),
        (ContainerView, ObservedContainer),
        (PendingReasonView, JobPendingReason),
        (ScaleRecordView, ScaleRecord),
    ],
)
def test_every_field_of_the_view_is_a_field_of_the_record(view: type[View], record: type[Any]) -> None:
    # Some fields are properties of the record.
    assert [name for name in view.model_fields if not hasattr(record, name)] == []


def test_a_scale_record_keeps_its_values() -> None:
    record = ScaleRecord(
        seq=3, task="worker", from_replicas=1, to_replicas=2, actor="a", reason="b", requested_at=AT, message="c"
    )
    view = ScaleRecordView.of(record)
    assert (view.seq, view.to_replicas, view.settled_at, view.message) == (3, 2, None, "c")
    assert view.model_dump(by_alias=True)["fromReplicas"] == 1


def test_attempts_keep_their_containers() -> None:
    container = ObservedContainer(name="main", state="terminated", exit_code=3)
    attempt = Attempt(number=1, pod_uid="p", pod_ip="10.0.0.1", containers=(container,))
    replica = Replica(key=Rank("worker", 0), attempt=attempt)
    view = replica_view(ReplicaHistory(stored=StoredReplica(replica=replica, pod_name="x"), ended=()))
    (shown,) = view.attempts
    assert (shown.pod_uid, shown.pod_ip, shown.containers[0].exit_code) == ("p", "10.0.0.1", 3)


@pytest.mark.parametrize(
    "document", [*(example(kind.name) for kind in dict.fromkeys(JOB_KINDS.values())), *map(posted, JOBS)]
)
async def test_the_bytes_of_a_job_are_those_of_its_models(document: dict[str, Any]) -> None:
    row = await new_row(document)
    for shown in (row, a_failed_status(row)):
        body = job_bytes(PLANNER.read(shown.manifest, shown.uid, shown.generation), shown)
        # The model refuses missing and unknown fields, and encodes its fields in their order.
        assert json_bytes(JobView.model_validate_json(body)) == body
        summary = summary_bytes(shown)
        assert json_bytes(JobSummaryView.model_validate_json(summary)) == summary
