from typing import Any

import pytest

from devcluster.formats.quantity import charged_amounts
from devcluster.node.pods.admission import Ledger, rejection, sum_of


def container(policy: str | None = None, **requests: str) -> dict[str, Any]:
    return {"name": "c", "restartPolicy": policy, "resources": {"requests": requests}}


def pod(*containers: dict[str, Any], inits: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), "initContainers": list(inits)}}


@pytest.mark.parametrize(
    ("subject", "cpu"),
    [
        (pod(container(cpu="1"), container(cpu="500m")), 1.5),
        (pod(container(cpu="1"), inits=(container(cpu="3"),)), 3),
        (pod(container(cpu="1"), inits=(container("Always", cpu="1"), container(cpu="500m"))), 2),
        (pod(container(cpu="1"), inits=(container("Always", cpu="1"), container(cpu="3"))), 4),
    ],
)
def test_charged_amounts_of_a_pod(subject: dict[str, Any], cpu: float) -> None:
    assert charged_amounts(subject)["cpu"] == cpu


@pytest.mark.parametrize(
    ("subject", "others", "reason"),
    [
        (pod(container(cpu="1")), 0, None),
        (pod(container(cpu="3")), 0, "OutOfcpu"),
        (pod(container(cpu="1")), 2, "OutOfcpu"),
        (pod(container()), 3, "OutOfpods"),
        (pod(container(**{"nvidia.com/gpu": "1"})), 0, "OutOfnvidia.com/gpu"),
    ],
)
def test_rejection_names_the_resource_that_is_exceeded(
    subject: dict[str, Any], others: int, reason: str | None
) -> None:
    used = sum_of([pod(container(cpu="1"))] * others)
    found = rejection(subject, used, {"cpu": "2", "pods": "3"})
    assert (found and found[0]) == reason


def named(uid: str, cpu: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}, **pod(container(cpu=cpu))}


def test_the_ledger_has_the_sum_of_its_pods() -> None:
    pods = [named("a", "1"), named("b", "500m"), named("c", "2")]
    ledger = Ledger()
    for each in pods:
        ledger.charge(each)
    assert ledger.without("b") == sum_of([pods[0], pods[2]])
    assert ledger.without("unknown") == sum_of(pods)
    ledger.free("a")
    ledger.free("a")
    assert ledger.without("c") == sum_of([pods[1]])
    ledger.free("b")
    ledger.free("c")
    assert not any(ledger.without("").values())
