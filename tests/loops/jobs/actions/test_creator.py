"""A create may be repeated, and what the cluster answers is remembered until the cluster answers something else."""

from typing import Any
from uuid import UUID

import pytest

from app.db.postgres.errors import LeaseLost
from app.domain.kubernetes import labels
from app.domain.plan import Rank
from app.domain.reconcile.actions import CreatePod
from app.domain.status.observed import RefusalVerdict
from app.domain.status.records import MOST_WARNINGS
from app.domain.vocabulary import PendingCode, Reason, WarningSource
from app.loops.jobs.actions.work import Work
from app.loops.jobs.expectations import Expectations
from app.loops.leadership.identity import WrongCluster
from tests.loops.harness import Harness
from tests.support.gateways.gateway import manifest

KEY = Rank("worker", 0)
FIRST, SECOND = CreatePod(key=KEY, attempt=1), CreatePod(key=KEY, attempt=2)
NAME = "train-worker-0"


async def created(harness: Harness, work: Work, action: CreatePod = FIRST) -> None:
    """Create the job's objects and the pod, as the actuator does."""
    anchor = await harness.creator.ensure_objects(work)
    assert anchor is not None
    assert await harness.creator.create_pod(work, action, anchor)


async def a_work(harness: Harness, **more: Any) -> Work:
    return await harness.work(await harness.submit(replicas=1), FIRST, **more)


async def test_a_repeated_create_finds_what_is_there(harness: Harness) -> None:
    work = await a_work(harness)
    await created(harness, work)
    before = await harness.pods()
    await created(harness, work)
    assert await harness.pods() == before
    assert work.expectations.refusals == {}
    assert [pod.metadata.uid for pod in harness.mirror.pods()] == [before[NAME]["metadata"]["uid"]], "it is adopted"
    assert before[NAME]["metadata"]["finalizers"] == [labels.EVIDENCE_FINALIZER]
    (owner,) = before[NAME]["metadata"]["ownerReferences"]
    assert [owner["uid"]] == work.expectations.anchors


async def test_a_create_whose_answer_is_lost_is_repeated_and_adopts_the_pod(harness: Harness) -> None:
    work = await a_work(harness)
    await harness.inject(verb="create", resource="pods", loseResponse=True, count=1)
    await created(harness, work)
    assert work.expectations.refusals[KEY].code == PendingCode.CLUSTER_UNREACHABLE
    harness.clock.skip(10)
    await created(harness, work)
    assert work.expectations.refusals == {}
    assert list(await harness.pods()) == [NAME]


async def test_each_warning_of_the_cluster_about_a_task_is_kept_once(harness: Harness) -> None:
    (task,) = manifest(replicas=2)["spec"]["replicaSpecs"]
    task["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "400000400m"}}
    work = await harness.work(await harness.submit(replicaSpecs=[task]), FIRST)
    anchor = await harness.creator.ensure_objects(work)
    assert anchor is not None
    for rank in range(2):
        assert await harness.creator.create_pod(work, CreatePod(key=Rank("worker", rank), attempt=1), anchor)
    (warning,) = work.expectations.warnings
    assert (warning.source, warning.task, warning.pointer) == (WarningSource.CLUSTER, "worker", "")
    assert warning.message.startswith("spec.containers[0].resources.requests[memory]: fractional byte value ")


def test_the_warnings_of_webhooks_are_bounded() -> None:
    expectations = Expectations()
    for number in range(100):
        expectations.warn(KEY, f"odd {number}\n{'x' * 5000}")
    assert len(expectations.warnings) == MOST_WARNINGS
    assert all(len(one.message) <= 1000 and "\n" not in one.message for one in expectations.warnings)
    assert expectations.revision == MOST_WARNINGS


REFUSALS: list[tuple[dict[str, Any], RefusalVerdict, str]] = [
    ({"status": 429, "retryAfter": 0}, RefusalVerdict.RETRY, PendingCode.CLUSTER_THROTTLED),
    ({"status": 500}, RefusalVerdict.RETRY, PendingCode.CLUSTER_ERROR),
    ({"status": 403, "message": "exceeded quota: gpus"}, RefusalVerdict.RETRY, PendingCode.QUOTA_EXCEEDED),
    ({"status": 422, "message": "spec.containers: Required value"}, RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER),
]


@pytest.mark.parametrize(("rule", "verdict", "code"), REFUSALS, ids=[code for _, _, code in REFUSALS])
async def test_a_refusal_keeps_its_first_moment_and_is_not_repeated_before_its_back_off(
    harness: Harness, rule: dict[str, Any], verdict: RefusalVerdict, code: str
) -> None:
    work = await a_work(harness)
    await harness.inject(verb="create", resource="pods", **rule)
    await created(harness, work)
    first = work.expectations.refusals[KEY]
    assert (first.verdict, first.code) == (verdict, code)
    learnt = work.expectations.revision
    await created(harness, work)
    assert await asked(harness) == 1, "the second create comes too early"
    harness.clock.skip(1.1)
    await created(harness, work)
    assert await asked(harness) == 2
    assert work.expectations.refusals[KEY] is first
    assert work.expectations.revision == learnt, "the same refusal teaches nothing new"
    harness.clock.skip(1.1)
    await created(harness, work)
    assert await asked(harness) == 2, "the second back-off is longer"
    await harness.heal()
    harness.clock.skip(60)
    await created(harness, work)
    assert work.expectations.refusals == {}
    assert work.expectations.revision > learnt


async def asked(harness: Harness) -> int:
    """How many requests the fault rules have hit."""
    return sum(rule["hits"] for rule in (await harness.kube.get("/devcluster/faults")).ok()["items"])


async def test_no_pod_is_created_for_a_job_whose_objects_are_refused(harness: Harness) -> None:
    work = await a_work(harness)
    await harness.inject(verb="create", resource="configmaps", status=503, message="no etcd leader")
    assert await harness.creator.ensure_objects(work) is None
    assert work.expectations.job_refusal is not None
    assert work.expectations.job_refusal.message == "the API server of the cluster reports an error: no etcd leader"
    await harness.heal()
    assert await harness.creator.ensure_objects(work) is None, "the back-off is not over"
    harness.clock.skip(2)
    assert await harness.creator.ensure_objects(work) is not None
    assert work.expectations.job_refusal is None


async def test_an_object_of_another_client_fails_the_job_and_stays(harness: Harness) -> None:
    work = await a_work(harness)
    foreign = await harness.make_pod(NAME)
    await created(harness, work)
    refusal = work.expectations.refusals[KEY]
    assert (refusal.verdict, refusal.code) == (RefusalVerdict.FAIL, Reason.NAME_CONFLICT)
    assert (await harness.pods())[NAME]["metadata"]["uid"] == foreign["metadata"]["uid"]


async def test_labels_alone_do_not_make_a_pod_the_jobs(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    work = await harness.work(uid, FIRST)
    await harness.make_pod(NAME, labels=harness.labels(uid, **{labels.ATTEMPT: "1"}))
    await created(harness, work)
    assert work.expectations.refusals[KEY].code == Reason.NAME_CONFLICT
    assert list(harness.mirror.pods()) == []


async def test_a_name_that_the_previous_attempt_still_has_is_waited_for(harness: Harness) -> None:
    work = await a_work(harness)
    await created(harness, work)
    await created(harness, work, SECOND)
    assert work.expectations.refusals[KEY].code == PendingCode.NAME_TERMINATING
    assert work.expectations.refusals[KEY].verdict is RefusalVerdict.WAIT


async def test_a_name_that_a_former_job_still_has_is_waited_for(harness: Harness) -> None:
    await created(harness, await a_work(harness))
    async with harness.db.begin() as connection:
        await connection.execute("UPDATE names SET released = true")
    successor = await a_work(harness)
    await created(harness, successor)
    assert successor.expectations.refusals[KEY].code == PendingCode.PREVIOUS_OBJECTS
    assert successor.expectations.refusals[KEY].verdict is RefusalVerdict.WAIT


@pytest.mark.parametrize("missing", ["lease", "cluster"])
async def test_nothing_is_created_without_the_lease_or_on_another_cluster(harness: Harness, missing: str) -> None:
    work = await a_work(harness)
    error: type[Exception] = LeaseLost if missing == "lease" else WrongCluster
    if missing == "lease":
        await harness.leadership.release()
    else:
        harness.verify_error.append(WrongCluster("another cluster answers"))
    with pytest.raises(error):
        await harness.creator.ensure_objects(work)
    with pytest.raises(error):
        await harness.creator.create_pod(work, FIRST, "an anchor")
    assert await harness.pods() == {}
    maps = (await harness.kube.get(f"{harness.path}/configmaps")).ok()["items"]
    assert [found for found in maps if found["metadata"]["name"].startswith("jobgate-")] == []


async def test_the_uid_of_an_anchor_is_learnt_and_so_is_its_absence(harness: Harness) -> None:
    work = await a_work(harness)
    await harness.creator.find_anchor(work.plan, work.expectations)
    assert (work.expectations.anchor_sought, work.expectations.anchors) == (True, [])
    anchor = await harness.creator.ensure_objects(work)
    other = await a_work_of_the_same_job(harness, work)
    await harness.creator.find_anchor(other.plan, other.expectations)
    assert (other.expectations.anchor_sought, other.expectations.anchors) == (True, [anchor])


async def a_work_of_the_same_job(harness: Harness, work: Work) -> Work:
    """What a controller has that was started after the first one."""
    return await harness.work(UUID(work.plan.identity.uid), FIRST)
