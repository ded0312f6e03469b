"""What another client does to the PodGroup of a job is noticed, and the PodGroup is made again."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.manifests.gangs import group_name, newest_version
from app.domain.plan import GangApi, GangPlan, Rank, Ranks
from app.domain.reconcile.actions import CheckGroup, CreatePod
from app.domain.reconcile.placing.gangs import GROUP_POLL
from app.domain.status.observed import RefusalVerdict
from app.domain.vocabulary import PendingCode
from app.k8s.resources import Discovery
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import Expectations
from tests.loops.harness import Harness

# The embedded cluster serves this API, and its pods have a reference to their PodGroup.
API = GangApi.SCHEDULER_PLUGINS
LATER = GROUP_POLL.total_seconds() + 1


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
