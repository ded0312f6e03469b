"""The removal of a job deletes what its anchor controls, whatever its size was before, and nothing else."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.domain.kubernetes import labels
from app.domain.manifests.gangs import newest_version
from app.domain.plan import GangApi, GangPlan, Rank, Ranks
from app.domain.reconcile.actions import CreatePod, EnsureObjects, RemoveObjects
from app.loops.jobs.actions import remover
from app.loops.jobs.actions.actuator import Performed
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import Expectations
from app.loops.leadership.identity import WrongCluster
from tests.loops.harness import Harness

PORT = {"name": "rendezvous", "port": 2222}
MERGE_FINALIZERS: dict[str, Any] = {"metadata": {"finalizers": ["example.com/held"]}}


@pytest.fixture(params=[True, False], ids=["by name", "by lists"], autouse=True)
def is_by_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether two objects, as the jobs of these tests have, are found by name."""
    monkeypatch.setattr(remover, "MOST_BY_NAME", 2 if request.param else 1)
    return bool(request.param)


async def with_objects(harness: Harness) -> tuple[UUID, Work]:
    """A job with two pods, a Service for each of them and an anchor, and the action that removes all but the pods."""
    uid = await harness.submit(service={"ports": [PORT]})
    creates = (CreatePod(key=Rank("worker", rank), attempt=1) for rank in range(2))
    work = await harness.work(uid, EnsureObjects(), *creates)
    assert await harness.actuator.perform(work) is Performed.ALL
    return uid, replace(work, actions=(RemoveObjects(),))


async def objects(harness: Harness) -> set[str]:
    """The names of the Services and ConfigMaps in the namespace."""
    found = [item for plural in ("services", "configmaps") for item in await items(harness, plural)]
    return {item["metadata"]["name"] for item in found}


async def items(harness: Harness, plural: str) -> list[Any]:
    listed: list[Any] = (await harness.kube.get(f"{harness.path}/{plural}")).ok()["items"]
    return listed


async def make_service(harness: Harness, name: str, **metadata: Any) -> None:
    body = {"metadata": {"name": name, **metadata}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}
    (await harness.kube.post(f"{harness.path}/services", body)).ok()


async def test_all_objects_are_gone_after_one_call(harness: Harness) -> None:
    uid, work = await with_objects(harness)
    assert await objects(harness) == {labels.anchor_name(str(uid)), "train-worker-0", "train-worker-1"}
    assert await harness.actuator.perform(work) is Performed.ALL
    assert work.expectations.objects_gone
    assert await objects(harness) == set()


async def test_few_objects_are_found_without_a_list(harness: Harness, *, is_by_name: bool) -> None:
    _, work = await with_objects(harness)
    for resource in ("services", "configmaps"):
        await harness.inject(verb="list", resource=resource, status=500)
    assert await harness.actuator.perform(work) is (Performed.ALL if is_by_name else Performed.FAILED)
    await harness.heal()
    assert bool(await objects(harness)) is not is_by_name


async def test_objects_of_a_former_size_are_deleted(harness: Harness) -> None:
    uid, work = await with_objects(harness)
    before = await harness.work(uid, RemoveObjects())
    smaller = replace(before.plan, tasks=tuple(replace(task, size=1) for task in before.plan.tasks))
    assert await harness.actuator.perform(replace(work, plan=smaller)) is Performed.ALL
    assert await objects(harness) == set()


async def test_objects_of_others_stay(harness: Harness) -> None:
    uid, work = await with_objects(harness)
    (await harness.kube.delete(f"{harness.path}/services/train-worker-1")).ok()
    await make_service(harness, "train-worker-1", labels=harness.labels(uid))
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await objects(harness) == {"train-worker-1"}


async def test_a_foreign_object_with_the_name_of_the_anchor_stays(harness: Harness) -> None:
    uid = await harness.submit(service={"ports": [PORT]})
    name = labels.anchor_name(str(uid))
    (await harness.kube.post(f"{harness.path}/configmaps", {"metadata": {"name": name}})).ok()
    work = await harness.work(uid, RemoveObjects())
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await objects(harness) == {name}


async def test_an_anchor_without_its_labels_is_known_by_its_uid(harness: Harness) -> None:
    uid, work = await with_objects(harness)
    path = f"{harness.path}/configmaps/{labels.anchor_name(str(uid))}"
    (await harness.kube.patch(path, {"metadata": {"labels": None}})).ok()
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await objects(harness) == set()


async def test_an_object_that_was_replaced_meanwhile_is_looked_at_again(harness: Harness) -> None:
    _, work = await with_objects(harness)
    await harness.inject(verb="delete", resource="services", status=409, count=1)
    assert await harness.actuator.perform(work) is Performed.FAILED
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await objects(harness) == set()


async def test_the_recorded_uid_of_the_anchor_is_enough(harness: Harness) -> None:
    uid, work = await with_objects(harness)
    # Not deleted, because the garbage collector would then delete the Services.
    await harness.inject(verb="get", resource="configmaps", status=404)
    assert await harness.actuator.perform(work) is Performed.ALL
    await harness.heal()
    assert await objects(harness) == {labels.anchor_name(str(uid))}


@pytest.mark.parametrize("plural", ["services", "configmaps"])
async def test_an_object_that_a_finalizer_holds_is_waited_for(harness: Harness, plural: str) -> None:
    uid, work = await with_objects(harness)
    anchor = labels.anchor_name(str(uid))
    held = "train-worker-0" if plural == "services" else anchor
    path = f"{harness.path}/{plural}/{held}"
    (await harness.kube.patch(path, MERGE_FINALIZERS)).ok()
    # A controller that has just started does not know the uid of the anchor.
    work = replace(work, expectations=Expectations())
    assert await harness.actuator.perform(work) is Performed.FAILED
    assert not work.expectations.objects_gone
    assert await objects(harness) == {held, anchor}
    (await harness.kube.patch(path, {"metadata": {"finalizers": []}})).ok()
    assert await harness.actuator.perform(work) is Performed.ALL
    assert await objects(harness) == set()


async def test_nothing_is_gone_because_another_cluster_has_nothing(harness: Harness) -> None:
    uid = await harness.submit()
    work = await harness.work(uid, RemoveObjects())
    harness.verify_error.append(WrongCluster("another cluster answers"))
    with pytest.raises(ExceptionGroup):
        await harness.actuator.perform(work)
    assert not work.expectations.objects_gone


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_without_a_right_to_podgroups_the_other_objects_are_removed(harness: Harness, verb: str) -> None:
    _, work = await with_objects(harness)
    api = GangApi.SCHEDULER_PLUGINS
    gang = GangPlan(members=Ranks({"worker": range(2)}), apis=(api,), api=api, api_version=newest_version(api))
    work = replace(work, plan=replace(work.plan, gang=gang))
    assert await harness.creator.ensure_objects(work) is not None
    await harness.inject(verb=verb, resource="podgroups", status=403)
    assert await harness.actuator.perform(work) is Performed.ALL
    await harness.hits()
    assert work.expectations.objects_gone
    assert await objects(harness) == set()
