"""Reading and planning the manifests of stored jobs."""

from copy import deepcopy
from uuid import uuid4

import pytest

from app.domain.errors import Forbidden, InvalidManifest
from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes import labels
from app.domain.manifests.rendered import pod_bytes
from app.domain.manifests.workload import pod_manifest
from app.domain.plan import Manifest
from app.domain.planning import Draft, Planner
from app.domain.vocabulary import CleanUpPolicy
from tests.support.gateways.gateway import manifest

DEADLINE = "jobgate.dev/active-deadline-seconds"


def drafted(planner: Planner, document: Manifest) -> Draft:
    return planner.draft(document, "team-a", lambda: "x7k2m")


def test_a_generation_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planner, uid = Planner(installation="i"), uuid4()
    stored = drafted(planner, manifest("train")).manifest
    first = planner.read(stored, uid, 1)
    monkeypatch.setattr(GenericJobKind, "read", None)  # a second reading fails
    assert planner.read(deepcopy(stored), uid, 1).spec is first.spec


def test_the_specs_of_many_jobs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    planner, uids = Planner(installation="i"), [uuid4() for _ in range(1000)]
    stored = drafted(planner, manifest("train")).manifest
    first = [planner.read(stored, uid, 1).spec for uid in uids]
    monkeypatch.setattr(GenericJobKind, "read", None)
    assert [planner.read(stored, uid, 1).spec for uid in uids] == first


def test_edited_annotations_of_the_same_generation_are_planned() -> None:
    planner, uid = Planner(installation="i"), uuid4()
    stored = drafted(planner, manifest("train")).manifest
    planner.read(stored, uid, 1)
    edited = {**stored, "metadata": {**stored["metadata"], "annotations": {DEADLINE: "60"}}}
    assert planner.plan(planner.read(edited, uid, 1), str(uid)).active_deadline == 60


def test_clients_set_each_duration_by_an_annotation() -> None:
    durations = {
        "active_deadline": labels.ACTIVE_DEADLINE_SECONDS,
        "pending_deadline": labels.PENDING_DEADLINE_SECONDS,
        "start_deadline": labels.START_DEADLINE_SECONDS,
        "ttl_after_finished": labels.TTL_SECONDS_AFTER_FINISHED,
    }
    assert set(durations.values()) == labels.CLIENT_DURATIONS
    annotations = {key: str(seconds) for seconds, key in enumerate(durations.values(), 10)}
    document = manifest("train")
    document["metadata"]["annotations"] = annotations
    planner = Planner(installation="i")
    plan = planner.plan(drafted(planner, document).accepted, str(uuid4()))
    assert [getattr(plan, field) for field in durations] == [10, 11, 12, 13]


MAIN = "jobgate.dev/main-container"
CONTAINERS = [{"name": "agent", "image": "x"}, {"name": "train", "image": "x"}]
OTHERS = [{"name": "server", "image": "x"}]


@pytest.mark.parametrize(
    ("of_job", "of_template", "expected"),
    [
        (None, None, {"worker": None, "ps": None}),
        ("train", None, {"worker": "train", "ps": None}),
        (None, "agent", {"worker": "agent", "ps": None}),
        ("train", "agent", {"worker": "agent", "ps": None}),
        ("server", "agent", {"worker": "agent", "ps": "server"}),
    ],
)
def test_the_pods_name_their_main_container(
    of_job: str | None, of_template: str | None, expected: dict[str, str | None]
) -> None:
    document = manifest("train", replicas=1)
    (worker,) = document["spec"]["replicaSpecs"]
    worker["template"]["spec"]["containers"] = CONTAINERS
    ps = {**deepcopy(worker), "type": "ps"}
    ps["template"]["spec"]["containers"] = OTHERS
    document["spec"]["replicaSpecs"].append(ps)
    if of_job is not None:
        document["metadata"]["annotations"] = {MAIN: of_job}
    if of_template is not None:
        worker["template"]["metadata"] = {"annotations": {MAIN: of_template, "mine": "1"}}
    planner = Planner(installation="i")
    plan = planner.plan(drafted(planner, document).accepted, str(uuid4()))
    pods = {key.task: pod_manifest(plan, replica, 1, None)["metadata"] for key, replica in plan.replicas.items()}
    assert {task: pod.get("annotations", {}).get(MAIN) for task, pod in pods.items()} == expected
    assert (of_template is None) or pods["worker"]["annotations"]["mine"] == "1"


def test_a_generation_that_a_restored_database_reaches_again_is_read_again() -> None:
    planner, uid = Planner(installation="i"), uuid4()
    stored = drafted(planner, manifest("train")).manifest
    planner.read(stored, uid, 1)
    edited = deepcopy(stored)
    edited["spec"]["cleanUpPolicy"] = "All"
    assert planner.plan(planner.read(edited, uid, 1), str(uid)).clean_up is CleanUpPolicy.ALL


def test_another_generation_and_another_job_have_specs_of_their_own() -> None:
    planner, uid = Planner(installation="i"), uuid4()
    stored = drafted(planner, manifest("train")).manifest
    (task,) = stored["spec"]["replicaSpecs"]
    edited = {**stored, "spec": {**stored["spec"], "replicaSpecs": [{**task, "replicas": 7}]}}
    planner.read(stored, uid, 1)
    assert planner.read(edited, uid, 2).spec.replica_specs[0].replicas == 7
    assert planner.read(edited, uuid4(), 1).spec.replica_specs[0].replicas == 7


def test_the_default_limits_fit_together() -> None:
    limits = Limits()
    assert limits.max_list_replicas == 2 * limits.max_replicas
    assert limits.pods.installation == 2 * limits.pods.namespace
    assert limits.max_job_bytes == 2 * 1024**3 // 8  # an eighth of etcd's quota


@pytest.mark.parametrize(
    ("of_pod", "of_job", "codes"),
    [(0, 0, []), (-1, 0, ["TooLarge"]), (0, -1, ["JobTooLarge"]), (-1, -1, ["TooLarge", "JobTooLarge"])],
)
def test_the_objects_of_a_job_are_within_the_limits(of_pod: int, of_job: int, codes: list[str]) -> None:
    accepted = drafted(Planner(installation="i"), manifest("train", replicas=3)).accepted
    size = pod_bytes(Planner(installation="i").checked_plan(accepted, "u"))["worker"]
    limits = Limits(max_rendered_pod_bytes=size + of_pod, max_job_bytes=3 * size + of_job)
    found = []
    try:
        Planner(installation="i", limits=limits).checked_plan(accepted, "u")
    except InvalidManifest as refused:
        found = [error.code for error in refused.errors]
    assert found == codes


@pytest.mark.parametrize(("kind_of_request", "field"), [("submission", "replicasSpec"), ("edit", "replicaSpecs")])
def test_a_violation_of_the_policy_has_a_pointer_into_the_document_of_the_client(
    kind_of_request: str, field: str
) -> None:
    """A submission may have an older spelling. An edit is a change of the stored manifest, in the current one."""
    template = {"spec": {"hostNetwork": True, "containers": [{"name": "main", "image": "i"}]}}
    document = manifest("a")
    stored = drafted(Planner(installation="i"), document).manifest
    document["spec"] = {"replicasSpec": [{"type": "worker", "replicas": 1, "template": template}]}
    with pytest.raises(Forbidden) as refused:
        Planner(installation="i").draft(
            document, "team-a", lambda: "x", stored=stored if kind_of_request == "edit" else None
        )
    assert [error.pointer for error in refused.value.errors] == [f"/spec/{field}/0/template/spec/hostNetwork"]
