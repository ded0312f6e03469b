"""Faults of replicas that run: a container of a started pod crashes again and again, or cannot start again."""

from collections.abc import Mapping

import pytest

from app.domain.status.observed import ObservedJob, PendingReason
from app.domain.status.records import JobPendingReason
from app.domain.status.rollup import pending_reasons, situation
from app.domain.vocabulary import JobPhase, PendingCode, ReplicaPhase
from tests.support.plans import T0, W0, W1, a_pod, a_replica, an_attempt, at, by_rank, running_status

P = ReplicaPhase
CRASH_LOOP = PendingReason(code=PendingCode.CRASH_LOOP, message="exit code 1", since=T0)


def test_the_fault_of_a_started_replica_is_a_reason_of_its_own_group() -> None:
    runs, waits = a_replica(W0), a_replica(W1, an_attempt(key=W1, phase=P.PENDING))
    pods = {
        W0: [a_pod(W0, pending=CRASH_LOOP)],
        W1: [a_pod(W1, phase=P.PENDING, pending=CRASH_LOOP)],
    }
    found = pending_reasons(by_rank(runs, waits), pods, ObservedJob(), at(10), {})
    assert [(one.code, one.replicas, one.started) for one in found] == [
        ("CrashLoop", ("worker[1]",), False),
        ("CrashLoop", ("worker[0]",), True),
    ]


def fault(count: int, *, started: bool = True) -> JobPendingReason:
    return JobPendingReason(
        code=PendingCode.CRASH_LOOP, message="exit code 1", since=T0, replicas=(), count=count, started=started
    )


@pytest.mark.parametrize(
    ("sizes", "reasons", "phase", "message"),
    [
        (
            {P.RUNNING: 3},
            [fault(2)],
            JobPhase.RUNNING,
            "3 of 3 replicas are running; 2 with a fault: CrashLoop: exit code 1",
        ),
        ({P.RUNNING: 1, P.UNKNOWN: 1}, [], JobPhase.RUNNING, "1 of 2 replicas are running"),
        ({P.RUNNING: 1, P.UNKNOWN: 1, P.SUCCEEDED: 2}, [], JobPhase.RUNNING, "1 of 4 replicas are running"),
        # What keeps a replica from running is the obstacle of a job that waits, not the fault of one that runs.
        ({P.RUNNING: 1, P.CREATING: 1}, [fault(1)], JobPhase.RESTARTING, "1 of 2 replicas are restarting"),
        (
            {P.RUNNING: 1, P.PENDING: 1},
            [fault(1, started=False)],
            JobPhase.RESTARTING,
            "1 of 2 replicas are restarting: CrashLoop: exit code 1",
        ),
    ],
)
def test_the_message_names_the_faults_of_running_replicas(
    sizes: Mapping[ReplicaPhase, int], reasons: list[JobPendingReason], phase: JobPhase, message: str
) -> None:
    counts = {phase: sizes.get(phase, 0) for phase in ReplicaPhase}
    found = situation(running_status(), counts, {}, None, {}, reasons)
    assert (found.phase, found.message) == (phase, message)
