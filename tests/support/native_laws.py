"""What must hold of every native status that is ever told, by kind."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from app.domain.vocabulary import ReplicaPhase
from tests.support.kind_world import KindWorld

Native = Mapping[str, Any]

PHASES: Final[Mapping[str, frozenset[str]]] = {
    "GenericJob": frozenset({"Pending", "Running", "Paused", "Resuming", "Succeeded", "Failed", "Unknown"}),
    "TrainingJob": frozenset({"", "Creating", "Running", "Scaling", "Succeed", "Failed", "Timeout"}),
    "MxJob": frozenset({"", "Creating", "Running", "CleanUp", "Failed", "Done"}),
    "DIJob": frozenset(
        {
            "Pending",
            "Starting",
            "Running",
            "Restarting",
            "Rescheduling",
            "Succeeded",
            "Failed",
            "Unknown",
        }
    ),
}
# What a kind's page says may still change once the job has ended: replicas are followed until they are gone.
FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "GenericJob": frozenset({"tasks", "aggregate"}),
    "TrainingJob": frozenset({"replica_statuses", "released"}),
    "MxJob": frozenset({"replicaStatuses", "phase"}),
    "DIJob": frozenset(),
}


def tell(world: KindWorld, told: Native) -> None:
    kind = world.dialect.kind
    assert msgspec.json.decode(msgspec.json.encode(told)) == told, "it is plain JSON"
    assert told["phase"] in PHASES[kind]
    LAWS[kind](world, told)
    if world.recorded.status.phase.is_terminal:
        lasting = {name: value for name, value in told.items() if name not in FOLLOWED[kind]}
        world.end = world.end or lasting
        assert lasting == world.end


def _sizes(world: KindWorld) -> dict[str, int]:
    return dict(Counter(key.task for key in world.plan.replicas))


def _generic_job(world: KindWorld, told: Native) -> None:
    sizes = _sizes(world)
    assert {task["type"]: len(task["replicas"]) for task in told["tasks"]} == sizes
    aggregate = world.recorded.status.aggregate
    assert told["aggregate"] == {phase.counter: aggregate.get(phase, 0) for phase in ReplicaPhase}
    held = {condition["type"] for condition in told["conditions"] if condition["status"] == "True"}
    assert len(told["conditions"]) == 6
    assert len(held & {"Completed", "Failed"}) == world.recorded.status.phase.is_terminal


def _training_job(world: KindWorld, told: Native) -> None:
    roles = {role["training_resource_type"]: sum(role["resource_states"].values()) for role in told["replica_statuses"]}
    assert roles == _sizes(world)
    records = told["scale_records"]["ScaleRecords"]
    assert len(records) == world.asked
    assert [record["status"] == "Unknown" for record in records].count(True) == world.asked - len(world.scaled)
    assert all(record.get("reason") for record in records if record["status"] == "False")
    assert told["startTime"] is not None or world.recorded.status.started_at is None
    if told["released"]:
        assert world.recorded.status.phase.is_terminal


def _mx_job(world: KindWorld, told: Native) -> None:
    roles = {role["Mx_replica_type"].lower(): sum(role["ReplicasStates"].values()) for role in told["replicaStatuses"]}
    assert roles == _sizes(world)
    assert len(told["conditions"]) <= 10
    times = [condition["transitionTime"] for condition in told["conditions"]]
    assert times == sorted(times)
    ended = world.recorded.status.phase.is_terminal
    assert (told["state"] in ("Succeeded", "Failed")) == ended
    assert told["phase"] not in ("Done", "Failed") or ended


def _di_job(world: KindWorld, told: Native) -> None:
    sizes = _sizes(world)
    assert told["replicas"] == sum(sizes.values())
    held = [condition["type"] for condition in told["conditions"] if condition["status"] == "True"]
    assert held == [told["phase"]]
    assert len({condition["type"] for condition in told["conditions"]}) == len(told["conditions"])
    ended = world.recorded.status.phase.is_terminal
    assert ("completionTimestamp" in told) == ended
    assert ("taskStatus" in told) != ended
    there = {key: replica for key, replica in world.recorded.replicas.items() if replica.attempt.pod_uid}
    for task, phases in told.get("taskStatus", {}).items():
        assert sum(phases.values()) <= sum(key.task == task for key in there)
    if world.recorded.status.observed_generation == world.generation:
        assert told["readyReplicas"] <= told["replicas"]


LAWS: Final[Mapping[str, Callable[[KindWorld, Native], None]]] = {
    "GenericJob": _generic_job,
    "TrainingJob": _training_job,
    "MxJob": _mx_job,
    "DIJob": _di_job,
}
