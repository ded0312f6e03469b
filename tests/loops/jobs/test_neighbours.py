"""Jobs of one namespace whose actions take long delay those of another one only a little."""

import asyncio

import pytest

from app.loops.jobs.actions.actuator import Actuator, Performed
from app.loops.jobs.actions.work import Work
from app.loops.jobs.decided_jobs import StoredWork
from tests.loops.harness import WITHIN, Harness
from tests.support.waiting import until

FULL = 63  # jobs that act at once: each counts a MiB and its manifest


async def test_a_job_acts_while_many_of_another_namespace_wait_for_the_cluster(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the node of their pods does not answer, or their namespace has so many Events that a list takes long."""
    answered, acting = asyncio.Event(), list[str]()

    def tenant(work: Work) -> str:
        return work.plan.identity.name.partition("-")[0]

    async def perform(_: Actuator, work: Work) -> Performed:
        acting.append(tenant(work))
        if tenant(work) == "slow":
            await answered.wait()
        return Performed.ALL

    monkeypatch.setattr(Actuator, "perform", perform)
    # The harness serves one namespace, so the names of the jobs stand for their namespaces.
    monkeypatch.setattr(StoredWork, "namespace", property(lambda task: tenant(task.work)))
    for number in range(70):
        await harness.submit(f"slow-{number}", replicas=1)
    async with harness.reconciling():
        await until(lambda: acting.count("slow") == FULL, what="the room of a namespace is in use", within=WITHIN)
        await harness.submit("quick", replicas=1)
        await until(lambda: "quick" in acting, what="the job of the other namespace acts", within=WITHIN)
        assert acting.count("slow") == FULL
        answered.set()
