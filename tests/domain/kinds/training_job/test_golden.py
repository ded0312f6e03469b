"""TrainingJob by its golden files: tests/data/training_job/<case>/manifest.yaml and what becomes of it."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import Conflict
from app.domain.kinds import registry
from app.domain.kinds.envelope import postable
from app.domain.kinds.job_kind import Limits, Scaling, Site
from app.domain.kinds.training_job import TrainingJobKind
from app.domain.kinds.training_job.templates import command_of
from app.domain.manifests.rendered import objects_of, pod_bytes
from app.domain.plan import JobIdentity, JobPlan, Manifest, Rank
from app.domain.reservations.name_ranges import NameRange
from app.domain.vocabulary import CleanUpPolicy, RestartPolicy
from tests.support.plans import GIVEN, reserved
from tests.support.plugins.golden import Golden, load_manifest

DATA = Path(__file__).parents[3] / "data" / "training_job"
load = partial(load_manifest, DATA)
CASES = sorted(path.name for path in DATA.iterdir())
SITE = Site(schedulers={"kube-batchd": "kube-batch-here", "volcano": "volcano-here"})
KIND = TrainingJobKind()


def accepted(manifest: Manifest) -> Manifest:
    return KIND.accept(manifest, Limits(), GIVEN).manifest


def identity(manifest: Manifest) -> JobIdentity:
    return JobIdentity(
        uid="1c3e5a7f-0000-4000-8000-00000000feed",
        kind="TrainingJob",
        api_version=manifest["apiVersion"],
        namespace="research",
        name=manifest["metadata"]["name"],
        generation=1,
        installation="test-installation",
    )


def plan_of(manifest: Manifest, site: Site = SITE) -> JobPlan:
    stored = accepted(manifest)
    return KIND.plan(KIND.read(stored), identity(stored), resumed=False, site=site)


def changed(case: str, **spec: Any) -> Manifest:
    manifest = load(case)
    return {**manifest, "spec": {**manifest["spec"], **spec}}


@pytest.mark.parametrize("case", CASES)
def test_the_stored_manifest(case: str, golden: Golden) -> None:
    stored = accepted(load(case))
    golden(DATA / case / "accepted.yaml", stored)
    assert accepted(postable(stored)) == stored


@pytest.mark.parametrize("case", CASES)
def test_the_rendered_objects(case: str, golden: Golden) -> None:
    plan = plan_of(load(case))
    golden(DATA / case / "objects.yaml", list(objects_of(plan, "00000000-0000-4000-8000-0000000a11c0")))
    golden(DATA / case / "plan.json", summary(plan))
    assert max(pod_bytes(plan).values()) < Limits().max_rendered_pod_bytes


def summary(plan: JobPlan) -> dict[str, Any]:
    """What of a plan its objects do not show."""
    return {
        "rules": [
            {"name": rule.name, "outcome": rule.outcome, "quantifier": rule.quantifier, "ranks": sorted(rule.ranks)}
            for rule in plan.rules
        ],
        "cleanUp": plan.clean_up,
        "restarts": {name: [restart.policy, restart.limit] for name, restart in plan.restarts.items()},
        "deadlines": [plan.active_deadline, plan.pending_deadline, plan.ttl_after_finished],
        "elastic": [task.name for task in plan.tasks if task.elastic],
        "spare": [name for names in plan.spare_pods for name in names.names],
        "missingScheduler": plan.missing_scheduler,
    }


def container(plan: JobPlan, role: str, index: int = 0) -> Manifest:
    found: Manifest = plan.replicas[Rank(role, 0)].template["spec"]["containers"][index]
    return found


def env(plan: JobPlan, role: str) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container(plan, role)["env"]}


@pytest.mark.parametrize(
    ("entrypoint", "command"),
    [
        ("", ["default"]),
        ("python train.py", ["python", "train.py"]),
        ("python  train.py", ["python", "", "train.py"]),
        (" python train.py", ["python", "train.py"]),
        ("  python -c 'print( 1)' ", ["python", "-c", "print( 1)"]),
        (" ", ["default"]),
        ("python -c 'import sys; print(1)'", ["python", "-c", "import sys; print(1)"]),
        ('sh -c "a  b"', ["sh", "-c", "a  b"]),
        ("python train.py --name it's", ["python", "train.py", "--name", "it's"]),
        ("a\\ b", ["a\\", "b"]),
    ],
)
def test_an_entrypoint_is_split_at_spaces_and_with_quotes_as_by_a_shell(entrypoint: str, command: list[str]) -> None:
    assert command_of(entrypoint, ["default"]) == command


@pytest.mark.parametrize(
    ("tolerant", "role", "command"),
    [
        (True, "pserver", "start_new_pserver"),
        (False, "pserver", "start_pserver"),
        (True, "trainer", "start_new_trainer"),
        (False, "trainer", "start_trainer"),
    ],
)
def test_without_an_entrypoint_the_image_starts_itself(role: str, command: str, *, tolerant: bool) -> None:
    plan = plan_of(changed("local", local_job=False, fault_tolerant=tolerant, pserver={"min-instance": 1}))
    assert container(plan, role)["command"] == ["paddle_k8s", command]


PORTS = {"port": 100, "trainer_port": 200, "trainer_ports_num": 2}


@pytest.mark.parametrize(
    ("spec", "pserver", "trainer"),
    [
        ({}, [100, 101], []),
        ({"ports_num": 2, "ports_num_for_sparse": 3}, [100, 101, 102, 103, 104], []),
        ({"is_nccl": True}, None, [100, 101]),
        ({"local_job": True}, None, []),
        ({"frame_work": {"name": "paddle", "type": "multi"}}, [100, 101], []),
        ({"frame_work": {"name": "tensorflow", "type": "multi"}}, [100, 101], [200, 201]),
        ({"frame_work": {"name": "paddle", "type": "nccl2"}}, None, [200, 201]),
        ({"frame_work": {"name": "tensorflow", "type": "local"}}, None, []),
        ({"frame_work": {"name": "paddle", "type": "multi"}, "is_nccl": True, "local_job": True}, [100, 101], []),
    ],
)
def test_the_ports_of_each_role(spec: dict[str, Any], pserver: list[int] | None, trainer: list[int]) -> None:
    plan = plan_of(changed("local", **({"local_job": False, "pserver": {"min-instance": 1}} | PORTS | spec)))
    ports = {role: [port["containerPort"] for port in container(plan, role).get("ports", [])] for role in plan.restarts}
    assert ports == {"trainer": trainer} | ({} if pserver is None else {"pserver": pserver})
    assert all(
        port["name"] == f"jobport-{port['containerPort']}" for port in container(plan, "trainer").get("ports", [])
    )


def test_a_variable_of_the_user_replaces_one_of_the_kind() -> None:
    variables = container(plan_of(load("everything")), "trainer")["env"]
    assert [one for one in variables if one["name"] == "TRAINERS"] == [{"name": "TRAINERS", "value": "7"}]


def test_counts_in_the_environment_do_not_follow_the_size() -> None:
    resized = KIND.resize(KIND.read(accepted(load("example_job"))), {"trainer": 5}).manifest
    before, after = (
        KIND.plan(KIND.read(stored), identity(stored), resumed=False, site=SITE)
        for stored in (accepted(load("example_job")), resized)
    )
    assert len(after.replicas) == len(before.replicas) + 3
    assert before.replicas[Rank("trainer", 1)].template == after.replicas[Rank("trainer", 4)].template
    assert after.replicas[Rank("trainer", 4)].labels["research/examplejob-trainer-idx"] == "4"
    assert after.spare_pods == (NameRange("pod", "examplejob-trainer-5"),)
    assert after.hosts is not None
    assert len(after.hosts.hosts["trainer"]) == 5
    assert {key: before.replicas[key].global_rank for key in before.replicas}.items() <= {
        key: after.replicas[key].global_rank for key in after.replicas
    }.items()


def test_a_pserver_without_pull_secrets_has_the_trainers() -> None:
    secrets = {role: [{"name": f"for-{role}"}] for role in ("pserver", "trainer")}
    given = {"trainer": {"imagePullSecrets": secrets["trainer"]}}
    own = {"pserver": {"min-instance": 1, "imagePullSecrets": secrets["pserver"]}}
    for spec, expected in ((given | {"pserver": {"min-instance": 1}}, "trainer"), (given | own, "pserver")):
        plan = plan_of(changed("local", local_job=False, **spec))
        pod = plan.replicas[Rank("pserver", 0)].template["spec"]
        assert pod["imagePullSecrets"] == secrets[expected]


def test_a_masters_resources_are_fixed_and_its_envs_unused() -> None:
    master = {"resources": {"limits": {"cpu": "9"}}, "envs": {"A": "b"}, "etcd-endpoint": "http://elsewhere"}
    given, plain = (plan_of(changed("example_job", **spec)) for spec in ({"master": master}, {}))
    assert given.replicas[Rank("master", 0)].template == plain.replicas[Rank("master", 0)].template
    assert container(given, "master")["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_the_rules_cover_the_present_trainers() -> None:
    """Upstream counted failures against the trainers of the beginning (cloud issue 411)."""
    stored = KIND.resize(KIND.read(accepted(load("example_job"))), {"trainer": 4}).manifest
    plan = KIND.plan(KIND.read(stored), identity(stored), resumed=False, site=SITE)
    wanted = {Rank("trainer", rank) for rank in range(4)}
    assert [rule.ranks for rule in plan.rules if rule.name.startswith("trainers")] == [wanted, wanted]


@pytest.mark.parametrize(
    ("resources", "gpu", "count"),
    [
        ({}, "0", "0"),
        ({"requests": {"cpu": "200m"}}, "0", "1"),
        ({"limits": {"cpu": 2}}, "0", "2"),
        ({"requests": {"cpu": 3}, "limits": {"cpu": 8, "nvidia.com/gpu": 1}}, "1", "1"),
        (
            {"requests": {"alpha.kubernetes.io/nvidia-gpu": 4}, "limits": {"alpha.kubernetes.io/nvidia-gpu": 4}},
            "1",
            "4",
        ),
    ],
)
def test_devices_of_a_trainer(resources: Manifest, gpu: str, count: str) -> None:
    values = env(plan_of(changed("local", trainer={"resources": resources})), "trainer")
    assert (values["PADDLE_INIT_USE_GPU"], values["PADDLE_INIT_TRAINER_COUNT"]) == (gpu, count)


@pytest.mark.parametrize(
    ("site", "schedulers", "missing"),
    [
        (Site(), {"master": None, "pserver": None, "trainer": None}, "kube-batch"),
        (Site(schedulers={"volcano": "v"}), {"master": None, "pserver": "v", "trainer": "v"}, "kube-batch"),
        (Site(schedulers={"volcano": "v", "kube-batch": "k"}), {"master": "k", "pserver": "v", "trainer": "v"}, None),
    ],
)
def test_the_master_has_a_scheduler_of_its_own(site: Site, schedulers: dict[str, Any], missing: str | None) -> None:
    plan = plan_of(load("everything"), site)
    found = {role: plan.replicas[Rank(role, 0)].template["spec"].get("schedulerName") for role in plan.restarts}
    assert found == schedulers
    assert plan.missing_scheduler == missing


@pytest.mark.parametrize(("limit", "restarts"), [(5, 4), (1, 0), (0, 0)])
def test_a_pserver_may_exit_one_time_less_than_the_limit(limit: int, restarts: int) -> None:
    plan = plan_of(load("example_job"), Site(pserver_restart_limit=limit))
    assert plan.restarts["pserver"].limit == restarts
    assert plan.restarts["master"].limit is None
    assert plan.restarts["trainer"].policy is RestartPolicy.NEVER


def test_auto_clean_deletes_all_pods_and_the_default_only_running_ones() -> None:
    assert plan_of(load("local"), Site(auto_clean=True)).clean_up is CleanUpPolicy.ALL
    assert plan_of(load("local"), Site()).clean_up is CleanUpPolicy.UNFINISHED


def test_the_shorter_of_walltime_and_annotation_counts() -> None:
    manifest = load("everything")
    assert plan_of(manifest).active_deadline == 3600
    manifest["metadata"]["annotations"]["jobgate.dev/active-deadline-seconds"] = "0"
    assert plan_of(manifest).active_deadline == 0
    assert plan_of(load("local")).active_deadline is None


@pytest.mark.parametrize(("sent", "size", "expected"), [((2, 6), 4, 4), ((5, 6), 4, 5), ((1, 3), 4, 3), ((2, 2), 4, 2)])
def test_a_size_stays_within_the_bounds_of_an_edit(sent: tuple[int, int], size: int, expected: int) -> None:
    stored = KIND.resize(KIND.read(accepted(load("example_job"))), {"trainer": size}).manifest
    edited = load("example_job")
    edited["spec"]["trainer"] |= {"min-instance": sent[0], "max-instance": sent[1]}
    new = KIND.accept(edited, Limits(), replace(GIVEN, stored=stored)).manifest
    assert new["assigned"] == {"trainers": expected}
    assert not KIND.changes(stored, new)


def test_what_may_be_scaled() -> None:
    stored = accepted(load("example_job"))
    assert KIND.scaling(KIND.read(stored)) == Scaling(
        sizes={"trainer": 2}, bounds={"trainer": (2, 6)}, total=(2, 6), autoscaled="trainer"
    )
    fixed = accepted(load("kube_batch"))
    assert KIND.scaling(KIND.read(fixed)) is None
    with pytest.raises(Conflict):
        KIND.resize(KIND.read(fixed), {"trainer": 2})


def test_the_names_of_future_trainers_are_reserved() -> None:
    names = reserved(plan_of(load("example_job")))
    assert ("pod", "examplejob-trainer-5") in names
    assert {("service", "examplejob"), ("configmap", "examplejob-hosts")} <= set(names)


@pytest.mark.parametrize("version", ["v1alpha1", "v1"])
def test_both_api_versions_are_accepted(version: str) -> None:
    assert isinstance(registry.find(f"paddlepaddle.org/{version}", "TrainingJob"), TrainingJobKind)


def test_what_may_not_be_changed() -> None:
    stored, new = accepted(load("example_job")), accepted(changed("example_job", passes=7))
    assert [error.pointer for error in KIND.changes(stored, new)] == ["/spec/passes"]
