"""The native status: tests/data/generic_job/native/<case>.json, and the table of phases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.job_kind import Limits, StatusFacts
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Condition, FailureSummary, JobStatus, Replica, ReplicaFailure
from app.domain.vocabulary import ConditionType, JobPhase, Outcome, Reason, ReplicaPhase
from tests.domain.kinds.generic_job.test_golden import DATA, load
from tests.support.plans import GIVEN
from tests.support.plugins.golden import Golden

KIND = GenericJobKind()
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
LATER = CREATED + timedelta(minutes=5)
MANIFEST = KIND.accept(load("simple"), Limits(), GIVEN).manifest


def condition(type_: ConditionType, status: str, reason: str, message: str) -> Condition:
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_at=LATER,
        observed_generation=1,
    )


def container(state: str, code: int | None = None) -> ObservedContainer:
    return ObservedContainer(name="sleep", state=state, exit_code=code)


def replica(rank: int, phase: ReplicaPhase, restarts: int = 0, *containers: ObservedContainer) -> Replica:
    init = ObservedContainer(name="fetch", state="terminated", init=True, exit_code=0)
    attempt = Attempt(number=restarts + 1, pod_uid=f"uid-{rank}", phase=phase, containers=(init, *containers))
    if phase is ReplicaPhase.FAILED:
        attempt = replace(attempt, outcome=Outcome.FAILED, exit_code=containers[0].exit_code)
    is_settled = phase is ReplicaPhase.FAILED
    return Replica(key=Rank("worker", rank), attempt=attempt, restarts=restarts, settled=is_settled)


RUNNING = StatusFacts(
    status=JobStatus(
        phase=JobPhase.RUNNING,
        reason=Reason.STARTED,
        message="every replica has started",
        aggregate={ReplicaPhase.RUNNING: 2},
        conditions=(
            condition(ConditionType.INITIALIZED, "True", "Initialized", "every replica's pod has been created"),
            condition(ConditionType.RUNNING, "True", "ReplicasStarted", "every replica has started"),
        ),
    ),
    replicas=[
        replica(0, ReplicaPhase.RUNNING, 3, container("running", 1)),
        replica(1, ReplicaPhase.RUNNING, 0, container("running")),
    ],
    created_at=CREATED,
)
CAUSE = ReplicaFailure(
    key=Rank("worker", 1),
    attempt=1,
    outcome=Outcome.FAILED,
    exit_code=3,
    reason="Error",
    node="node-a",
    last_lines=("ValueError: bad rate",),
)
RULE = "failureRules[1] is fulfilled: all of worker[1] failed"
FAILED = StatusFacts(
    status=JobStatus(
        phase=JobPhase.FAILED,
        reason=Reason.RULE_FULFILLED,
        message=RULE,
        aggregate={ReplicaPhase.RUNNING: 1, ReplicaPhase.FAILED: 1},
        ended_by=FailureSummary(first=(CAUSE,), failed=1),
        conditions=(
            *RUNNING.status.conditions,
            condition(ConditionType.REPLICA_FAILURE, "True", "ReplicaFailed", "failed for good: worker[1]"),
            condition(ConditionType.COMPLETED, "False", "RuleFulfilled", RULE),
            condition(ConditionType.FAILED, "True", "RuleFulfilled", RULE),
        ),
    ),
    replicas=[
        replica(0, ReplicaPhase.RUNNING, 0, container("running")),
        replica(1, ReplicaPhase.FAILED, 0, container("terminated", 3)),
    ],
    created_at=CREATED,
)
CASES = {
    "queued": StatusFacts(status=JobStatus(), replicas=(), created_at=CREATED),
    "running": RUNNING,
    "failed": FAILED,
}


@pytest.mark.parametrize("case", CASES)
def test_native_status(case: str, golden: Golden) -> None:
    golden(DATA.parent / "generic_job_native" / f"{case}.json", KIND.native_status(KIND.read(MANIFEST), CASES[case]))


def native(phase: JobPhase, reason: str = "", message: str = "") -> dict[str, Any]:
    status = JobStatus(phase=phase, reason=reason, message=message)
    return KIND.native_status(KIND.read(MANIFEST), StatusFacts(status=status, replicas=(), created_at=CREATED))


@pytest.mark.parametrize(
    ("phase", "reason", "word"),
    [
        (JobPhase.QUEUED, "", "Pending"),
        (JobPhase.CREATING, "", "Pending"),
        (JobPhase.PENDING, "", "Pending"),
        (JobPhase.RUNNING, "", "Running"),
        (JobPhase.RUNNING, Reason.PAUSING, "Paused"),
        (JobPhase.RESTARTING, "", "Running"),
        (JobPhase.SCALING, "", "Running"),
        (JobPhase.PAUSED, "", "Paused"),
        (JobPhase.RESUMING, "", "Resuming"),
        (JobPhase.SUCCEEDED, "", "Succeeded"),
        (JobPhase.FAILED, "", "Failed"),
        (JobPhase.TIMED_OUT, "", "Failed"),
        (JobPhase.CANCELLED, "", "Failed"),
        (JobPhase.UNKNOWN, "", "Unknown"),
    ],
)
def test_phase(phase: JobPhase, reason: str, word: str) -> None:
    assert native(phase, reason)["phase"] == word


def ends(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    shown = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    return {name: shown[name] for name in ("Completed", "Failed")}


@pytest.mark.parametrize(
    ("phase", "reason", "message", "completed", "failed"),
    [
        (
            JobPhase.SUCCEEDED,
            Reason.RULE_FULFILLED,
            "successRules[0] is fulfilled: all of worker[0] succeeded",
            ("True", "Succeeded", 'The job is succeeded with rule: { "worker": [0] } (successRules[0])'),
            ("False", "Succeeded", 'The job is succeeded with rule: { "worker": [0] } (successRules[0])'),
        ),
        (
            JobPhase.FAILED,
            Reason.SUCCESS_IMPOSSIBLE,
            "no success rule can be fulfilled any more",
            ("True", "Failed", "no success rule can be fulfilled any more"),
            ("True", "Failed", "no success rule can be fulfilled any more"),
        ),
        (
            JobPhase.TIMED_OUT,
            Reason.DEADLINE_EXCEEDED,
            "too long",
            ("True", "DeadlineExceeded", "too long"),
            ("True", "DeadlineExceeded", "too long"),
        ),
        (JobPhase.CANCELLED, "Cancelled", "by me", ("True", "Cancelled", "by me"), ("True", "Cancelled", "by me")),
        (JobPhase.RUNNING, "", "", ("False", "-", ""), ("False", "-", "")),
        (
            JobPhase.FAILED,
            Reason.REFUSED_BY_CLUSTER,
            "webhook says failureRules[99]",
            ("True", "Failed", "webhook says failureRules[99]"),
            ("True", "Failed", "webhook says failureRules[99]"),
        ),
    ],
)
def test_how_a_job_has_ended(
    phase: JobPhase, reason: str, message: str, completed: tuple[str, ...], failed: tuple[str, ...]
) -> None:
    assert ends(native(phase, reason, message)) == {"Completed": completed, "Failed": failed}


@pytest.mark.parametrize("phase", JobPhase)
def test_all_six_conditions_are_always_listed(phase: JobPhase) -> None:
    status = native(phase)
    types = [shown["type"] for shown in status["conditions"]]
    assert types == ["Initialized", "Running", "ReplicaFailure", "Completed", "Failed", "Paused"]
    assert list(status["aggregate"]) == ["creating", "pending", "running", "succeeded", "failed", "unknown", "deleted"]
