"""A pod in one line: the cells that kube-apiserver prints."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devcluster.columns import columns_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RUNNING: dict[str, Any] = {"running": {"startedAt": "2026-11-21T11:59:00Z"}}
WAITS: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}


def ended(code: int = 0, reason: str = "", **more: Any) -> dict[str, Any]:
    named = {"reason": reason} if reason else {}
    return {"terminated": {"exitCode": code, "finishedAt": "2026-11-21T11:58:00Z", **named, **more}}


def status(name: str, state: dict[str, Any], *, ready: bool = False, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "ready": ready, "restartCount": restarts, **more}


def cells(pod: dict[str, Any]) -> dict[str, Any]:
    return {column.name: column.cell(pod, NOW) for column in columns_of("Pod")}


def pod(phase: str, *statuses: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **more: Any) -> dict[str, Any]:
    sidecars = more.pop("sidecars", ())
    inits = [{"name": s["name"], **({"restartPolicy": "Always"} if s["name"] in sidecars else {})} for s in init]
    conditions = [{"type": kind, "status": "True"} for kind in more.pop("holds", ())]
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-11-21T11:50:00Z", **more.pop("metadata", {})},
        "spec": {"containers": [{"name": s["name"]} for s in statuses] or [{"name": "a"}], "initContainers": inits},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init),
            **more,
        },
    }


GOING = {"deletionTimestamp": "2026-11-21T12:00:00Z"}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (pod("Pending"), "0/1 Pending 0"),
        (pod("Pending", status("a", WAITS)), "0/1 ContainerCreating 0"),
        (pod("Running", status("a", RUNNING, ready=True)), "1/1 Running 0"),
        (pod("Running", status("a", RUNNING), status("b", RUNNING, ready=True)), "1/2 Running 0"),
        (pod("Succeeded", status("a", ended(0, "Completed"))), "0/1 Completed 0"),
        (pod("Failed", status("a", ended(1, "Error"))), "0/1 Error 0"),
        (pod("Failed", status("a", ended(3))), "0/1 ExitCode:3 0"),
        (pod("Failed", status("a", ended(137, signal=9))), "0/1 Signal:9 0"),
        (pod("Failed", reason="Evicted"), "0/1 Evicted 0"),
        (
            pod("Running", status("a", RUNNING, ready=True), status("b", ended(0, "Completed")), holds=["Ready"]),
            "1/2 Running 0",
        ),
        (pod("Running", status("a", RUNNING, ready=True), status("b", ended(0, "Completed"))), "1/2 NotReady 0"),
        (pod("Running", status("a", ended(0, "Completed")), status("b", RUNNING, ready=True)), "1/2 NotReady 0"),
        (
            pod("Running", status("a", RUNNING, ready=True, restarts=2, lastState=ended(1))),
            "1/1 Running 2 (2m ago)",
        ),
        (pod("Running", status("a", RUNNING, ready=True, restarts=2)), "1/1 Running 2"),
        (pod("Running", status("a", RUNNING, ready=True), metadata=GOING), "1/1 Terminating 0"),
        (pod("Succeeded", status("a", ended(0, "Completed")), metadata=GOING), "0/1 Completed 0"),
        (pod("Running", status("a", RUNNING, ready=True), metadata=GOING, reason="NodeLost"), "1/1 Unknown 0"),
        (pod("Pending", init=(status("i", WAITS),)), "0/1 Init:ContainerCreating 0"),
        (pod("Pending", init=(status("i", RUNNING),)), "0/1 Init:0/1 0"),
        (pod("Pending", init=(status("i", ended(0)), status("j", {"waiting": {"reason": "PodInitializing"}}))),
         "0/1 Init:1/2 0"),
        (pod("Failed", init=(status("i", ended(1, "Error" ), restarts=1),)), "0/1 Init:Error 1"),
        (pod("Failed", init=(status("i", ended(7)),)), "0/1 Init:ExitCode:7 0"),
        (
            pod(
                "Running",
                status("a", RUNNING, ready=True),
                init=(status("s", RUNNING, ready=True, restarts=1, started=True),),
                sidecars=("s",),
            ),
            "2/2 Running 1",
        ),
        (pod("Pending", init=(status("s", RUNNING, started=False),), sidecars=("s",)), "0/2 Init:0/1 0"),
    ],
)  # fmt: skip
def test_ready_status_and_restarts(subject: dict[str, Any], expected: str) -> None:
    found = cells(subject)
    assert f"{found['Ready']} {found['Status']} {found['Restarts']}" == expected


def test_the_status_column_of_a_gated_pod() -> None:
    subject = pod("Pending")
    subject["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    assert cells(subject)["Status"] == "SchedulingGated"


def test_what_is_shown_where_there_is_something() -> None:
    subject = pod("Running", podIP="10.0.0.1", nominatedNodeName="m", holds=["x/ready"])
    subject["spec"] |= {"nodeName": "n", "readinessGates": [{"conditionType": "x/ready"}, {"conditionType": "y/ready"}]}
    found = cells(subject)
    assert (found["IP"], found["Node"], found["Nominated Node"], found["Readiness Gates"]) == (
        "10.0.0.1",
        "n",
        "m",
        "1/2",
    )
    assert found["Age"] == "10m"


def test_a_kind_without_columns_of_its_own_has_name_and_age() -> None:
    assert [column.name for column in columns_of("PodGroup")] == ["Name", "Age"]
