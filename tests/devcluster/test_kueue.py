"""What Kueue's admission decides by times, which tests of a whole cluster cannot choose."""

from decimal import Decimal
from typing import Any

import pytest

from devcluster.controllers.kueue.assignment import Quota
from devcluster.controllers.kueue.cohorts import QuotaNode
from devcluster.controllers.kueue.preemption import victims
from devcluster.controllers.kueue.workloads import queue_order
from devcluster.formats.quantity import render_canonical

NOON, ONE, TWO = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z", "2026-01-01T14:00:00Z"


def workload(name: str, priority: int, created: str, cpu: str = "1", *, evicted: bool = False) -> dict[str, Any]:
    """A Workload that has had its quota since it was created."""
    conditions = [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": created}]
    if evicted:
        conditions.append({"type": "Evicted", "status": "True"})
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": created},
        "spec": {"priority": priority, "podSets": [{"name": "main", "count": 1}]},
        "status": {"conditions": conditions, "admission": {"podSetAssignments": [assigned]}},
    }


def names(workloads: list[dict[str, Any]]) -> list[str]:
    return sorted(found["metadata"]["name"] for found in workloads)


def test_the_queue_is_ordered_by_priority_then_age() -> None:
    waiting = [workload("young", 1, TWO), workload("old", 1, NOON), workload("low", 0, NOON), workload("high", 2, TWO)]
    assert [found["metadata"]["name"] for found in sorted(waiting, key=queue_order)] == ["high", "old", "young", "low"]


@pytest.mark.parametrize(
    ("reserving", "needed", "expected"),
    [
        ([workload("old", 1, NOON), workload("young", 1, TWO), workload("low", 0, ONE)], 1, ["low"]),
        ([workload("old", 1, NOON), workload("young", 1, TWO)], 1, ["young"]),
        ([workload("low", 0, NOON), workload("leaves", 3, NOON, evicted=True)], 1, ["leaves"]),
        ([workload("low", 0, NOON), workload("large", 1, NOON, "2")], 2, ["large"]),
        ([workload("low", 0, NOON), workload("equal", 9, NOON, "4")], 2, []),
        ([], 1, []),
    ],
)
def test_victims(reserving: list[dict[str, Any]], needed: int, expected: list[str]) -> None:
    assigned = [found["status"]["admission"]["podSetAssignments"][0] for found in reserving]
    used = sum((Decimal(entry["resourceUsage"]["cpu"]) for entry in assigned), Decimal(0))
    limit = {"name": "cpu", "nominalQuota": str(used)}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [limit]}]}]
    node = QuotaNode({("f", "cpu"): limit}, used={("f", "cpu"): used})
    quota = Quota(groups, {"f": {}}, node, can_preempt=True)
    preemptor = workload("new", 9, TWO)
    assert names(victims(preemptor, {("f", "cpu"): Decimal(needed)}, reserving, quota)) == expected


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        ("cpu", "0", "0"),
        ("cpu", "10.5", "10500m"),
        ("cpu", "2000", "2k"),
        ("memory", "2097152000", "2000Mi"),
        ("memory", "3221225472", "3Gi"),
        ("memory", "6000000000", "5859375Ki"),
        ("example.com/gpu", "1024", "1024"),
    ],
)
def test_canonical_quantities(resource: str, value: str, expected: str) -> None:
    assert render_canonical(resource, Decimal(value)) == expected
