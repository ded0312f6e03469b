"""MxJob by its golden files: tests/data/mx_job/<case>/manifest.yaml and what becomes of it."""

from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from app.domain.errors import Conflict
from app.domain.kinds.accelerators import accelerators_of
from app.domain.kinds.job_kind import Given, Limits, Site
from app.domain.kinds.mx_job import MxJobKind
from app.domain.manifests.rendered import objects_of, pod_bytes
from app.domain.plan import JobIdentity, JobPlan, Manifest
from tests.support.plans import GIVEN, reserved
from tests.support.plugins.golden import Golden, load_manifest

DATA = Path(__file__).parents[3] / "data" / "mx_job"
load = partial(load_manifest, DATA)
CASES = sorted(path.name for path in DATA.iterdir())
KIND = MxJobKind()
# The first is of the ConfigMap that mxnet-operator ships with its Deployment.
CONTROLLER_CONFIG = {
    "accelerators": {
        "alpha.kubernetes.io/nvidia-gpu": {
            "volumes": [
                {
                    "name": "nvidia-libraries",
                    "mountPath": "/usr/local/nvidia",
                    "hostPath": "/var/lib/nvidia-docker/volumes/nvidia_driver/current",
                }
            ]
        },
        "example.com/fpga": {
            "volumes": [{"name": "fpga", "hostPath": "/opt/fpga", "mountPath": "/fpga"}],
            "envVars": [{"name": "LD_LIBRARY_PATH", "value": "/fpga/lib"}, {"name": "FPGA", "value": "1"}],
        },
        "example.com/npu": {"envVars": [{"name": "NPU", "value": "1"}]},
    }
}
SITE = Site(schedulers={"volcano": None}, accelerators=accelerators_of(CONTROLLER_CONFIG))


def accepted(manifest: Manifest, given: Given = GIVEN) -> Manifest:
    return KIND.accept(manifest, Limits(), given).manifest


def plan_of(manifest: Manifest, site: Site = SITE) -> JobPlan:
    stored = accepted(manifest)
    identity = JobIdentity(
        uid="1c3e5a7f-0000-4000-8000-00000000feed",
        kind="MxJob",
        api_version="mxnet.mlkube.io/v1beta1",
        namespace="research",
        name=stored["metadata"]["name"],
        generation=1,
        installation="test-installation",
    )
    return KIND.plan(KIND.read(stored), identity, resumed=False, site=site)


def pods(plan: JobPlan) -> dict[str, Manifest]:
    return {made["metadata"]["name"]: made for made in objects_of(plan) if made["kind"] == "Pod"}


def with_pod_spec(**changes: Any) -> Manifest:
    manifest = load("shipped_local")
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"] |= changes
    return manifest


@pytest.mark.parametrize("case", CASES)
def test_the_stored_manifest(case: str, golden: Golden) -> None:
    stored = accepted(load(case))
    golden(DATA / case / "accepted.yaml", stored)
    assert accepted(stored, Given(suffix=lambda: "other")) == stored
    assert jsonschema_rs.validator_for(KIND.json_schema()).is_valid(stored)


@pytest.mark.parametrize("case", CASES)
def test_the_rendered_objects(case: str, golden: Golden) -> None:
    plan = plan_of(load(case))
    golden(DATA / case / "objects.yaml", list(objects_of(plan, "00000000-0000-4000-8000-0000000a11c0")))
    golden(DATA / case / "plan.json", summary(plan))
    assert max(pod_bytes(plan).values()) < Limits().max_rendered_pod_bytes


def summary(plan: JobPlan) -> dict[str, Any]:
    """What of a plan its objects do not show."""
    return {
        "rules": [[rule.name, rule.outcome, rule.quantifier, sorted(map(str, rule.ranks))] for rule in plan.rules],
        "failsWhenSuccessIsImpossible": plan.fails_when_success_is_impossible,
        "cleanUp": plan.clean_up,
        "restarts": {
            name: [
                restart.policy,
                restart.limit,
                restart.retryable and [restart.retryable.container, restart.retryable.least_code],
            ]
            for name, restart in plan.restarts.items()
        },
        "deadlines": [plan.active_deadline, plan.pending_deadline, plan.ttl_after_finished],
        "globalRanks": {str(key): replica.global_rank for key, replica in plan.replicas.items()},
        "missingScheduler": plan.missing_scheduler,
    }


def test_the_runtime_id_is_generated_once() -> None:
    manifest = load("shipped_dist")
    stored = accepted(manifest)
    assert stored["spec"]["RuntimeId"] == "x7k2"
    assert accepted(manifest, Given(suffix=lambda: "zzzzz", stored=stored)) == stored
    assert not KIND.changes(stored, stored)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"RuntimeId": "mine"}, "/spec/RuntimeId"),
        ({"jobMode": "dist"}, "/spec/jobMode"),
    ],
)
def test_the_spec_of_a_job_cannot_be_changed(change: dict[str, Any], pointer: str) -> None:
    stored = accepted(load("shipped_local"))
    (error,) = KIND.changes(stored, {**stored, "spec": stored["spec"] | change})
    assert (error.pointer, error.code) == (pointer, "Immutable")


def test_labels_and_annotations_can_be_changed() -> None:
    stored = accepted(load("shipped_local"))
    new = {**stored, "metadata": stored["metadata"] | {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    assert not KIND.changes(stored, new)


def test_there_is_no_pause_and_no_scaling() -> None:
    stored = accepted(load("shipped_dist"))
    assert KIND.scaling(KIND.read(stored)) is None
    with pytest.raises(Conflict):
        KIND.with_pause(KIND.read(stored), paused=True)
    with pytest.raises(Conflict):
        KIND.resize(KIND.read(stored), {"worker": 4})


def test_the_scheduler_finds_its_own_address_under_its_service() -> None:
    """ps-lite binds to what DMLC_PS_ROOT_URI leads to (dmlc/ps-lite#129)."""
    made = list(objects_of(plan_of(load("shipped_dist"))))
    (service,) = (found for found in made if found["kind"] == "Service")
    name = "example-dist-job-scheduler-x7k2-0"
    assert service["metadata"]["name"] == name
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["ports"] == [{"name": "ps-root-port", "port": 9091}]
    labels = pods(plan_of(load("shipped_dist")))[name]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert ("service", name) in reserved(plan_of(load("shipped_dist")))


def test_local_mode_has_one_pod_and_no_dmlc() -> None:
    plan = plan_of(load("shipped_local"))
    assert list(pods(plan)) == ["example-local-job-worker-x7k2-0"]
    assert [found["kind"] for found in objects_of(plan)] == ["ConfigMap", "Pod"]
    assert "DMLC" not in str(list(objects_of(plan)))


def env_of(pod: Manifest, container: str = "mxnet") -> dict[str, Any]:
    (found,) = (one for one in pod["spec"]["containers"] if one["name"] == container)
    return {variable["name"]: variable.get("value") for variable in found.get("env", [])}


def test_dmlc_environment() -> None:
    env = env_of(pods(plan_of(load("shipped_dist")))["example-dist-job-server-x7k2-1"])
    assert env == {
        "DMLC_PS_ROOT_PORT": "9091",
        "DMLC_PS_ROOT_URI": "example-dist-job-scheduler-x7k2-0",
        "DMLC_NUM_SERVER": "2",
        "DMLC_NUM_WORKER": "3",
        "DMLC_ROLE": "server",
    }


def test_the_users_own_variables_stay() -> None:
    made = pods(plan_of(load("own_environment")))
    worker = made["own-worker-r1-0"]
    assert env_of(worker, "log") == {"LEVEL": "info"}
    env = env_of(worker)
    assert list(env) == [
        "PS_VERBOSE",
        "DMLC_NUM_WORKER",
        "DMLC_ROLE",
        "DMLC_PS_ROOT_PORT",
        "DMLC_PS_ROOT_URI",
        "DMLC_NUM_SERVER",
    ]
    assert (env["DMLC_NUM_WORKER"], env["DMLC_ROLE"]) == ("7", None)
    assert env["DMLC_PS_ROOT_PORT"] == "9100", "the scheduler's port is everybody's"


@pytest.mark.parametrize("count", range(7))
def test_any_number_of_own_variables(count: int) -> None:
    """Upstream wrote DMLC's over the first five, and crashed with one to four."""
    manifest = load("shipped_dist")
    own = {f"OWN_{i}": str(i) for i in range(count)}
    for replica in manifest["spec"]["replicaSpecs"]:
        container = replica["template"]["spec"]["containers"][0]
        container["env"] = [{"name": name, "value": value} for name, value in own.items()]
    for pod in pods(plan_of(manifest)).values():
        assert len(env_of(pod)) == count + 5
        assert own.items() <= env_of(pod).items()


def test_init_containers_need_nothing() -> None:
    """Upstream's successor crashed on them (kubeflow/mxnet-operator#29)."""
    manifest = with_pod_spec(initContainers=[{"name": "fetch", "image": "busybox"}])
    (pod,) = pods(plan_of(manifest)).values()
    assert pod["spec"]["initContainers"] == [{"name": "fetch", "image": "busybox"}]


def test_pods_do_not_restart_themselves() -> None:
    assert {pod["spec"]["restartPolicy"] for pod in pods(plan_of(load("shipped_dist"))).values()} == {"Never"}


@pytest.mark.parametrize("amounts", ["limits", "requests"])
def test_accelerators_by_limit_or_request(amounts: str) -> None:
    container = {"name": "mxnet", "image": "i", "resources": {amounts: {"example.com/fpga": 1}}}
    if amounts == "requests":
        container["resources"] = {"limits": {"example.com/fpga": 1}, "requests": {"example.com/fpga": 1}}
    (pod,) = pods(plan_of(with_pod_spec(containers=[container]))).values()
    assert pod["spec"]["volumes"] == [{"name": "fpga", "hostPath": {"path": "/opt/fpga"}}]
    assert pod["spec"]["containers"][0]["volumeMounts"] == [{"name": "fpga", "mountPath": "/fpga"}]
    assert env_of(pod) == {"LD_LIBRARY_PATH": "/fpga/lib", "FPGA": "1"}


def test_a_request_without_a_limit_is_enough() -> None:
    """Kubernetes wants limits of devices, but a configuration may name any resource."""
    container = {"name": "mxnet", "image": "i", "resources": {"requests": {"cpu": 1}}}
    site = Site(accelerators=accelerators_of({"accelerators": {"cpu": {"envVars": [{"name": "MKL", "value": "1"}]}}}))
    (pod,) = pods(plan_of(with_pod_spec(containers=[container]), site)).values()
    assert env_of(pod) == {"MKL": "1"}


def test_accelerators_are_added_once() -> None:
    """A pod that was made by the operator itself, posted again, is as it was."""
    (pod,) = pods(plan_of(load("everything"))).values()
    again = with_pod_spec(**{name: pod["spec"][name] for name in ("containers", "volumes")})
    (same,) = pods(plan_of(again)).values()
    assert same["spec"]["containers"] == pod["spec"]["containers"]
    assert same["spec"]["volumes"] == pod["spec"]["volumes"]


def test_without_a_configuration_an_accelerator_is_just_a_resource() -> None:
    (pod,) = pods(plan_of(load("shipped_local"), Site())).values()
    assert "volumes" not in pod["spec"]
    assert "volumeMounts" not in pod["spec"]["containers"][0]
