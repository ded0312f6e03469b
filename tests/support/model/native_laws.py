"""Checks of every native status, by kind."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from app.domain.vocabulary import JobPhase, ReplicaPhase
from tests.support.model.kind_world import KindWorld

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
# Fields that may still change after the end of the job, because replicas are followed until they are gone.
FOLLOWED: Final[Mapping[str, frozenset[str]]] = {
    "GenericJob": frozenset({"tasks", "aggregate"}),
    "TrainingJob": frozenset({"replica_statuses", "released"}),
    "MxJob": frozenset({"replicaStatuses", "phase"}),
    "DIJob": frozenset(),
}


def check_native_status(world: KindWorld, native: Native) -> None:
    kind = world.kind.name
    assert msgspec.json.decode(msgspec.json.encode(native)) == native, "the status is not plain JSON"
    assert native["phase"] in PHASES[kind]
    LAWS[kind](world, native)
    if world.recorded.status.phase.is_terminal:
        lasting = {name: value for name, value in native.items() if name not in FOLLOWED[kind]}
        world.end = world.end or lasting
        assert lasting == world.end


def _sizes(world: KindWorld) -> dict[str, int]:
    return dict(Counter(key.task for key in world.plan.replicas))


def _generic_job(world: KindWorld, native: Native) -> None:
    sizes = _sizes(world)
    assert {task["type"]: len(task["replicas"]) for task in native["tasks"]} == sizes
    aggregate = world.recorded.status.aggregate
    assert native["aggregate"] == {phase.lower(): aggregate.get(phase, 0) for phase in ReplicaPhase}
    held = {condition["type"] for condition in native["conditions"] if condition["status"] == "True"}
    assert len(native["conditions"]) == 6
    phase = world.recorded.status.phase
    assert ("Completed" in held) == phase.is_terminal
    assert ("Failed" in held) == (phase.is_terminal and phase is not JobPhase.SUCCEEDED)


def _training_job(world: KindWorld, native: Native) -> None:
    roles = {one["training_resource_type"]: sum(one["resource_states"].values()) for one in native["replica_statuses"]}
    assert roles == _sizes(world)
    records = native["scale_records"]["ScaleRecords"]
    assert len(records) == world.requested
    assert [record["status"] == "Unknown" for record in records].count(True) == world.requested - len(world.scaled)
    assert all(record.get("reason") for record in records if record["status"] == "False")
    assert native["startTime"] is not None or world.recorded.status.started_at is None
    if native["released"]:
        assert world.recorded.status.phase.is_terminal


def _mx_job(world: KindWorld, native: Native) -> None:
    roles = {one["Mx_replica_type"].lower(): sum(one["ReplicasStates"].values()) for one in native["replicaStatuses"]}
    assert roles == _sizes(world)
    assert len(native["conditions"]) <= 10
    times = [condition["transitionTime"] for condition in native["conditions"]]
    assert times == sorted(times)
    ended = world.recorded.status.phase.is_terminal
    assert (native["state"] in ("Succeeded", "Failed")) == ended
    assert native["phase"] not in ("Done", "Failed") or ended


def _di_job(world: KindWorld, native: Native) -> None:
    sizes = _sizes(world)
    assert native["replicas"] == sum(sizes.values())
    held = [condition["type"] for condition in native["conditions"] if condition["status"] == "True"]
    assert held == [native["phase"]]
    assert len({condition["type"] for condition in native["conditions"]}) == len(native["conditions"])
    ended = world.recorded.status.phase.is_terminal
    assert ("completionTimestamp" in native) == ended
    assert ("taskStatus" in native) != ended
    there = {key: replica for key, replica in world.recorded.replicas.items() if replica.attempt.pod_uid}
    for task, phases in native.get("taskStatus", {}).items():
        assert sum(phases.values()) <= sum(key.task == task for key in there)
    if world.recorded.status.observed_generation == world.generation:
        assert native["readyReplicas"] <= native["replicas"]


LAWS: Final[Mapping[str, Callable[[KindWorld, Native], None]]] = {
    "GenericJob": _generic_job,
    "TrainingJob": _training_job,
    "MxJob": _mx_job,
    "DIJob": _di_job,
}
