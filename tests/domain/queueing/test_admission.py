"""The places that replicas have in the admission of their job."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from app.domain.kubernetes.topology import (
    IndividualValues,
    LevelValues,
    PodCounts,
    TopologyAssignment,
    TopologySlice,
)
from app.domain.plan import Rank
from app.domain.queueing.admission import (
    Admitted,
    PodSetAdmission,
    Queueing,
    TaskAdmission,
    task_admissions,
    with_topology,
)


def a_topology(*nodes: str) -> TopologyAssignment:
    """One pod for each node."""
    part = TopologySlice(
        domain_count=len(nodes),
        pod_counts=PodCounts(universal=1),
        values_per_level=(LevelValues(individual=IndividualValues(roots=nodes)),),
    )
    return TopologyAssignment(levels=("host",), slices=(part,))


def a_placed(*nodes: str) -> Admitted:
    """An admission with a pod on each node."""
    return Admitted(pod_sets={"worker": PodSetAdmission(topology=a_topology(*nodes))}, counts={"worker": len(nodes)})


def nodes_of(admission: Mapping[str, TaskAdmission], *replicas: Rank) -> list[str]:
    return [admission[key.task].domain_of(key.rank)["host"] for key in replicas]


def in_worker(*tasks: str, size: int = 2, from_rank: int = 0) -> dict[str, TaskAdmission]:
    """Tasks that share the pod set `worker`."""
    task = TaskAdmission(pod_set="worker", from_rank=from_rank, size=size, pods=PodSetAdmission())
    return dict.fromkeys(tasks, task)


def test_replicas_have_the_nodes_of_their_topology_by_rank() -> None:
    replicas = [Rank(task, rank) for task in ("worker", "ps") for rank in (0, 1)]
    tasks = in_worker("worker", "ps")
    four = a_placed("a", "b", "c", "d")
    admission = task_admissions(four, tasks, [])
    assert nodes_of(admission, *replicas) == ["a", "b", "c", "d"]
    assert TaskAdmission(pod_set="p", size=1, pods=PodSetAdmission()).domain_of(0) == {}
    assert nodes_of(with_topology(admission, a_placed("a", "b", "c")), *replicas) == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("ended", "nodes", "expected"),
    [([0], "abcd", "bcd"), ([3, 0], "ab", "ab"), ([3, 0], "abc", "ab"), ([2, 1], "abc", "ac"), ([0, 1, 3], "ab", "a")],
)
def test_replicas_have_places_of_their_own_however_many_ended_ones_kueue_knew(
    ended: list[int], nodes: str, expected: str
) -> None:
    replicas = [Rank(task, rank) for task in ("worker", "ps") for rank in (0, 1)]
    found = task_admissions(a_placed(*nodes), in_worker("worker", "ps"), [replicas[number] for number in ended])
    unended = [key for number, key in enumerate(replicas) if number not in ended]
    assert nodes_of(found, *unended) == list(expected)


def test_the_places_in_a_further_workload_begin_with_its_first_replica() -> None:
    further = task_admissions(a_placed("a", "b"), in_worker("worker", from_rank=3, size=5), [Rank("worker", 0)])
    assert nodes_of(further, Rank("worker", 3), Rank("worker", 4)) == ["a", "b"]
    # What has ended of other Workloads has no places in this one.
    ended = [Rank("worker", 0), Rank("worker", 3), Rank("other", 4)]
    one = task_admissions(a_placed("a"), in_worker("worker", from_rank=3, size=5), ended)
    assert nodes_of(one, Rank("worker", 4)) == ["a"]
    both = task_admissions(a_placed("a", "b", "c", "d"), in_worker("worker", "ps", from_rank=3, size=5), [])
    assert nodes_of(both, Rank("worker", 3), Rank("ps", 3)) == ["a", "c"]


def test_another_node_in_place_of_a_lost_one_changes_the_admission() -> None:
    before = task_admissions(
        Admitted(pod_sets={"worker": PodSetAdmission(node_labels={"pool": "a"}, topology=a_topology("a", "b"))}),
        in_worker("worker"),
        [],
    )
    after = with_topology(before, a_placed("a", "c"))
    assert nodes_of(after, Rank("worker", 0), Rank("worker", 1)) == ["a", "c"]
    assert after["worker"].pods.node_labels == {"pool": "a"}
    assert with_topology(before, Admitted(pod_sets={})) == before


@pytest.mark.parametrize(
    ("message", "preemptor"),
    [
        (f"Preempted to accommodate a workload (UID: {UUID(int=1)}, JobUID: {UUID(int=2)}) due to", UUID(int=2)),
        (f"Preempted to accommodate a workload (UID: {UUID(int=1)}, JobUID: UNKNOWN)", None),
        ("Exceeded the PodsReady timeout ns/name", None),
        (f"JobUID: {UUID(int=2)}e", None),
    ],
)
def test_the_preemptor_is_the_job_that_kueue_names(message: str, preemptor: UUID | None) -> None:
    assert Queueing(name="team", evicted="Preempted", evicted_because=message).preemptor == preemptor
