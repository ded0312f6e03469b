"""A pod is a job's by namespace, controller, name and uid; its labels only say where to look."""

from dataclasses import replace

import msgspec
import pytest

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import (
    Container,
    ContainerState,
    ContainerStatus,
    Metadata,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Running,
    Terminated,
)
from app.domain.plan import Rank
from app.domain.status.pods.ownership import Selection, is_owned, select_pods
from app.domain.status.records import Attempt, JobStatus, Recorded, Replica
from tests.support.plans import T0, W0, a_plan

ANCHOR = "anchor-uid"
PLAN = a_plan()
UID = PLAN.identity.uid
RECORDED = Recorded(status=JobStatus(), replicas={}, created_at=T0)


def owner(uid: str = ANCHOR, name: str = labels.anchor_name(UID), *, controller: bool = True) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="ConfigMap", name=name, uid=uid, controller=controller)


def pod(
    name: str = "job-worker-0",
    *,
    uid: str = "u",
    namespace: str = PLAN.identity.namespace,
    rank: str = "0",
    task: str = "worker",
    owned: OwnerReference | None = owner(),  # noqa: B008  it is frozen
) -> Pod:
    marks = {
        labels.INSTALLATION: PLAN.identity.installation,
        labels.JOB_UID: UID,
        labels.TASK: task,
        labels.TASK_RANK: rank,
        labels.ATTEMPT: "1",
    }
    owners = () if owned is None else (owned,)
    return Pod(metadata=Metadata(name=name, namespace=namespace, uid=uid, labels=marks, owner_references=owners))


def selected(one: Pod, recorded: Recorded = RECORDED, anchors: tuple[str, ...] | None = (ANCHOR,)) -> Selection:
    return select_pods([one], PLAN, recorded, anchors, lost_nodes=())


@pytest.mark.parametrize(
    ("one", "is_ours"),
    [
        (pod(), True),
        (pod("job-worker-7", rank="7"), True),  # a rank that a former size had
        (pod(namespace="elsewhere"), False),
        (pod("forged"), False),
        (pod("job-worker-1"), False),
        (pod("job-worker-7", rank="x"), False),
        (pod("job-ps-0", task="ps"), False),
        (pod(owned=None), False),
        (pod(owned=owner("another")), False),
        (pod(owned=owner(name="jobgate-another")), False),
        (pod(owned=owner(controller=False)), False),
    ],
)
def test_all_of_namespace_controller_and_name_must_agree(one: Pod, is_ours: bool) -> None:  # noqa: FBT001
    found = selected(one)
    assert (len(found.pods) == 1, found.undecided) == (is_ours, False)


def test_a_pod_of_another_namespace_hides_none() -> None:
    found = select_pods([pod(namespace="elsewhere"), pod()], PLAN, RECORDED, (ANCHOR,), lost_nodes=())
    assert [each.name for each in found.pods] == ["job-worker-0"]


def test_the_uid_on_record_is_the_attempt_whatever_its_labels_say() -> None:
    attempt = Attempt(number=3, pod_uid="u")
    recorded = replace(RECORDED, replicas={W0: Replica(key=W0, attempt=attempt)})
    (found,) = selected(pod(rank="1", task="ps", owned=None), recorded).pods
    assert (found.key, found.attempt) == (W0, 3)
    assert selected(pod(uid="other", owned=None), recorded).pods == ()


ENDED = {
    "train": ContainerState(terminated=Terminated(exit_code=3)),
    "mesh": ContainerState(running=Running()),
}


@pytest.mark.parametrize(
    ("annotated", "planned", "is_ended"),
    [
        ("train", "train", True),
        (None, "train", True),
        ("", "train", True),
        ("mesh", "train", True),
        ("another", "train", True),
        # An edit has removed the name from the job. The pod keeps it.
        ("train", None, True),
        (None, None, False),
        # The pod does not have the container that the plan names.
        (None, "another", False),
    ],
)
@pytest.mark.parametrize("on_record", [True, False])
def test_a_client_that_removes_the_annotation_does_not_hide_the_end_of_the_main_container(
    annotated: str | None, planned: str | None, *, is_ended: bool, on_record: bool
) -> None:
    one = pod(task="worker" if not on_record else "damaged")
    statuses = tuple(ContainerStatus(name=name, state=state) for name, state in ENDED.items())
    one = msgspec.structs.replace(
        one,
        metadata=msgspec.structs.replace(
            one.metadata, annotations={} if annotated is None else {labels.MAIN_CONTAINER: annotated}
        ),
        spec=PodSpec(node_name="n", restart_policy="Never", containers=tuple(Container(name=name) for name in ENDED)),
        status=PodStatus(phase="Running", container_statuses=statuses),
    )
    attempt = Replica(key=W0, attempt=Attempt(number=1, pod_uid="u"))
    recorded = replace(RECORDED, replicas={W0: attempt}) if on_record else RECORDED
    (found,) = select_pods([one], a_plan(main_container=planned), recorded, (ANCHOR,), lost_nodes=()).pods
    assert (found.ended, found.lingering) == (is_ended, is_ended)


def test_a_leaving_replica_is_known_by_its_recorded_name() -> None:
    recorded = replace(RECORDED, pod_names={Rank("ps", 0): "old-ps-0"})
    assert len(selected(pod("old-ps-0", task="ps"), recorded).pods) == 1


@pytest.mark.parametrize(
    ("one", "undecided"), [(pod(), True), (pod("forged"), False), (pod(namespace="b"), False), (pod(owned=None), False)]
)
def test_without_the_anchors_uid_only_what_may_be_the_jobs_is_undecided(one: Pod, undecided: bool) -> None:  # noqa: FBT001
    assert selected(one, anchors=None) == Selection(undecided=undecided)


def test_no_anchor_owns_nothing() -> None:
    assert selected(pod(), anchors=()) == Selection()
    assert not is_owned(pod(owned=None).metadata, UID, {""})


def test_an_owner_that_does_not_say_that_it_is_the_controller_is_none() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": labels.anchor_name(UID), "uid": ANCHOR}
    found = [msgspec.convert({"ownerReferences": [each]}, Metadata) for each in (owner, owner | {"controller": True})]
    assert [is_owned(metadata, UID, (ANCHOR,)) for metadata in found] == [False, True]
