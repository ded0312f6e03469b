"""What another client does to the PodGroup of a job is noticed, and the PodGroup is made again."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.kinds.job_kind import Site
from app.domain.manifests.gangs import group_name, newest_version
from app.domain.plan import GangApi, GangPlan, Rank, Ranks
from app.domain.planning import Planner
from app.domain.reconcile.actions import CheckGroup, CreatePod
from app.domain.status.observed import RefusalVerdict
from app.domain.vocabulary import PendingCode
from app.k8s.errors import KubeError
from app.k8s.resources import Discovery
from app.loops.jobs.actions import creator
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import Expectations
from app.loops.jobs.plan_cache import PlanCache
from tests.db.factories import stored
from tests.loops.harness import KEY, WITHIN, Harness
from tests.support.gateways.gateway import manifest

# The embedded cluster serves this API, and its pods have a reference to their PodGroup.
API = GangApi.SCHEDULER_PLUGINS
LATER = creator.GROUP_POLL + 1


def path(harness: Harness, work: Work) -> str:
    return f"/apis/{newest_version(API)}/namespaces/{harness.namespace}/podgroups/{group_name(work.plan)}"


async def waiting(harness: Harness) -> Work:
    """A job whose gang of two waits in its PodGroup."""
    joins = CreatePod(key=Rank("worker", 0), attempt=1, in_gang=True)
    work = await harness.work(await harness.submit(replicas=2), joins, CheckGroup())
    gang = GangPlan(members=Ranks({"worker": range(2)}), apis=(API,), api=API, api_version=newest_version(API))
    work = replace(work, plan=replace(work.plan, gang=gang))
    assert await harness.creator.ensure_objects(work) is not None
    return work


async def edit(harness: Harness, work: Work, **metadata: Any) -> None:
    """Let another client raise the minimum."""
    body = {"metadata": metadata, "spec": {"minMember": 5}}
    (await harness.kube.patch(path(harness, work), body)).ok()


async def is_lost(harness: Harness, work: Work) -> bool:
    """Whether the read finds that the PodGroup does not serve the gang."""
    assert await harness.creator.check_group(work)
    return work.expectations.group_deleting


async def minimum(harness: Harness, work: Work) -> int:
    found: int = (await harness.kube.get(path(harness, work))).ok()["spec"]["minMember"]
    return found


async def test_a_podgroup_is_read_at_intervals(harness: Harness) -> None:
    work = await waiting(harness)
    (await harness.kube.delete(path(harness, work))).ok()
    assert not await is_lost(harness, work)
    learnt = work.expectations.revision
    harness.clock.skip(LATER)
    assert await is_lost(harness, work)
    assert work.expectations.revision > learnt


async def test_a_new_controller_reads_it_later(harness: Harness) -> None:
    work = replace(await waiting(harness), expectations=Expectations())
    (await harness.kube.delete(path(harness, work))).ok()
    assert not await is_lost(harness, work)
    harness.clock.skip(LATER)
    assert await is_lost(harness, work)


async def test_an_api_that_is_switched_off_is_noticed_at_the_next_create(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubted: list[str] = []
    monkeypatch.setattr(Discovery, "doubt", lambda _, version: doubted.append(version))
    work = await waiting(harness)
    await harness.inject(verb="create", resource="podgroups", status=404)
    assert await harness.creator.ensure_objects(work) is None
    assert doubted == [newest_version(API)]


async def test_one_that_is_as_it_was_serves(harness: Harness) -> None:
    work = await waiting(harness)
    harness.clock.skip(LATER)
    assert not await is_lost(harness, work)


async def test_another_minimum_is_noticed_and_replaced(harness: Harness) -> None:
    work = await waiting(harness)
    await edit(harness, work)
    harness.clock.skip(LATER)
    assert await is_lost(harness, work)
    assert await harness.creator.ensure_objects(work) is not None
    assert await minimum(harness, work) == 2
    assert not work.expectations.group_deleting


async def test_an_edited_podgroup_that_pods_keep_is_being_deleted(harness: Harness) -> None:
    work = await waiting(harness)
    await edit(harness, work, finalizers=["example.com/in-use"])
    assert await harness.creator.ensure_objects(work) is None
    assert work.expectations.group_deleting
    harness.clock.skip(LATER)
    assert await is_lost(harness, work)
    (await harness.kube.patch(path(harness, work), {"metadata": {"finalizers": None}})).ok()
    assert await harness.creator.ensure_objects(work) is not None
    assert await minimum(harness, work) == 2
    assert not work.expectations.group_deleting


async def test_a_minimum_that_the_cluster_changes_is_named_and_tried_again_after_a_back_off(harness: Harness) -> None:
    work = await waiting(harness)
    await edit(harness, work)
    await harness.inject(verb="create", resource="podgroups", merge={"spec": {"minMember": 5}})
    assert await harness.creator.ensure_objects(work) is None
    refusal = work.expectations.job_refusal
    assert refusal is not None
    assert (refusal.verdict, refusal.code) == (RefusalVerdict.RETRY, PendingCode.CHANGED_BY_CLUSTER)
    assert f"PodGroup {group_name(work.plan)} has the minimum 5 instead of 2" in refusal.message
    await harness.heal()
    assert await harness.creator.ensure_objects(work) is None, "before the end of the back-off"
    harness.clock.skip(LATER)
    assert await harness.creator.ensure_objects(work) is not None
    assert await minimum(harness, work) == 2


async def test_a_read_without_an_answer_is_repeated_soon_and_a_refused_one_later(harness: Harness) -> None:
    work = await waiting(harness)
    await edit(harness, work)
    harness.clock.skip(LATER)
    await harness.inject(verb="get", resource="podgroups", status=403, count=1)
    assert not await is_lost(harness, work)
    assert not await is_lost(harness, work), "before the next interval"
    harness.clock.skip(LATER)
    await harness.inject(verb="get", resource="podgroups", status=500)
    with pytest.raises(KubeError):
        await harness.creator.check_group(work)
    await harness.heal()
    assert await is_lost(harness, work)


async def test_new_controllers_spread_their_reads_over_the_interval(harness: Harness) -> None:
    work = await waiting(harness)
    began, dues = harness.clock.monotonic(), set[float]()
    for number in range(20):
        identity = replace(work.plan.identity, uid=f"uid-{number}")
        one = replace(work, plan=replace(work.plan, identity=identity), expectations=Expectations())
        assert not await is_lost(harness, one)
        assert one.expectations.group_due is not None
        dues.add(one.expectations.group_due - began)
    assert min(dues) < creator.GROUP_POLL / 3
    assert max(dues) > creator.GROUP_POLL * 2 / 3


async def test_the_reconciler_reads_it_at_intervals(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creator, "GROUP_POLL", 0.2)
    planner = Planner(installation=harness.installation, site=Site(gang_schedulers={"gangs": API}))
    harness.plans = PlanCache(planner, KEY)
    harness.reconcile_with(harness.db)
    (task,) = manifest()["spec"]["replicaSpecs"]
    # No scheduler of this name runs, so the pods wait.
    task["template"]["spec"]["schedulerName"] = "gangs"
    async with harness.reconciling():
        uid = await harness.submit(replicaSpecs=[task])
        await harness.pods_until(lambda names: len(names) == 2)
        work = await harness.work(uid)
        work = replace(work, plan=harness.plans.plan(await stored(harness.db, uid), frozenset([newest_version(API)])))
        await harness.inject(verb="get", resource="podgroups", status=403, count=3)
        await harness.hits(3)
        await edit(harness, work)
        await harness.kube.eventually(path(harness, work), lambda body: body["spec"]["minMember"] == 2, within=WITHIN)
