"""Restarts in place: the kubelet restarts a container, and the attempt of its replica goes on."""

from typing import Any

from app.domain.plan import Rank
from app.domain.reconcile.values import Decision
from app.domain.status.observed import ContainerRestart, ObservedContainer, ObservedPod, PendingReason
from app.domain.status.records import Recorded
from app.domain.vocabulary import JobPhase, PendingCode, Reason, ReplicaPhase
from tests.support.plans import T0, W0, a_plan, a_pod, a_record, a_replica, decide, next_record, running_status

ONE = a_plan({"worker": 1})
CAUSE = "exit code 1, Error: no such rate"
FAULT = PendingReason(code=PendingCode.CRASH_LOOP, message=CAUSE, since=T0)


def crashing(number: int, key: Rank = W0, **more: Any) -> ObservedPod:
    """A pod whose sidecar the kubelet has restarted this often."""
    container = ObservedContainer(name="proxy", state="waiting", init=True, restart_count=number)
    restart = ContainerRestart(container="proxy", number=number, cause=CAUSE)
    return a_pod(key, containers=(container,), restarts_in_place=(restart,) if number else (), pending=FAULT, **more)


def rows_of(decision: Decision) -> list[str]:
    return [row.message for row in decision.history if row.reason == Reason.CONTAINER_RESTARTED]


def test_a_crash_loop_is_in_the_status_and_the_job_keeps_running() -> None:
    decision = decide(ONE, a_record(running_status(), a_replica()), crashing(3))
    status = decision.status
    assert (status.phase, status.restarts_in_place, status.pending_since) == (JobPhase.RUNNING, 3, None)
    assert status.message == f"1 of 1 replicas are running; 1 with a fault: CrashLoop: {CAUSE}"
    assert [(one.code, one.started, one.since) for one in status.pending_reasons] == [("CrashLoop", True, T0)]
    assert status.aggregate[ReplicaPhase.RUNNING] == 1


def test_the_history_has_the_restarts_whose_number_reaches_a_power_of_two() -> None:
    recorded: Recorded = a_record(running_status(), a_replica())
    found: list[str] = []
    # The controller does not see every restart: the 5th to the 8th come at once.
    for number in (0, 1, 1, 2, 3, 4, 9, 10, 15, 16):
        decision = decide(ONE, recorded, crashing(number))
        found += rows_of(decision)
        recorded = next_record(recorded, decision)
    told = f'worker[0]: the kubelet restarted container "proxy" in place after {CAUSE}'
    assert found == [f"{told} (restart {number})" for number in (1, 2, 4, 9, 16)]


def test_a_restart_of_another_pod_is_none_of_this_attempt() -> None:
    decision = decide(ONE, a_record(running_status(), a_replica()), crashing(2, uid="another"))
    assert rows_of(decision) == []
