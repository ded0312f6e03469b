"""What the cluster refuses of a Workload is the reason why a job waits, until the Workload is as it should be."""

from dataclasses import replace

import pytest

from app.domain.plan import PriorityClassKind, PriorityClassRef, Rank
from app.domain.queueing.admission import Queueing
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted, Verdict
from app.domain.reconcile.reconcile import reconcile
from app.domain.status.observed import ClusterRefusal, KueueState, RefusalVerdict
from app.domain.status.records import JobStatus
from app.domain.vocabulary import JobPhase, PendingCode
from tests.domain.reconcile.queues.worlds import LISTED, TEAM, a_world, elastic, kueue_of, run
from tests.support.plans import T0, a_plan, a_record, an_elastic_plan, decide

URGENT = PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name="urgent")
FULL = Unadmitted(code=PendingCode.WAITING_FOR_QUOTA, message="no quota")
LOST = ClusterRefusal(verdict=RefusalVerdict.RETRY, code=PendingCode.CLUSTER_UNREACHABLE, message="timeout", since=T0)


@pytest.mark.parametrize(
    ("state", "code"),
    [(KueueState.LISTED, PendingCode.CLUSTER_ERROR), (KueueState.ABSENT, PendingCode.WAITING_FOR_KUEUE)],
)
def test_a_refused_workload_is_no_reason_to_wait_when_kueue_is_gone(state: KueueState, code: PendingCode) -> None:
    refusal = ClusterRefusal(
        verdict=RefusalVerdict.RETRY, code=PendingCode.CLUSTER_ERROR, message="404 page not found", since=T0
    )
    recorded = a_record(JobStatus(phase=JobPhase.QUEUED, queueing=Queueing(name="team", queued_at=T0)))
    decision = decide(a_plan(queue=TEAM), recorded, queue=replace(LISTED, state=state), job_refusal=refusal)
    assert [reason.code for reason in decision.status.pending_reasons] == [code]


@pytest.mark.parametrize(
    ("priority", "observed", "code"),
    [
        (None, None, PendingCode.CLUSTER_UNREACHABLE),
        # The create has succeeded, but its answer was lost.
        (None, FULL, PendingCode.WAITING_FOR_QUOTA),
        (URGENT, FULL, PendingCode.CLUSTER_UNREACHABLE),
    ],
)
def test_a_refusal_counts_until_the_workload_is_there_with_its_priority(
    priority: PriorityClassRef | None, observed: Unadmitted | None, code: PendingCode
) -> None:
    recorded = a_record(JobStatus(phase=JobPhase.QUEUED, queueing=Queueing(name="team", queued_at=T0)))
    workload = ObservedWorkload(uid="w", verdict=FULL, queue="team", sizes={"worker": 2})
    queue = replace(LISTED, workloads={} if observed is None else {0: workload})
    decision = decide(a_plan(queue=TEAM, priority=priority), recorded, queue=queue, job_refusal=LOST)
    assert [reason.code for reason in decision.status.pending_reasons] == [code]


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Evicted(reason="Preempted", message="m", holds_quota=True), PendingCode.CLUSTER_UNREACHABLE),
        (FULL, PendingCode.WAITING_FOR_QUOTA),
    ],
)
def test_a_refusal_counts_until_the_quota_is_given_back(verdict: Verdict, code: PendingCode) -> None:
    recorded = a_record(JobStatus(phase=JobPhase.QUEUED, queueing=Queueing(name="team", queued_at=T0)))
    workload = ObservedWorkload(uid="w", verdict=verdict, queue="team", sizes={"worker": 2})
    decision = decide(a_plan(queue=TEAM), recorded, queue=replace(LISTED, workloads={0: workload}), job_refusal=LOST)
    assert [reason.code for reason in decision.status.pending_reasons] == [code]


@pytest.mark.parametrize(
    ("is_there", "code"), [(False, PendingCode.CLUSTER_UNREACHABLE), (True, PendingCode.WAITING_FOR_KUEUE)]
)
def test_the_same_holds_for_the_workload_of_a_scale_up(*, is_there: bool, code: PendingCode) -> None:
    world = a_world(elastic(a_plan({"worker": 1}, queue=TEAM)))
    run(world)
    kueue_of(world).admit()
    run(world)
    world.plan = an_elastic_plan(world.plan, "worker", 2)
    run(world)
    world.expectations.refusals[Rank("worker", 1)] = LOST
    inputs = world.inputs()
    known = inputs.observed.queue.workloads
    silent = replace(known[1], verdict=Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message="nothing yet"))
    queue = replace(inputs.observed.queue, workloads={0: known[0]} | ({1: silent} if is_there else {}))
    status = reconcile(replace(inputs, observed=replace(inputs.observed, queue=queue))).status
    assert [reason.code for reason in status.pending_reasons] == [code]
