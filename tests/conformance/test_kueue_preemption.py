"""Kueue's preemption: whom it evicts for whom, and what it says about it."""

import pytest

from tests.support.clusters.kueue import Queues, condition, holds, pod_set

pytestmark = pytest.mark.conformance


async def test_a_higher_priority_preempts_and_the_victim_queues_again(queue: Queues) -> None:
    await queue.submit("high-already", "q", pod_set(), priority=5)
    await queue.submit("low", "q", pod_set(count=3))
    await queue.admitted("high-already")
    await queue.admitted("low")
    f = queue.wide("f")
    lack = f"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor {f}, 2 more needed"
    # An equal priority preempts nothing, and neither does one that its victims do not free enough for.
    await queue.submit("equal", "q", pod_set(cpu="2"))
    await queue.pending("equal", lack)
    await queue.submit("more", "q", pod_set(cpu="4"), priority=5)
    await queue.pending("more", lack.replace("2 more", "4 more"))
    high = await queue.submit("high", "q", pod_set(cpu="2"), priority=9)
    await queue.pending("high", f"{lack}. Pending the preemption of 1 workload(s)")
    victim = await queue.reaches("low", holds("Evicted", reason="Preempted"))
    path = f"/{queue.wide('q')}"
    message = (
        f"Preempted to accommodate a workload (UID: {high['metadata']['uid']}, JobUID: UNKNOWN) due to prioritization "
        f"in the ClusterQueue; preemptor path: {path}; preemptee path: {path}"
    )
    assert queue.message(victim, "Evicted") == message
    preempted = condition(victim, "Preempted")
    assert (preempted["status"], preempted["reason"], preempted["message"]) == ("True", "InClusterQueue", message)
    # The owner still runs its pods, so the quota is still its own.
    assert victim["status"]["admission"]
    assert holds("QuotaReserved")(victim)
    assert holds("Admitted")(victim)
    await queue.give_back("low")
    await queue.admitted("high")
    waiting = await queue.pending("low", lack)
    assert holds("Evicted", reason="Preempted")(waiting)
    assert holds("Admitted", "False", "NoReservation")(waiting)
    for name in ("more", "equal"):
        await queue.edit(name, active=False)
    await queue.finish("high")
    back = await queue.admitted("low")
    for kind in ("Evicted", "Preempted"):
        found = condition(back, kind)
        assert (found["status"], found["reason"]) == ("False", "QuotaReserved")
        assert found["message"] == f"Previously: {message}"


async def test_the_victims_of_a_preemption(queue: Queues) -> None:
    for name, cpu, priority in (("one", "1", 1), ("two", "1", 2), ("three", "2", 3)):
        await queue.submit(name, "q", pod_set(cpu=cpu), priority=priority)
        await queue.admitted(name)
    # The lowest priorities go first, but not those that a larger victim makes superfluous.
    await queue.submit("high", "q", pod_set(cpu="3"), priority=9)
    for name in ("one", "three"):
        await queue.reaches(name, holds("Evicted", reason="Preempted"))
    # Nothing overtakes a Workload that waits for its victims, although there would be room.
    await queue.give_back("one")
    await queue.submit("small", "q", pod_set(cpu="500m"), priority=1)
    await queue.give_back("three")
    await queue.admitted("high")
    for name in ("one", "three", "small"):
        await queue.reaches(name, holds("QuotaReserved", "False", "Pending"))
    assert holds("Admitted")(await queue.get("two"))
    assert not condition(await queue.get("two"), "Evicted")


@pytest.mark.parametrize("job_uid", ["", "the-uid"])
async def test_a_preemption_names_the_job_of_the_preemptor(queue: Queues, job_uid: str) -> None:
    await queue.submit("low", "q", pod_set(cpu="4"))
    await queue.admitted("low")
    if job_uid:
        high = await queue.submit_owned("high", "q", pod_set(), priority=1, job_uid=job_uid)
    else:
        high = await queue.submit("high", "q", pod_set(), priority=1)
    victim = await queue.reaches("low", holds("Evicted", reason="Preempted"))
    named = f"(UID: {high['metadata']['uid']}, JobUID: {job_uid or 'UNKNOWN'})"
    assert named in queue.message(victim, "Evicted")
