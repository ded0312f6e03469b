"""The native status through whole lives, in tests/data/mx_job_native/<life>.json, and the tables of its words."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from typing_extensions import override

from app.domain.access.actors import Actor
from app.domain.kinds.job_kind import StatusFacts
from app.domain.kinds.mx_job.native import native_phase, native_state
from app.domain.plan import Rank
from app.domain.reconcile.values import Inputs
from app.domain.status.failures import summarize_failures
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Attempt, JobStatus, Replica, Transition
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase
from tests.domain.kinds.mx_job.test_golden import DATA, KIND, accepted, load, plan_of
from tests.support.model.cluster import World
from tests.support.model.pods import ModelPod
from tests.support.plans import T0, at
from tests.support.plugins.golden import Golden

MANIFEST = accepted(load("shipped_dist"))
SCHEDULER, SERVER_1, WORKER_0, WORKER_1 = (
    Rank("scheduler", 0),
    Rank("server", 1),
    Rank("worker", 0),
    Rank("worker", 1),
)


class Life(World):
    """A job of MANIFEST whose containers are called mxnet, and leave a message when they fail by themselves.

    `ends` is what else the cluster reports of a container, by its exit code.
    """

    ends: Mapping[int | None, Mapping[str, str]] = {1: {"message": "ValueError: bad data"}}

    @override
    def inputs(self) -> Inputs:
        inputs = super().inputs()
        pods = tuple(map(self._as_mxnet, inputs.observed.pods))
        return replace(inputs, observed=replace(inputs.observed, pods=pods))

    def _as_mxnet(self, pod: ObservedPod) -> ObservedPod:
        end: Mapping[str, Any] = self.ends.get(pod.exit_code, {})
        return replace(pod, containers=tuple(replace(one, name="mxnet", **end) for one in pod.containers))

    def settle(self) -> None:
        """Passes until nothing more is to be done, some seconds after what happened."""
        self.advance(5)
        for _ in range(20):
            if not self.reconcile().dirty:
                return
        raise AssertionError("the job does not come to rest")

    def pod(self, key: Rank) -> ModelPod:
        return next(pod for pod in self.pods.values() if pod.key == key)

    def move(self, *keys: Rank, code: int = 0) -> None:
        """One step for each of these pods; without keys, for all."""
        self.advance(5)
        for key in keys or list(self.plan.replicas):
            self.kubelet(self.pod(key), code)
        self.settle()

    def start(self) -> None:
        """Everything that waits is bound and started, once it is there."""
        self.advance(60)
        self.settle()
        for _ in range(2):
            waiting = (ReplicaPhase.CREATING, ReplicaPhase.PENDING)
            self.move(*[pod.key for pod in self.pods.values() if pod.phase in waiting])

    def drain(self, key: Rank) -> None:
        self.advance(5)
        self.evict(self.pod(key))
        self.settle()

    def cancel(self) -> None:
        self.intent = replace(self.intent, cancel=True, cancel_actor=Actor("alice"))
        self.settle()

    def find_again(self) -> None:
        """A new controller, which knows what Postgres and the cluster know."""
        self.restart_controller()
        self.settle()

    def facts(self) -> StatusFacts:
        return StatusFacts(
            status=self.recorded.status,
            replicas=list(self.recorded.replicas.values()),
            attempts=[(key.task, key.rank, attempt) for (key, _), attempt in self.attempts.items()],
            created_at=T0,
        )

    def native(self) -> dict[str, Any]:
        return KIND.native_status(KIND.read(MANIFEST), self.facts())


Moment = tuple[str, Callable[[Life], object]]

BEGIN: list[Moment] = [
    ("stored", Life.facts),
    ("pods are made", Life.settle),
    ("pods have nodes", Life.move),
    ("all run", Life.move),
]
LIVES: dict[str, list[Moment]] = {
    "recovered": [
        *BEGIN,
        ("a worker is killed: 137 is retried", lambda life: life.move(WORKER_1, code=137)),
        ("it runs again", Life.start),
        ("a server's node is drained", lambda life: life.drain(SERVER_1)),
        ("it runs again", Life.start),
        ("the workers are done", lambda life: life.move(WORKER_0, WORKER_1, Rank("worker", 2))),
        ("the scheduler is done, the servers are not", lambda life: life.move(SCHEDULER)),
        ("jobgate was restarted", Life.find_again),
    ],
    "failed": [
        *BEGIN,
        ("a worker fails by itself: 1 is for good", lambda life: life.move(WORKER_1, code=1)),
        ("jobgate was restarted", Life.find_again),
    ],
    "cancelled": [
        *BEGIN,
        ("somebody cancels", Life.cancel),
        ("the pods are gone", Life.move),
    ],
}


def alive() -> Life:
    return Life(plan=plan_of(MANIFEST))


@pytest.mark.parametrize("name", LIVES)
def test_a_life(name: str, golden: Golden) -> None:
    life = alive()
    story = []
    for moment, happens in LIVES[name]:
        happens(life)
        story.append({"moment": moment, "status": life.native()})
    golden(DATA.parent / "mx_job_native" / f"{name}.json", story)


def test_a_restart_of_jobgate_never_harms_a_finished_job() -> None:
    """Upstream answers one with "unexpected MxJob phase" and turns Done into Failed."""
    life = alive()
    life.settle()
    life.start()
    life.move(SCHEDULER)
    done = life.native()
    assert (done["phase"], done["state"]) == ("Done", "Succeeded")
    for _ in range(3):
        life.find_again()
        assert life.native() == done
        assert life.native() == KIND.native_status(KIND.read(MANIFEST), life.facts())


def test_a_restart_of_jobgate_never_harms_a_job_that_is_being_created() -> None:
    life = alive()
    life.reconcile(crash=True)
    assert life.native()["phase"] == "Creating"
    life.find_again()
    life.start()
    assert life.native()["phase"] == "Running"


@pytest.mark.parametrize(
    ("code", "end", "phase"),
    [
        (1, {"message": "bad data"}, "Done"),
        (127, {"message": "not found"}, "Done"),
        (128, {"message": "again"}, "Running"),
        (137, {"message": "killed"}, "Running"),
        (143, {"message": "asked to go"}, "Running"),
        (1, {}, "Running"),
        (1, {"message": "", "reason": "Error"}, "Running"),
        (137, {"reason": "OOMKilled"}, "Done"),
        (137, {"reason": "OOMKilled", "message": "killed"}, "Done"),
    ],
)
def test_which_exits_are_retried(code: int, end: dict[str, str], phase: str) -> None:
    life = alive()
    life.ends = {code: end}
    life.settle()
    life.start()
    life.move(WORKER_0, code=code)
    assert life.native()["phase"] == phase


def test_the_scheduler_decides_even_when_a_worker_has_failed() -> None:
    life = alive()
    life.settle()
    life.start()
    life.kubelet(life.pod(WORKER_0), 1)
    life.move(SCHEDULER)
    assert life.native()["state"] == "Succeeded"
    assert [role["state"] for role in life.native()["replicaStatuses"]] == ["Succeeded", "Running", "Failed"]


PHASES = [
    (JobPhase.QUEUED, "", "", "Unknown"),
    (JobPhase.CREATING, "", "Creating", "Unknown"),
    (JobPhase.PENDING, "", "Creating", "Unknown"),
    (JobPhase.RUNNING, "", "Running", "Running"),
    (JobPhase.RUNNING, Reason.CANCELLING, "CleanUp", "Running"),
    (JobPhase.SCALING, "", "Running", "Running"),
    (JobPhase.RESTARTING, "", "Running", "Running"),
    (JobPhase.PAUSED, "", "Running", "Running"),
    (JobPhase.RESUMING, "", "Running", "Running"),
    (JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, "Done", "Succeeded"),
    (JobPhase.FAILED, Reason.RULE_FULFILLED, "Done", "Failed"),
    (JobPhase.FAILED, Reason.REFUSED_BY_CLUSTER, "Failed", "Failed"),
    (JobPhase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "Failed", "Failed"),
    (JobPhase.CANCELLED, Reason.CANCELLED, "Failed", "Failed"),
    (JobPhase.UNKNOWN, Reason.NODE_LOST, "Running", "Unknown"),
]


@pytest.mark.parametrize(("phase", "reason", "native", "state"), PHASES)
def test_phase_and_state(phase: JobPhase, reason: str, native: str, state: str) -> None:
    status = JobStatus(phase=phase, reason=reason)
    assert (native_phase(status), native_state(status)) == (native, state)


def test_every_phase_is_in_the_table() -> None:
    assert {phase for phase, *_ in PHASES} == set(JobPhase)


def test_a_deleted_job_is_in_clean_up_until_its_objects_are_gone() -> None:
    status = JobStatus(phase=JobPhase.SUCCEEDED)
    assert native_phase(status, deleted=True) == "CleanUp"
    assert native_phase(replace(status, gone_at=T0), deleted=True) == "Done"


def replica(
    phase: ReplicaPhase, outcome: Outcome | None = None, *, settled: bool = False, restarts: int = 0
) -> Replica:
    attempt = Attempt(number=restarts + 1, phase=phase, outcome=outcome)
    return Replica(key=WORKER_0, attempt=attempt, settled=settled, restarts=restarts)


def role_of(replica: Replica | None) -> dict[str, Any]:
    manifest = accepted(load("shipped_local"))
    facts = StatusFacts(status=JobStatus(), replicas=[replica] if replica else [], created_at=T0)
    (role,) = KIND.native_status(KIND.read(manifest), facts)["replicaStatuses"]
    found: dict[str, Any] = role
    return found


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (None, "Starting"),
        (replica(ReplicaPhase.CREATING), "Starting"),
        (replica(ReplicaPhase.PENDING), "Starting"),
        (replica(ReplicaPhase.PENDING, restarts=1), "Running"),
        (replica(ReplicaPhase.RUNNING), "Running"),
        (replica(ReplicaPhase.FAILED, Outcome.FAILED), "Running"),
        (replica(ReplicaPhase.DELETED, Outcome.DISRUPTED), "Starting"),
        (replica(ReplicaPhase.FAILED, Outcome.FAILED, settled=True), "Failed"),
        (replica(ReplicaPhase.DELETED, Outcome.DISRUPTED, settled=True), "Failed"),
        (replica(ReplicaPhase.SUCCEEDED, Outcome.SUCCEEDED, settled=True), "Succeeded"),
        (replica(ReplicaPhase.UNKNOWN), "Unknown"),
        (replica(ReplicaPhase.DELETED, Outcome.STOPPED), "Unknown"),
    ],
)
def test_state_of_a_replica(seen: Replica | None, state: str) -> None:
    assert role_of(seen) == {"Mx_replica_type": "WORKER", "state": state, "ReplicasStates": {state: 1}}


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        ([ReplicaPhase.RUNNING, ReplicaPhase.SUCCEEDED, ReplicaPhase.CREATING], "Running"),
        ([ReplicaPhase.SUCCEEDED, ReplicaPhase.CREATING, ReplicaPhase.SUCCEEDED], "Starting"),
        ([ReplicaPhase.SUCCEEDED, ReplicaPhase.SUCCEEDED, ReplicaPhase.UNKNOWN], "Unknown"),
        ([ReplicaPhase.SUCCEEDED, ReplicaPhase.SUCCEEDED, ReplicaPhase.SUCCEEDED], "Succeeded"),
        ([ReplicaPhase.FAILED, ReplicaPhase.RUNNING, ReplicaPhase.SUCCEEDED], "Failed"),
    ],
)
def test_state_of_a_role(phases: list[ReplicaPhase], state: str) -> None:
    ends = {ReplicaPhase.SUCCEEDED: Outcome.SUCCEEDED, ReplicaPhase.FAILED: Outcome.FAILED}
    replicas = [
        Replica(key=Rank("worker", i), attempt=Attempt(number=1, phase=phase, outcome=ends.get(phase)), settled=True)
        for i, phase in enumerate(phases)
    ]
    facts = StatusFacts(status=JobStatus(), replicas=replicas, created_at=T0)
    role = KIND.native_status(KIND.read(MANIFEST), facts)["replicaStatuses"][2]
    assert role["state"] == state
    assert sum(role["ReplicasStates"].values()) == 3


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        (Reason.RULE_FULFILLED, "example-dist-job-worker-x7k2-1 failed in attempt 1 (exit code 1)"),
        (Reason.REFUSED_BY_CLUSTER, "in jobgate's words"),
    ],
)
def test_the_reason_lists_the_failures_that_ended_the_job(why: Reason, expected: str) -> None:
    failed = Attempt(number=1, phase=ReplicaPhase.FAILED, outcome=Outcome.FAILED, exit_code=1)
    well = Attempt(number=1, phase=ReplicaPhase.SUCCEEDED, outcome=Outcome.SUCCEEDED)
    replicas = [Replica(key=key, attempt=one, settled=True) for key, one in ((WORKER_0, well), (WORKER_1, failed))]
    status = JobStatus(
        phase=JobPhase.FAILED, reason=why, message="in jobgate's words", ended_by=summarize_failures(replicas)
    )
    facts = StatusFacts(status=status, replicas=replicas, created_at=T0)
    assert KIND.native_status(KIND.read(MANIFEST), facts)["reason"] == expected


def conditions(*phases: JobPhase) -> list[str]:
    seconds = count()
    transitions = tuple(Transition(at=at(next(seconds)), phase=phase, reason="", message="") for phase in phases)
    facts = StatusFacts(status=JobStatus(transitions=transitions), replicas=(), created_at=T0)
    return [shown["type"] for shown in KIND.native_status(KIND.read(MANIFEST), facts)["conditions"]]


def test_ready_is_not_repeated() -> None:
    running, restarting = JobPhase.RUNNING, JobPhase.RESTARTING
    assert conditions(running, running) == ["Ready"]
    assert conditions(running, JobPhase.UNKNOWN, running) == ["Ready"]
    assert conditions(running, restarting, restarting, running) == ["Ready", "Recovering", "Ready"]


def test_ten_conditions_are_kept() -> None:
    shown = conditions(*[JobPhase.RUNNING, JobPhase.RESTARTING] * 7)
    assert shown == ["Ready", "Recovering"] * 5


def test_dead_members_are_listed_once_they_are_replaced() -> None:
    ended = [
        Attempt(number=number, outcome=Outcome.FAILED, finished_at=T0 + timedelta(seconds=number)) for number in (1, 2)
    ]
    facts = StatusFacts(
        status=JobStatus(),
        replicas=[Replica(key=WORKER_1, attempt=ended[1], settled=True)],
        attempts=[("worker", 1, attempt) for attempt in ended],
        created_at=T0,
    )
    assert KIND.native_status(KIND.read(MANIFEST), facts)["conditions"] == [
        {
            "type": "RemovingDeadMember",
            "reason": "removing dead member example-dist-job-worker-x7k2-1",
            "transitionTime": "2030-01-01T00:00:01Z",
        }
    ]
