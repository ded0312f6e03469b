"""Which replicas of each kind are placed together, and by which API."""

from collections.abc import Mapping

import pytest

from app.domain.kinds.job_kind import Site
from app.domain.plan import GangApi, JobPlan, Manifest
from app.domain.planning import Planner
from tests.behaviour.manifests import job, task
from tests.behaviour.scaling.elastic import di_job, di_task, training_job

QUEUED = {"t9kScheduler": {"queue": "research", "priority": 7}}
SCHEDULERS = {
    "default-scheduler": GangApi.KUBERNETES,
    "volcano": GangApi.VOLCANO,
    "plugins": GangApi.SCHEDULER_PLUGINS,
}
KUBERNETES, VOLCANO, PLUGINS, TENSORSTACK = ("kubernetes",), ("volcano",), ("scheduler-plugins",), ("tensorstack",)


def planned(
    manifest: Manifest,
    gang_schedulers: Mapping[str, GangApi] = SCHEDULERS,
    schedulers: Mapping[str, str | None] | None = None,
) -> JobPlan:
    planner = Planner(installation="i", site=Site(gang_schedulers=gang_schedulers, schedulers=schedulers or {}))
    return planner.plan(planner.draft(manifest, "ns", lambda: "x7k2m").accepted, "uid")


def trainers(least: int, most: int) -> Manifest:
    manifest = training_job("j", "true", most=most)
    manifest["spec"]["trainer"]["min-instance"] = least
    return manifest


def grouped() -> Manifest:
    manifest = trainers(2, 4)
    manifest["spec"]["podGroupName"] = "of-the-user"
    return manifest


def mx_job() -> Manifest:
    template = {"spec": {"containers": [{"name": "mxnet", "image": "busybox"}]}}
    roles = [("SCHEDULER", 1), ("SERVER", 2), ("WORKER", 2)]
    specs = [{"mxReplicaType": role, "replicas": size, "template": template} for role, size in roles]
    return {
        "apiVersion": "mxnet.mlkube.io/v1beta1",
        "kind": "MxJob",
        "metadata": {"name": "j"},
        "spec": {"jobMode": "dist", "replicaSpecs": specs},
    }


@pytest.mark.parametrize(
    ("manifest", "apis", "members"),
    [
        (job("j", task(replicas=2), task(kind="ps")), KUBERNETES, {"worker": 2, "ps": 1}),
        (job("j", task()), None, {}),
        (job("j", task(replicas=2, schedulerName="volcano")), VOLCANO, {"worker": 2}),
        (job("j", task(replicas=2, schedulerName="plugins")), PLUGINS, {"worker": 2}),
        (job("j", task(replicas=2, schedulerName="other")), None, {}),
        (job("j", task(schedulerName="volcano"), task(kind="ps")), None, {}),
        # A success rule says when the job has ended, and not what it needs until then.
        (
            job("j", task(replicas=2), task(kind="ps"), successRules=[{"worker": [0]}]),
            KUBERNETES,
            {"worker": 2, "ps": 1},
        ),
        (mx_job(), KUBERNETES, {"scheduler": 1, "server": 2, "worker": 2}),
        (trainers(1, 4), KUBERNETES, {"master": 1, "trainer": 1}),
        (trainers(3, 4), KUBERNETES, {"master": 1, "trainer": 3}),
        (grouped(), None, {}),
        (di_job("j", [di_task("collector", 3), di_task("learner")]), KUBERNETES, {"collector": 1, "learner": 1}),
        (
            di_job("j", [di_task("collector", 3), di_task("learner", 3)], minReplicas=5),
            KUBERNETES,
            {"collector": 3, "learner": 2},
        ),
        (di_job("j", [di_task("collector", 3)], minReplicas=3), KUBERNETES, {"collector": 3}),
        (di_job("j", [di_task("collector", 3)]), None, {}),
        (job("j", task(replicas=2), scheduler=QUEUED), (*KUBERNETES, *TENSORSTACK), {"worker": 2}),
        (job("j", task(), scheduler=QUEUED), TENSORSTACK, {"worker": 1}),
    ],
)
def test_what_is_placed_together(manifest: Manifest, apis: tuple[str, ...] | None, members: dict[str, int]) -> None:
    gang = planned(manifest).gang
    assert (gang.apis if gang else None) == apis
    assert (
        [str(key) for key in gang.members]
        if gang
        else [f"{name}[{rank}]" for name, size in members.items() for rank in range(size)] == []
    )


def test_a_scheduler_is_known_by_its_name_in_this_cluster() -> None:
    gang = planned(job("j", task(replicas=2), scheduler=QUEUED), schedulers={"t9k-scheduler": "volcano"}).gang
    assert gang is not None
    assert (gang.apis, gang.queue) == ((*VOLCANO, *TENSORSTACK), "research")


def test_queue_and_priority_class() -> None:
    manifest = job("j", task(replicas=2, priorityClassName="high"))
    manifest["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "research"}
    gang = planned(manifest).gang
    assert gang is not None
    assert (gang.queue, gang.priority_class) == ("research", "high")
    mixed = planned(job("j", task(priorityClassName="high"), task(kind="ps"))).gang
    assert mixed is not None
    assert (mixed.queue, mixed.priority_class) == ("", "")


def test_one_pod_with_a_queue_of_volcano_is_a_gang() -> None:
    manifest = job("j", task(schedulerName="volcano"))
    assert planned(manifest).gang is None
    manifest["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "research"}
    gang = planned(manifest).gang
    assert gang is not None
    assert (gang.apis, gang.queue, len(gang.members)) == (VOLCANO, "research", 1)
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["schedulerName"] = "plugins"
    assert planned(manifest).gang is None


def test_without_the_setting_only_a_queue_makes_a_gang() -> None:
    assert planned(job("j", task(replicas=2)), gang_schedulers={}).gang is None
    gang = planned(job("j", task(replicas=2), scheduler=QUEUED), gang_schedulers={}).gang
    assert gang is not None
    assert (gang.apis, gang.api) == (TENSORSTACK, GangApi.TENSORSTACK)
