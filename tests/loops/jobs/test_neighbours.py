"""Jobs of one namespace whose actions take long delay those of another one only a little."""

import asyncio

import pytest

from app.loops.jobs.actions.actuator import Actuator, Performed
from app.loops.jobs.actions.work import Work
from app.loops.jobs.decided_jobs import StoredWork
from app.loops.jobs.memory_budget import MemoryBudget
from tests.loops.harness import WITHIN, Harness
from tests.support.waiting import until

FULL = 63  # jobs of a namespace that act at once: each counts a MiB and its manifest
ALL_FULL = 79  # jobs of all namespaces, except the first one of another namespace


def tenant(work: Work) -> str:
    return work.plan.identity.name.partition("-")[0]


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tenants of the jobs whose actions have begun. Those of tenants named slow last as long as the test."""
    begun = list[str]()

    async def perform(_: Actuator, work: Work) -> Performed:
        begun.append(tenant(work))
        if tenant(work).startswith("slow"):
            await asyncio.Event().wait()
        return Performed.ALL

    monkeypatch.setattr(Actuator, "perform", perform)
    # The harness serves one namespace, so the names of the jobs stand for their namespaces.
    monkeypatch.setattr(StoredWork, "namespace", property(lambda task: tenant(task.work)))
    return begun


@pytest.mark.parametrize(("slow", "full"), [(["slow"], FULL), (["slow1", "slow2"], ALL_FULL)])
async def test_a_job_acts_while_many_of_other_namespaces_wait_for_the_cluster(
    harness: Harness, acting: list[str], slow: list[str], full: int
) -> None:
    """As while the node of their pods does not answer, or their namespace has so many Events that a list takes long."""
    for number in range(70):
        for name in slow:
            await harness.submit(f"{name}-{number}", replicas=1)
    async with harness.reconciling():
        await until(lambda: len(acting) == full, what="the room of the namespaces is in use", within=WITHIN)
        await harness.submit("quick", replicas=1)
        await until(lambda: "quick" in acting, what="the job of the other namespace acts", within=WITHIN)
        assert len(acting) == full + 1


async def test_a_job_without_actions_takes_no_room(
    harness: Harness, acting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take, owners = MemoryBudget.take, list[str]()

    async def recorded(budget: MemoryBudget, amount: int, owner: str, until: float) -> bool:
        owners.append(owner)
        return await take(budget, amount, owner, until)

    monkeypatch.setattr(MemoryBudget, "take", recorded)
    async with harness.reconciling():
        uid = await harness.submit("idle", runMode={"pause": {"enabled": True}})
        await harness.phase(uid, "Paused")
        await until(lambda: not harness.queue.is_in_work(str(uid)), what="the reconcile is over", within=WITHIN)
        await harness.submit("quick", replicas=1)
        await until(lambda: "quick" in acting, what="a job with actions acts", within=WITHIN)
    assert set(owners) == {"quick"}
