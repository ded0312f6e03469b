from typing import Any

import pytest

from devcluster.node.pods.admission import rejection
from devcluster.quantity import charged_amounts


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
    found = rejection(subject, [pod(container(cpu="1"))] * others, {"cpu": "2", "pods": "3"})
    assert (found and found[0]) == reason
