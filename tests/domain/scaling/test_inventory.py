"""Nodes and pods to what is there and what is asked for."""

from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.objects import Metadata, Node, OwnerReference
from app.domain.scaling.inventory import MANY_SLOTS, Census, CountedPod
from app.domain.scaling.requests import allocatable_of, demand_of, request_of
from app.domain.scaling.values import Inventory, ResourceAmount
from tests.domain.scaling.cases import a_job, amount


def container(cpu: Any = None, memory: Any = None, *, gpu: Any = None, always: bool = False) -> dict[str, Any]:
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    found: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    if gpu is not None:
        found["resources"]["limits"] = {"nvidia.com/gpu": gpu}
    return found | ({"restartPolicy": "Always"} if always else {})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container("200m", "100Mi")]}, amount(200, 105), id="units round up"),
        pytest.param({"containers": [container(0, "1000000100m")]}, amount(0, 2), id="a part of a byte rounds up"),
        pytest.param({"containers": [container("1k")]}, amount(1_000_000), id="1k CPU"),
        pytest.param({"containers": [container("0.1m", 1)]}, amount(1, 1), id="the least of it"),
        pytest.param({"containers": [container(1, "1M"), container(0.5, "2M")]}, amount(1500, 3), id="containers add"),
        pytest.param(
            {"containers": [container(1)], "initContainers": [container(3), container(2)]},
            amount(3000),
            id="init containers run one after another",
        ),
        pytest.param(
            {"containers": [container(1, "9M")], "initContainers": [container("500m", "1M")]},
            amount(1000, 9),
            id="a small init container costs nothing",
        ),
        pytest.param(
            {"containers": [container(1)], "initContainers": [container(1, always=True), container(2)]},
            amount(3000),
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {"containers": [container(2)], "initContainers": [container(2), container(1, always=True)]},
            amount(3000),
            id="sidecars add to the containers",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1G"}}}]},
            amount(2000, 1000),
            id="a limit alone is a request",
        ),
        pytest.param({"containers": [container(1, gpu=2)]}, amount(1000, gpu=2), id="GPUs by their limits"),
        pytest.param(
            {"containers": [{"resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": "1", "amd.com/gpu": "1"}}}]},
            amount(gpu=2),
            id="GPUs of any make",
        ),
        pytest.param(
            {"containers": [container(1, "1M")], "resources": {"requests": {"cpu": "3"}}},
            amount(3000, 1),
            id="requests of the pod as a whole",
        ),
        pytest.param({"containers": [container(1)], "overhead": {"cpu": "250m"}}, amount(1250), id="overhead"),
        pytest.param({"containers": [container("much")]}, amount(), id="no quantity at all"),
        pytest.param({"containers": [{"resources": None}], "initContainers": None}, amount(), id="nulls"),
        pytest.param({"containers": [container("1e99")]}, amount(2**53), id="absurd"),
    ],
)
def test_what_a_pod_requests(spec: dict[str, Any], expected: ResourceAmount) -> None:
    assert request_of(demand_of(spec)) == expected


def a_node(name: str = "n1", *, ready: str = "True", **more: Any) -> Node:
    manifest = {
        "metadata": {"name": name, "labels": {"disk": "ssd", "zone": "a"}},
        "spec": more,
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"},
        },
    }
    return msgspec.convert(manifest, Node)


def a_pod(node: str = "", phase: str = "Running", **resources: Any) -> CountedPod:
    spec = {"nodeName": node, "containers": [container(**(resources or {"cpu": 1}))]}
    return msgspec.convert({"spec": spec, "status": {"phase": phase}}, CountedPod)


def census(nodes: list[Node], *pods: CountedPod, **more: Any) -> Inventory:
    counted = Census(nodes, **more)
    counted.count(pods)
    return counted.inventory()


def test_free_is_allocatable_less_requests() -> None:
    found = census([a_node()], a_pod("n1"), a_pod("n1", cpu="500m", memory="1G", gpu=1))
    (node,) = found.nodes
    assert (node.free, node.slots) == (amount(2500, 7589, 1), 8)
    assert (found.total, found.requested) == (amount(4000, 8589, 2), amount(1500, 1000, 1))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pods_request_nothing(phase: str) -> None:
    found = census([a_node()], a_pod("n1", phase), a_pod("n1"))
    assert (found.requested, found.nodes[0].slots) == (amount(1000), 9)


def test_a_part_of_a_byte_of_a_node_rounds_down() -> None:
    assert allocatable_of({"memory": "1999999999900m"}) == amount(0, 1999)


def test_unbound_pods_count_in_the_total_alone() -> None:
    found = census([a_node()], a_pod("", "Pending"))
    assert (found.requested, found.unbound_pods, found.nodes[0].free.cpu) == (amount(1000), 1, 4000)


@pytest.mark.parametrize(
    ("selector", "resources", "counts"),
    [
        ({}, {"cpu": 4}, True),
        ({}, {"cpu": 5}, False),
        ({}, {"memory": "9Gi"}, False),
        ({}, {"gpu": 3}, False),
        ({"disk": "ssd"}, {"cpu": 1}, True),
        ({"disk": "tape"}, {"cpu": 1}, False),
    ],
)
def test_an_unbound_pod_counts_only_if_an_empty_open_node_could_hold_it(
    selector: dict[str, str],
    resources: dict[str, Any],
    counts: bool,  # noqa: FBT001 - a table
) -> None:
    """Otherwise one such pod would shrink the jobs of all others, and would start no sooner."""
    spec = {"nodeSelector": selector, "containers": [container(**resources)]}
    pod = msgspec.convert({"spec": spec, "status": {"phase": "Pending"}}, CountedPod)
    nodes = [a_node(), a_node("closed", unschedulable=True)]
    nodes[1] = msgspec.structs.replace(nodes[1], metadata=Metadata(name="closed", labels={"disk": "tape"}))
    found = census(nodes, a_pod("n1"), pod)
    assert found.unbound_pods == 1
    assert found.requested == (amount(1000) + request_of(pod.spec) if counts else amount(1000))


def test_replicas_that_no_node_could_hold_do_not_count_before_they_have_pods() -> None:
    counted = Census([a_node()])
    large = a_job("large", size=3, need=amount(cpu=5000), settling=True)
    small = a_job("small", size=2, need=amount(cpu=500), settling=True)
    assert counted.inventory([large, small]).requested == amount(1000)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"ready": "Unknown"}, "it is not ready"),
        ({"unschedulable": True}, "it is cordoned"),
        ({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, "it has the taint gpu:NoSchedule"),
        ({"taints": [{"key": "old", "effect": "NoExecute"}]}, "it has the taint old:NoExecute"),
    ],
)
def test_a_closed_node_counts_neither_with_what_it_has_nor_with_what_it_runs(more: dict[str, Any], why: str) -> None:
    found = census([a_node("n1", **more), a_node("n2")], a_pod("n1"), a_pod("n2"))
    assert [node.closed for node in found.nodes] == [why, ""]
    assert (found.total.cpu, found.requested.cpu) == (4000, 1000)


def test_a_node_that_is_better_avoided_is_open() -> None:
    taint = {"key": "busy", "effect": "PreferNoSchedule"}
    assert census([a_node(taints=[taint])]).nodes[0].open


def leaving(pod: CountedPod, **metadata: Any) -> CountedPod:
    found = msgspec.convert({"deletionTimestamp": "2030-01-01T00:00:00Z"} | metadata, Metadata)
    return msgspec.structs.replace(pod, metadata=found)


def test_a_terminating_pod_occupies_its_node_and_does_not_count_in_the_total() -> None:
    found = census([a_node()], leaving(a_pod("n1")), a_pod("n1"))
    assert (found.requested.cpu, found.nodes[0].free.cpu) == (1000, 2000)


def of_job_a(pod: CountedPod) -> CountedPod:
    marks = {"jobgate.dev/job-uid": "a", "jobgate.dev/task": "trainer"}
    anchor = OwnerReference(kind="ConfigMap", name="jobgate-a", uid="x", controller=True)
    return msgspec.structs.replace(pod, metadata=Metadata(namespace="team", labels=marks, owner_references=(anchor,)))


def test_pods_beyond_the_size_of_a_job_do_not_count() -> None:
    counted = Census([a_node()])
    counted.count([of_job_a(a_pod("n1"))] * 3)
    found = counted.inventory([a_job("a", 1), a_job("b", 1)])
    assert (found.requested.cpu, found.nodes[0].free.cpu) == (1000, 1000)


@pytest.mark.parametrize(
    ("size", "bound", "unbound", "requested"),
    [
        pytest.param(1, 3, 0, 1000, id="the node has lost the label after their start"),
        pytest.param(1, 2, 1, 1000, id="one that no node could hold does not count, so it is not subtracted"),
        pytest.param(3, 2, 1, 2000, id="and the job does not lack it"),
        pytest.param(1, 0, 3, 0, id="none of them counts"),
    ],
)
@pytest.mark.parametrize("settling", [False, True])
@pytest.mark.parametrize("selector", [{}, {"disk": "tape"}], ids=["selected by the queue", "selected by the job"])
def test_what_a_job_has_beyond_its_size_is_subtracted_only_if_it_counts(
    size: int,
    bound: int,
    unbound: int,
    requested: int,
    settling: bool,  # noqa: FBT001 - a table
    selector: dict[str, str],
) -> None:
    waiting = a_pod("", "Pending")
    waiting = msgspec.structs.replace(
        waiting, spec=msgspec.structs.replace(waiting.spec, node_selector={"disk": "tape"})
    )
    counted = Census([a_node()])
    counted.count([of_job_a(a_pod("n1"))] * bound + [of_job_a(waiting)] * unbound)
    found = counted.inventory([a_job("a", size, selector=selector, settling=settling)])
    assert found.requested == amount(requested)


def test_pods_that_a_job_will_create_count_already() -> None:
    counted = Census([a_node()])
    found = counted.inventory([a_job("a", 2, settling=True), a_job("b", 2)])
    assert (found.requested.cpu, found.nodes[0].free.cpu) == (2000, 4000)


def test_pods_of_a_node_that_is_gone_do_not_count() -> None:
    assert census([a_node()], a_pod("gone")).requested == amount()


def test_only_labels_that_jobs_select_by_are_kept() -> None:
    assert census([a_node()], label_keys={"disk"}).nodes[0].labels == {"disk": "ssd"}


def test_a_node_that_does_not_count_its_pods_takes_many() -> None:
    node = Node(metadata=a_node().metadata)
    assert census([node]).nodes[0].slots == MANY_SLOTS


def test_the_inventory_has_the_observed_totals() -> None:
    assert census([], namespaces=("team-a",)).namespaces == ("team-a",)
