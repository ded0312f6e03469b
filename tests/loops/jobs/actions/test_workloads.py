"""What the controller writes of a Workload, and when it tries again."""

from dataclasses import replace

import pytest

from app.domain.plan import PriorityClassKind, PriorityClassRef, QueuePlan, Rank
from app.domain.reconcile.actions import EnsureObjects, EnsureWorkload
from app.domain.vocabulary import PendingCode
from tests.loops.harness import Harness


@pytest.mark.parametrize("kind", PriorityClassKind)
async def test_a_workload_that_cannot_be_created_is_tried_less_and_less_often(
    harness: Harness, kind: PriorityClassKind
) -> None:
    work = await harness.work(await harness.submit(), EnsureObjects(), EnsureWorkload(queue="team"))
    missing = PriorityClassRef(kind=kind, name="missing")
    work = replace(work, plan=replace(work.plan, queue=QueuePlan(name="team"), priority=missing))
    await harness.actuator.perform(work)
    expectations = work.expectations
    refusal, learnt = expectations.job_refusal, expectations.revision
    assert refusal is not None
    assert (refusal.code, refusal.message) == (
        PendingCode.PRIORITY_CLASS_MISSING,
        f"the cluster has no {kind.value} missing",
    )
    for seconds in (1.1, 2.1, 4.1):
        harness.clock.skip(seconds)
        await harness.actuator.perform(work)
    assert expectations.tries == {None: 4}
    assert expectations.job_refusal is refusal
    assert expectations.revision == learnt, "the same refusal causes no reconcile"


async def test_what_refuses_a_further_workload_holds_back_its_replicas_only(harness: Harness) -> None:
    queue = QueuePlan(name="team")
    further = EnsureWorkload(queue=queue.name, number=1, ranks=(("worker", 1, 3),))
    work = await harness.work(await harness.submit(), EnsureObjects(), further)
    missing = PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name="missing")
    await harness.actuator.perform(replace(work, plan=replace(work.plan, queue=queue, priority=missing)))
    assert work.expectations.job_refusal is None
    assert {key: refusal.code for key, refusal in work.expectations.refusals.items()} == {
        Rank("worker", 1): PendingCode.PRIORITY_CLASS_MISSING
    }
