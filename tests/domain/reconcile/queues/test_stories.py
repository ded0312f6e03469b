"""Jobs that compete for one quota, in long random stories: a gang runs with all of its members or with none."""

from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import JobPlan, Rank
from app.domain.status.observed import KueueState
from app.domain.vocabulary import CleanUpPolicy, JobPhase, ReplicaPhase
from tests.domain.reconcile.queues.worlds import TEAM, a_world, elastic, kueue_of, phase_of, run
from tests.support.model.cluster import World
from tests.support.model.stories import apply, check_world, clear_faults, edit, intend, start
from tests.support.plans import a_plan, an_elastic_plan, restarting
from tests.support.plugins.properties import examples

CAPACITY = 7  # pods
JOBS = 4
STEPS = 2000
LEAST, MOST = 2, 4  # replicas of an elastic job
MAX_RECONCILES = 200  # far more than any step needs
EVENTS = (
    *("admit",) * 6,
    *("preempt", "time_out", "deactivate", "activate", "delete_workload", "outage", "recover", "resize", "resize"),
    *("kubelet",) * 4,
    *("exit", "advance", "crash", "act_twice", "restart", "foreign_delete", "evict", "pause", "resume", "resume"),
)


def random_plan(random: Random) -> JobPlan:
    tasks = random.choice([{"worker": 1}, {"worker": 2}, {"worker": 3}, {"ps": 1, "worker": 2}])
    plan = a_plan(tasks, None, restarting(random.randrange(3)), queue=TEAM)
    if tasks["worker"] >= LEAST and random.random() < 0.5:
        plan = elastic(plan)
    return replace(plan, clean_up=random.choice(list(CleanUpPolicy)))


def held_by(world: World) -> int:
    """For how many pods the job holds quota."""
    return sum(kueue_of(world).total().values())


def requested_by(world: World) -> int:
    waiting = [found for found in kueue_of(world).workloads.values() if not found.reserved]
    return sum(sum(found.sizes.values()) - sum(found.reclaimable.values()) for found in waiting)


def members(plan: JobPlan) -> set[Rank]:
    """The replicas that the job needs to work: of an elastic task the least number, of others all."""
    return {key for key in plan.replicas if key.task not in plan.elastic or key.rank < LEAST}


def settle(world: World, *, ends: bool = False) -> None:
    """Let jobgate and the kubelets do what they can. With `ends`, all processes exit with 0."""
    for _ in range(MAX_RECONCILES):
        decision = world.reconcile()
        before = {name: pod.seen(set()) for name, pod in world.pods.items()}
        start(world)
        if ends:
            for pod in [pod for pod in world.pods.values() if pod.phase is ReplicaPhase.RUNNING]:
                world.kubelet(pod)
        moved = before != {name: pod.seen(set()) for name, pod in world.pods.items()}
        if moved or decision.dirty or decision.actions or decision.again:
            continue
        if decision.wake_at is None:
            return
        world.now = max(world.now, decision.wake_at)
    raise AssertionError(f"the job never comes to rest: {world.recorded.status}")


def check_gang(world: World) -> None:
    """Check a job that has settled: it runs with each member that has not ended, or has no process and no quota."""
    status, running = world.recorded.status, {world.pods[name].key for name in world.running()}
    if not running:
        admitted = status.queueing is not None and status.queueing.admission is not None
        assert status.phase.is_terminal or not admitted or not _unended(world)
        assert not held_by(world) or kueue_of(world).state is not KueueState.LISTED, (status, kueue_of(world))
        return
    assert status.queueing is not None
    if status.phase.is_terminal:
        assert world.plan.clean_up is not CleanUpPolicy.ALL
        return
    assert _unended(world) <= running, f"half a gang runs: {running} of {members(world.plan)}, {status}"


def _unended(world: World) -> set[Rank]:
    replicas = world.recorded.replicas
    over = {key for key, one in replicas.items() if one.settled and one.attempt.outcome is not None}
    return members(world.plan) - over


@dataclass(slots=True)
class Story:
    """Jobs, the quota that Kueue divides among them, and what happens to both."""

    random: Random
    jobs: list[World] = field(default_factory=list)
    ended: int = 0
    evicted: int = 0
    admitted: int = 0

    def __post_init__(self) -> None:
        self.jobs = [self.a_job() for _ in range(JOBS)]

    def a_job(self) -> World:
        return a_world(random_plan(self.random))

    def step(self) -> None:
        index = self.random.randrange(JOBS)
        self.happen(self.jobs[index])
        if self.random.random() < 0.7:
            self.jobs[index].reconcile()
        if self.random.random() < 0.3:
            settle(self.jobs[index])
            check_gang(self.jobs[index])
        if self.jobs[index].intent.remove:
            self.remove(index)
        self.check_capacity()

    def happen(self, world: World) -> None:
        kueue, number = kueue_of(world), self.random.randrange(13)
        what = self.random.choice([*EVENTS, *(["cancel"] if number == 0 else []), *(["remove"] if number < 7 else [])])
        match what:
            case "admit":
                self.admit()
            case "preempt" | "time_out":
                self.evicted += held_by(world) > 0
                kueue.evict("Preempted" if what == "preempt" else "PodsReadyTimeout", number)
            case "deactivate" | "activate":
                kueue.set_active(active=what == "activate", index=number)
            case "delete_workload":
                kueue.delete(number)
            case "outage" | "recover":
                kueue.state = KueueState.UNKNOWN if what == "outage" else KueueState.LISTED
            case "resize":
                self.resize(world)
            case "cancel" | "remove":
                intend(world, **{what: True})
            case _:
                apply(world, (what, number))

    def admit(self) -> None:
        """Admit one job of those that fit."""
        free = CAPACITY - sum(map(held_by, self.jobs))
        fitting = [world for world in self.jobs if 0 < requested_by(world) <= free]
        if fitting:
            self.admitted += kueue_of(self.random.choice(fitting)).admit()

    def resize(self, world: World) -> None:
        size, before = self.random.randint(LEAST, MOST), sum(key.task == "worker" for key in world.plan.replicas)
        if "worker" in world.plan.elastic and size != before and not world.recorded.status.phase.is_terminal:
            world.plan = an_elastic_plan(world.plan, "worker", size)
            world.record_scale_request("worker", before, size)

    def check_capacity(self) -> None:
        assert sum(map(held_by, self.jobs)) <= CAPACITY
        assert sum(len(world.running()) for world in self.jobs) <= CAPACITY

    def remove(self, index: int) -> None:
        """Let the job leave, check that nothing of it is left, and put another one into its place."""
        world = self.jobs[index]
        kueue_of(world).state = KueueState.LISTED
        clear_faults(world)
        settle(world)
        check_world(world)
        assert (kueue_of(world).workloads, world.pods, world.anchor) == ({}, {}, False)
        assert world.recorded.status.quiet
        self.ended += 1
        self.jobs[index] = self.a_job()

    def end(self) -> None:
        """Let all jobs end, however often they wait, and then leave."""
        for world in self.jobs:
            kueue_of(world).state = KueueState.LISTED
            clear_faults(world)
        for _ in range(JOBS * 4):
            for world in self.jobs:
                apply(world, ("resume", 0))
                kueue_of(world).activate()
                self.admit()
                settle(world, ends=True)
                self.check_capacity()
        for index, world in enumerate(self.jobs):
            assert world.recorded.status.phase.is_terminal, world.recorded.status
            assert not held_by(world)
            intend(world, remove=True)
            self.remove(index)


def test_a_job_that_is_resumed_while_kueue_cannot_be_read_waits() -> None:
    world = a_world(a_plan(queue=TEAM))
    kueue = kueue_of(world)
    run(world)
    kueue.admit()
    run(world)
    edit(world, "pause")
    run(world)
    kueue.state = KueueState.UNKNOWN
    edit(world, "resume")
    run(world)
    assert (world.pods, phase_of(world)) == ({}, JobPhase.QUEUED)
    kueue.state = KueueState.LISTED
    run(world)
    assert (world.pods, kueue.made) == ({}, 2)
    kueue.admit()
    run(world)
    assert phase_of(world) == JobPhase.RUNNING


@examples(fixed=1, fuzz=20)
@given(st.integers(0, 2**32))
def test_jobs_that_compete_for_quota_never_run_half_a_gang(seed: int) -> None:
    story = Story(Random(seed))
    for _ in range(STEPS):
        story.step()
    story.end()
    # The story has moved enough to prove something.
    assert min(story.ended, story.evicted, story.admitted) > STEPS // 100, story
