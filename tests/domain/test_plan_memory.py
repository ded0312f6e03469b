"""The memory of a plan depends on the template and not on the number of replicas."""

import tracemalloc
from typing import Any

import pytest

from app.domain.kinds.job_kind import Limits
from app.domain.manifests.rendered import pod_bytes
from app.domain.manifests.workload import pod_manifest
from app.domain.plan import JobPlan, Manifest
from app.domain.planning import Planner

MANY = 10_000
RANKED_BYTES = 24_000
LEAST_PLAN = 8 * 1024 * 1024


def a_generic_job(replicas: int) -> Manifest:
    """A job whose pods differ in 24 kB of environment."""
    text = "$(rank) and x" * 100
    env = [{"name": f"TEXT_{number}", "value": text} for number in range(RANKED_BYTES // len(text))]
    container = {"name": "main", "image": "train:1", "env": env}
    template = {"spec": {"containers": [container]}}
    spec = {"replicaSpecs": [{"type": "worker", "replicas": replicas, "template": template}]}
    return _manifest("batch.tensorstack.dev/v1beta1", "GenericJob", spec)


def an_mx_job(replicas: int) -> Manifest:
    template = {"spec": {"containers": [{"name": "mxnet", "image": "train:1"}]}}
    roles = (("SCHEDULER", 1), ("SERVER", 1), ("WORKER", replicas - 2))
    specs = [
        {"mxReplicaType": role, "replicas": size, "PsRootPort": 9000, "template": template} for role, size in roles
    ]
    return _manifest("mxnet.mlkube.io/v1beta1", "MxJob", {"jobMode": "dist", "replicaSpecs": specs})


def a_training_job(replicas: int) -> Manifest:
    trainer = {"min-instance": replicas, "max-instance": replicas, "entrypoint": "train"}
    return _manifest("paddlepaddle.org/v1alpha1", "TrainingJob", {"image": "train:1", "trainer": trainer})


def _manifest(api_version: str, kind: str, spec: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "large"}, "spec": spec}


def planned(document: Manifest) -> JobPlan:
    planner = Planner(installation="i", limits=Limits())
    return planner.plan(planner.draft(document, "team-a", lambda: "x7k2m").accepted, "uid")


@pytest.mark.parametrize("job", [a_generic_job, an_mx_job, a_training_job], ids=lambda job: job.__name__)
def test_a_plan_of_many_replicas_takes_the_memory_of_its_template(job: Any) -> None:
    document = job(MANY)
    planned(job(3))  # what the first use of a kind loads is no part of a plan
    tracemalloc.start()
    try:
        plan = planned(document)
        assert min(pod_bytes(plan).values()) > 0
        assert sum(1 for _ in plan.replicas) == MANY
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for number, replica in enumerate(plan.replicas.values()):
            assert pod_manifest(plan, replica, 1, None)["metadata"]["name"] == replica.pod_name
            if number == 200:
                break
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < LEAST_PLAN
    assert peak < LEAST_PLAN


@pytest.mark.parametrize("job", [a_generic_job, an_mx_job, a_training_job], ids=lambda job: job.__name__)
def test_names_known_without_rendering_are_those_of_the_rendered_objects(job: Any) -> None:
    plan = planned(job(5))
    pods = [replica.pod_name for replica in plan.replicas.values()]
    services = [replica.service.name for replica in plan.replicas.values() if replica.service]
    assert [task.pod_name(rank) for task in plan.tasks for rank in range(task.size)] == pods
    assert [task.pod_name(rank) for task in plan.tasks if task.own_services for rank in range(task.size)] == services
