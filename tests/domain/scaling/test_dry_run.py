"""The vectors of upstream's autoscaler, and a case for each of its faults that is corrected here."""

from typing import Any

import pytest

from app.domain.scaling.dry_run import dry_run
from app.domain.scaling.values import Excuse, Inventory, ResourceAmount, ScalableJob, ScalingDecision, Verdict
from app.domain.vocabulary import JobPhase
from tests.domain.scaling.cases import a_cluster, a_job, a_node, amount

MEMORY = 1_000  # more than anybody in these cases asks for


def decided(
    inventory: Inventory, *jobs: ScalableJob, load: float = 1.0, pending: bool = False
) -> list[ScalingDecision]:
    return list(dry_run(inventory, jobs, pending=pending, max_load=load).decisions)


def sizes(inventory: Inventory, *jobs: ScalableJob, load: float = 1.0, pending: bool = False) -> dict[str, int]:
    return {found.name: found.to_replicas for found in decided(inventory, *jobs, load=load, pending=pending)}


@pytest.mark.parametrize(
    ("job", "total", "used", "load", "expected"),
    [
        pytest.param({}, 4000, 1000, 1.0, 3, id="grows to its most"),
        pytest.param({}, 3000, 1000, 0.8, 2, id="grows to the load"),
        pytest.param({"size": 3}, 3000, 3000, 0.8, 2, id="shrinks to the load"),
        pytest.param({"size": 6}, 99_000, 6000, 1.0, 3, id="shrinks to its most, one at a time"),
        pytest.param({"size": 3}, 3000, 3000, 1.0, 3, id="stays where all fits"),
        pytest.param({"size": 1}, 3000, 3000, 0.5, 1, id="never below its least"),
        pytest.param({"need": amount(cpu=1000, memory=100)}, 9000, 1000, 1.0, 3, id="memory is there"),
        pytest.param({"need": amount(cpu=1000, memory=600)}, 9000, 1000, 1.0, 2, id="memory is there for one more"),
        pytest.param({"need": amount()}, 1000, 1000, 1.0, 3, id="what asks for nothing grows"),
    ],
)
def test_a_single_job(job: dict[str, Any], total: int, used: int, load: float, expected: int) -> None:
    cluster = a_cluster(amount(cpu=total, memory=MEMORY), amount(cpu=used))
    assert sizes(cluster, a_job(**job), load=load) == {"a": expected}


@pytest.mark.parametrize(
    ("needs", "total", "expected"),
    [
        pytest.param({"a": amount(cpu=2), "b": amount(cpu=1, gpu=1)}, amount(cpu=2, gpu=9), "a", id="less GPU first"),
        pytest.param({"a": amount(cpu=2), "b": amount(cpu=1)}, amount(cpu=2), "b", id="then less CPU"),
        pytest.param(
            {"a": amount(cpu=1, memory=2), "b": amount(cpu=1, memory=1)}, amount(cpu=1, memory=9), "b", id="then memory"
        ),
        pytest.param({"b": amount(cpu=1), "a": amount(cpu=1)}, amount(cpu=1), "a", id="then by name"),
    ],
)
def test_the_smaller_of_equally_fulfilled_jobs_grows_first(needs: dict[str, Any], total: Any, expected: str) -> None:
    jobs = [a_job(name, bounds=(1, 2), need=need) for name, need in needs.items()]
    grown = sizes(a_cluster(total, amount()), *jobs)
    assert [name for name, size in grown.items() if size == 2] == [expected]


def test_the_least_fulfilled_grows_first() -> None:
    jobs = [a_job("a", 8, (0, 10)), a_job("b", 1, (0, 10)), a_job("c", 5, (0, 10))]
    cluster = a_cluster(amount(cpu=15_000), amount(cpu=14_000))
    assert sizes(cluster, *jobs) == {"a": 8, "b": 2, "c": 5}


def test_the_most_fulfilled_shrinks_first() -> None:
    jobs = [a_job("a", 8, (0, 10)), a_job("b", 1, (0, 10)), a_job("c", 5, (0, 10))]
    cluster = a_cluster(amount(cpu=13_000), amount(cpu=14_000))
    assert sizes(cluster, *jobs) == {"a": 7, "b": 1, "c": 5}


def test_corrected_a_size_beyond_the_most_comes_down_by_steps_and_not_below_it() -> None:
    """Upstream's step up answered max - planned, which was charged again and again (its issue 450)."""
    job = a_job(size=600, bounds=(1, 3))
    assert sizes(a_cluster(amount(cpu=900_000), amount(cpu=600_000)), job) == {"a": 3}


def test_corrected_the_order_follows_what_is_planned() -> None:
    """Upstream sorted by the sizes before the run, so that `a` would have come first in the second round too."""
    jobs = [a_job("a", 0, (0, 2)), a_job("b", 1, (0, 10))]
    cluster = a_cluster(amount(cpu=4_000), amount(cpu=1_000))
    assert sizes(cluster, *jobs) == {"a": 1, "b": 3}


def test_corrected_totals_do_not_count_where_no_node_fits() -> None:
    """Upstream's issue 465: 8 CPUs were free in all, and the pods stayed pending for ever."""
    nodes = [a_node(f"n{index}", amount(cpu=900, memory=MEMORY)) for index in range(9)]
    (found,) = decided(a_cluster(amount(cpu=9_000, memory=MEMORY), amount(), *nodes), a_job())
    assert (found.to_replicas, found.verdict) == (1, Verdict.NO_NODE_FITS)
    assert found.message == "stays at 1: no node has 1000m CPU free"


def test_corrected_a_place_is_given_away_once() -> None:
    nodes = [a_node("n1", amount(cpu=1500)), a_node("n2", amount(cpu=1000))]
    cluster = a_cluster(amount(cpu=99_000), amount(), *nodes)
    jobs = [a_job("a", 1, (1, 9)), a_job("b", 1, (1, 9)), a_job("c", 1, (1, 9))]
    assert sizes(cluster, *jobs) == {"a": 2, "b": 2, "c": 1}


def test_corrected_a_node_must_have_the_gpus_too() -> None:
    job = a_job(need=amount(cpu=100, gpu=2))
    nodes = [a_node("n1", amount(cpu=9000, gpu=1)), a_node("n2", amount(cpu=9000, gpu=1))]
    (found,) = decided(a_cluster(amount(cpu=18_000, gpu=9), amount(), *nodes), job)
    assert found.message == "stays at 1: no node has 100m CPU and 2 GPU free"


def test_corrected_memory_is_filled_to_the_load_and_so_the_run_ends() -> None:
    """Upstream grew to the whole memory and shrank again to the load, without an end."""
    job = a_job(need=amount(cpu=1, memory=200))
    assert sizes(a_cluster(amount(cpu=999, memory=1000), amount(memory=400)), job, load=0.5) == {"a": 1}


def test_corrected_gpus_may_be_used_wholly() -> None:
    """Upstream grew to the last GPU and shrank again to the load."""
    job = a_job(need=amount(cpu=1, gpu=1), bounds=(1, 99))
    assert sizes(a_cluster(amount(cpu=999, gpu=8), amount(gpu=1)), job, load=0.5) == {"a": 8}


def test_corrected_only_jobs_that_use_what_is_short_shrink() -> None:
    jobs = [a_job("cpu", 3), a_job("gpu", 3, need=amount(cpu=100, gpu=1))]
    cluster = a_cluster(amount(cpu=99_000, gpu=4), amount(cpu=3300, gpu=5), a_node(slots=0))
    assert sizes(cluster, *jobs) == {"cpu": 3, "gpu": 2}


@pytest.mark.parametrize(
    ("short", "message"),
    [
        (amount(cpu=3000), "pods request more than 0.8 of the CPU of the cluster"),
        (amount(memory=1000), "pods request more than 0.8 of the memory of the cluster"),
        (amount(gpu=9), "pods request more GPUs than the cluster has"),
    ],
    ids=["CPU", "memory", "GPU"],
)
def test_only_jobs_that_request_a_scarce_resource_are_scaled_down(short: ResourceAmount, message: str) -> None:
    needs = {"cpu": amount(cpu=1000), "memory": amount(memory=400), "gpu": amount(gpu=1)}
    (lacking,) = (name for name in needs if getattr(short, name))
    jobs = [a_job(name, 3, need=need) for name, need in needs.items()]
    found = decided(a_cluster(amount(cpu=3000, memory=1000, gpu=8), short, a_node(slots=0)), *jobs, load=0.8)
    assert {one.name: one.message for one in found if one.changes} == {lacking: f"shrinks from 3 to 2: {message}"}


def test_waiting_pods_make_running_jobs_shrink() -> None:
    """They are in the totals, whoever they belong to."""
    jobs = [a_job("a", 3), a_job("b", 2)]
    cluster = a_cluster(amount(cpu=5_000), amount(cpu=7_000), a_node(free=amount()))
    assert sizes(cluster, *jobs, pending=True) == {"a": 2, "b": 1}


@pytest.mark.parametrize("closed", ["it is cordoned", "it is not ready"])
def test_a_closed_node_takes_nothing(closed: str) -> None:
    cluster = a_cluster(amount(cpu=9000), amount(), a_node(closed=closed))
    assert sizes(cluster, a_job()) == {"a": 1}


def test_a_node_takes_as_many_pods_as_it_has_places() -> None:
    assert sizes(a_cluster(amount(cpu=9000), amount(), a_node(slots=1)), a_job()) == {"a": 2}


def test_a_node_must_have_the_labels_of_the_node_selector() -> None:
    nodes = [a_node("n1"), a_node("n2", amount(cpu=1000), labels={"disk": "ssd"})]
    (found,) = decided(a_cluster(amount(cpu=99_000), amount(), *nodes), a_job(selector={"disk": "ssd"}))
    assert found.to_replicas == 2
    assert found.message == "grows from 1 to 2; then no node with the labels disk=ssd has 1000m CPU free"


@pytest.mark.parametrize(
    ("job", "verdict", "message"),
    [
        pytest.param({"size": 3}, Verdict.AT_MAX, "stays at 3: 3 is its most", id="at its most"),
        pytest.param(
            {"bounds": (1, 9)},
            Verdict.GROWS,
            "grows from 1 to 2; then one more would request more than 0.8 of the CPU of the cluster",
            id="grows",
        ),
        pytest.param(
            {"need": amount(memory=900)},
            Verdict.MEMORY_AT_LOAD,
            "stays at 1: one more would request more than 0.8 of the memory of the cluster",
            id="memory",
        ),
        pytest.param(
            {"need": amount(gpu=1)},
            Verdict.GPU_FULL,
            "stays at 1: one more would request more GPUs than the cluster has",
            id="gpu",
        ),
        pytest.param(
            {"bounds": (3, 3)}, Verdict.FIXED_SIZE, "stays at 1: its least and its most are both 3", id="not elastic"
        ),
        pytest.param(
            {"phase": JobPhase.CREATING},
            Verdict.NOT_RUNNING,
            "stays at 1: the job is Creating, and no job waits for room",
            id="not running",
        ),
        pytest.param(
            {"excuse": Excuse(verdict=Verdict.OPTED_OUT, message="the annotation says so")},
            Verdict.OPTED_OUT,
            "stays at 1: the annotation says so",
            id="opted out",
        ),
    ],
)
def test_every_decision_has_a_reason(job: dict[str, Any], verdict: Verdict, message: str) -> None:
    cluster = a_cluster(amount(cpu=3000, memory=1000), amount(cpu=1000))
    (found,) = decided(cluster, a_job(**job), load=0.8)
    assert (found.verdict, found.message) == (verdict, message)


def test_a_scale_down_has_a_reason() -> None:
    (found,) = decided(a_cluster(amount(cpu=3000), amount(cpu=3000)), a_job(size=3), load=0.8)
    assert found.verdict is Verdict.SHRINKS
    assert found.message == "shrinks from 3 to 2: pods request more than 0.8 of the CPU of the cluster"


def test_a_job_that_is_not_running_is_resized_while_another_job_waits() -> None:
    cluster = a_cluster(amount(cpu=3000), amount(cpu=4000))
    job = a_job(size=3, phase=JobPhase.SCALING)
    assert sizes(cluster, job) == {"a": 3}
    assert sizes(cluster, job, pending=True) == {"a": 2}


@pytest.mark.parametrize(("phase", "size"), [(JobPhase.PENDING, 4), (JobPhase.QUEUED, 1), (JobPhase.SCALING, 1)])
def test_a_job_that_may_wait_for_quota_does_not_grow(phase: JobPhase, size: int) -> None:
    cluster = a_cluster(amount(cpu=9000), amount())
    assert sizes(cluster, a_job(bounds=(1, 4), phase=phase), pending=True) == {"a": size}


def test_decisions_are_in_the_order_of_the_jobs() -> None:
    jobs = [a_job("z"), a_job("m", bounds=(1, 1)), a_job("a")]
    assert list(sizes(a_cluster(amount(cpu=9000), amount()), *jobs)) == ["z", "m", "a"]


@pytest.mark.parametrize(
    ("bounds", "size", "expected"),
    [
        ((1, 2), 2, 1),
        ((1, 2), 1, 0),
        ((1, 3), 2, 0.5),
        ((1, 1), 1, 1),
        ((2, 2), 9, 1),
        ((1, 3), 5, 2),
        ((2, 4), 1, -0.5),
    ],
)
def test_fulfillment_is_that_of_upstream(bounds: tuple[int, int], size: int, expected: float) -> None:
    assert a_job(bounds=bounds).fulfillment(size) == expected
