"""Jobs that were withdrawn start again one after another, so that twenty of them do not take each other's nodes."""

import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.actions import CreatePod, DeletePod, ReleasePod
from app.domain.reconcile.timing import Timing
from app.domain.status.observed import ObservedPod
from app.domain.status.records import NOT_PARTIAL, PartialStart, Recorded
from app.domain.vocabulary import JobPhase, ReplicaPhase
from app.loops.jobs.start_turns import StartTurns
from tests.support.plans import T0, a_plan, a_pod, a_record, at, decide, next_record

LASTS = 30.0  # seconds from the start of the last pod of a job to the end of all
TIMING = Timing(start_deadline=600, restart_backoff=10)
DUE = PartialStart(withdrawals=1, again_at=T0)
STARTING = PartialStart(withdrawals=1)


@dataclass
class Clock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return at(self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Turns:
    clock: Clock = field(default_factory=Clock)
    woken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = StartTurns(self.clock, self.woken.append, longest=100)

    def due(self, uid: str, namespace: str = "a") -> bool:
        return self.turns.may_start(uid, namespace, DUE, self.clock.now())

    def follow(self, uid: str, start: PartialStart, namespace: str = "a") -> None:
        self.turns.follow(uid, namespace, start, self.clock.now())


def test_one_job_at_a_time_starts_again() -> None:
    turns = Turns()
    assert [turns.due(uid) for uid in "xyz"] == [True, False, False]
    turns.follow("x", STARTING)
    assert not turns.due("y")
    turns.follow("x", NOT_PARTIAL)
    assert turns.woken == ["x", "y"]
    assert [turns.due("z"), turns.due("y")] == [False, True]


def test_a_job_that_is_withdrawn_again_passes_its_turn_on() -> None:
    turns = Turns()
    assert turns.due("x")
    assert not turns.due("y")
    turns.follow("x", replace(DUE, withdrawals=2, again_at=T0 + timedelta(seconds=40)))
    assert turns.due("y")


def test_a_job_that_does_not_wait_any_more_gets_no_turn() -> None:
    turns = Turns()
    assert [turns.due(uid) for uid in "xyz"] == [True, False, False]
    turns.follow("y", NOT_PARTIAL)
    turns.follow("x", NOT_PARTIAL)
    assert turns.woken[-1] == "z"


def test_namespaces_take_turns() -> None:
    turns = Turns()
    assert turns.due("a0")
    for uid, namespace in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        turns.due(uid, namespace)
    order = ["a0"]
    for _ in range(3):
        turns.follow(order[-1], NOT_PARTIAL, order[-1][0])
        order.append(turns.woken[-1])
    assert order == ["a0", "a1", "b1", "a2"]


def test_a_turn_ends_although_its_job_never_starts() -> None:
    turns = Turns()
    assert turns.due("x")
    assert not turns.due("y")
    turns.clock.seconds = 100
    assert turns.due("y")
    assert not turns.due("x")


def test_a_job_that_is_not_due_needs_no_turn() -> None:
    turns = Turns()
    assert turns.due("x")
    assert turns.turns.may_start("y", "a", STARTING, at(0))
    assert turns.turns.may_start("y", "a", replace(DUE, again_at=at(5)), at(0))


@dataclass
class Job:
    plan: JobPlan
    record: Recorded = field(default_factory=a_record)
    pods: dict[Rank, ObservedPod] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    wake_at: datetime | None = None
    ends_at: float | None = None

    @property
    def is_live(self) -> bool:
        return not self.record.status.phase.is_terminal


class Simulation:
    """Jobs on a cluster that binds pods to free slots in random order, as a scheduler that knows no gangs does."""

    def __init__(self, seed: int, jobs: int, slots: int) -> None:
        self.chance = random.Random(seed)
        self.slots = slots
        plan = a_plan({"worker": 4})
        self.jobs = {
            uid: Job(replace(plan, identity=replace(plan.identity, uid=uid)))
            for uid in (f"{seed}-{number}" for number in range(jobs))
        }
        self.clock = Clock()
        self.ready = dict.fromkeys(self.jobs)
        self.turns = StartTurns(self.clock, self.ready.setdefault, longest=1200)

    def run(self, most_seconds: float) -> None:
        while self.ready:
            while self.ready:
                self.reconcile(self.ready.popitem()[0])
            self.place()
            if not self.ready and any(job.is_live for job in self.jobs.values()):
                self.advance()
            assert self.clock.seconds < most_seconds, [job.record.status.message for job in self.jobs.values()]

    def reconcile(self, uid: str) -> None:
        job, now = self.jobs[uid], self.clock.now()
        namespace, start = job.plan.identity.namespace, job.record.status.partial_start
        decision = decide(
            job.plan,
            job.record,
            *job.pods.values(),
            now=self.clock.seconds,
            timing=TIMING,
            gone=frozenset(job.gone),
            may_start=self.turns.may_start(uid, namespace, start, now),
        )
        self.turns.follow(uid, namespace, decision.status.partial_start, now)
        job.record, job.wake_at = next_record(job.record, decision), decision.wake_at
        for action in decision.actions:
            if isinstance(action, CreatePod):
                job.pods.setdefault(action.key, a_pod(action.key, ReplicaPhase.CREATING, attempt=action.attempt))
            if isinstance(action, DeletePod | ReleasePod):
                job.gone |= {pod.uid for pod in job.pods.values() if pod.uid == action.uid}
                job.pods = {key: pod for key, pod in job.pods.items() if pod.uid != action.uid}
        if decision.again or any(isinstance(action, CreatePod | DeletePod | ReleasePod) for action in decision.actions):
            self.ready[uid] = None

    def place(self) -> None:
        waiting = [(uid, key) for uid, job in self.jobs.items() for key, pod in job.pods.items() if pod.node is None]
        used = sum(pod.node is not None and not pod.ended for job in self.jobs.values() for pod in job.pods.values())
        for uid, key in self.chance.sample(waiting, min(self.slots - used, len(waiting))):
            job = self.jobs[uid]
            job.pods[key] = replace(job.pods[key], node="n1", phase=ReplicaPhase.RUNNING)
            running = sum(pod.phase is ReplicaPhase.RUNNING for pod in job.pods.values())
            job.ends_at = self.clock.seconds + LASTS if running == job.plan.size else None
            self.ready[uid] = None

    def advance(self) -> None:
        """Move the clock to the next wake-up or end of a job, and end the jobs whose time has come."""
        live = {uid: job for uid, job in self.jobs.items() if job.is_live}
        wakes = [(job.wake_at - T0).total_seconds() for job in live.values() if job.wake_at is not None]
        ends = [job.ends_at for job in live.values() if job.ends_at is not None]
        self.clock.seconds = max(min([*wakes, *ends]), self.clock.seconds)
        for uid, job in live.items():
            if job.ends_at is not None and job.ends_at <= self.clock.seconds:
                job.pods = {
                    key: replace(pod, phase=ReplicaPhase.SUCCEEDED, ended=True, exit_code=0)
                    for key, pod in job.pods.items()
                }
                job.ends_at = None
                self.ready[uid] = None
            elif job.wake_at is not None and job.wake_at <= self.clock.now():
                self.ready[uid] = None


@pytest.mark.parametrize("seed", range(3))
def test_twenty_jobs_of_four_pods_on_room_for_eight_all_end(seed: int) -> None:
    simulation = Simulation(seed, jobs=20, slots=8)
    simulation.run(most_seconds=20_000)
    assert {job.record.status.phase for job in simulation.jobs.values()} == {JobPhase.SUCCEEDED}


def test_jobs_that_fit_are_never_withdrawn() -> None:
    simulation = Simulation(0, jobs=2, slots=8)
    simulation.run(most_seconds=100)
    assert [job.record.status.reschedules for job in simulation.jobs.values()] == [0, 0]
