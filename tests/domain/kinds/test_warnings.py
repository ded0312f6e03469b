"""Warnings about valid manifests: fields that do not have the effect that their author may expect."""

from typing import Any

import pytest

from app.domain.plan import JobWarning
from app.domain.planning import Planner
from app.domain.vocabulary import WarningSource
from tests.support.gateways.gateway import manifest
from tests.support.kinds.every_kind import example

GENERIC = "/spec/replicaSpecs/0"
IGNORED = "has no effect: jobgate restarts replicas itself, with new pods whose restartPolicy is Never"


def warnings_of(document: dict[str, Any]) -> tuple[JobWarning, ...]:
    accepted = Planner(installation="i").draft(document, "team-a", lambda: "x7k2m").accepted
    return tuple(accepted.kind.warnings(document, accepted))


def generic(restart: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    document: dict[str, Any] = manifest("train")
    (task,) = document["spec"]["replicaSpecs"]
    task["template"]["spec"] |= pod
    if restart is not None:
        task["restartPolicy"] = restart
    return document


def spelled(policy: str) -> dict[str, Any]:
    """A manifest in the spelling of the older API documentation."""
    document = generic()
    (task,) = document["spec"].pop("replicaSpecs")
    document["spec"]["replicasSpec"] = [task | {"restartPolicy": policy}]
    return document


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        (generic(), []),
        (generic({"policy": "Never"}), []),
        (generic({"policy": "Always"}), []),
        (generic({"policy": "OnFailure", "limit": 1}), []),
        (generic({"policy": "OnFailure"}), [f"{GENERIC}/restartPolicy"]),
        (generic({"policy": "OnFailure", "limit": None}), [f"{GENERIC}/restartPolicy"]),
        # Without a policy, and with a limit of 0, its author expects no restarts.
        (generic({"policy": "OnFailure", "limit": 0}), []),
        (generic({}), []),
        (spelled("OnFailure"), ["/spec/replicasSpec/0/restartPolicy"]),
        (generic(restartPolicy="Never"), []),
        (generic(restartPolicy="OnFailure"), [f"{GENERIC}/template/spec/restartPolicy"]),
        (
            generic({"policy": "OnFailure"}, restartPolicy="Always"),
            [f"{GENERIC}/template/spec/restartPolicy", f"{GENERIC}/restartPolicy"],
        ),
    ],
)
def test_a_restart_policy_that_restarts_nothing_is_warned_about(document: dict[str, Any], pointers: list[str]) -> None:
    found = warnings_of(document)
    assert [(one.source, one.pointer) for one in found] == [(WarningSource.JOBGATE, pointer) for pointer in pointers]


@pytest.mark.parametrize(
    ("kind", "templates"), [("MxJob", "/spec/replicaSpecs/0/template"), ("DIJob", "/spec/tasks/0/template")]
)
def test_the_restart_policy_of_a_template_is_ignored_in_every_kind_with_templates(kind: str, templates: str) -> None:
    document = example(kind)
    owner = document["spec"]["tasks" if kind == "DIJob" else "replicaSpecs"][0]
    owner["template"]["spec"]["restartPolicy"] = "OnFailure"
    first = warnings_of(document)[0]
    assert (first.pointer, first.source) == (f"{templates}/spec/restartPolicy", WarningSource.JOBGATE)
    assert first.message == f"the restartPolicy OnFailure of the pod template {IGNORED}"
