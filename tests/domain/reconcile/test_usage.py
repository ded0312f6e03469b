"""What is counted of a job is what its pods held, whatever happens to them, and each millisecond has one use."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given

from app.domain.plan import JobPlan, Rank
from app.domain.queueing.admission import Queueing
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Decision, Inputs
from app.domain.status.records import Attempt, Intent, JobStatus
from app.domain.usage.holds import JOBS, JobUse, milliseconds, use_of
from app.domain.usage.sums import DAY, Cell, Rates, sum_rates
from app.domain.vocabulary import JobPhase, Outcome, ReplicaPhase, Use
from tests.domain.reconcile.queues.worlds import LISTED
from tests.domain.reconcile.test_properties import TIMINGS, plans
from tests.support.model.cluster import World
from tests.support.model.stories import ANY_OP, Op, come_to_rest, play, start
from tests.support.plans import REMOVE, T0, a_plan, a_record, decide, with_templates
from tests.support.plugins.properties import examples

GPU = "nvidia.com/gpu"
SPEC = {"containers": [{"name": "train", "resources": {"requests": {"cpu": "1500m"}, "limits": {GPU: 2}}}]}
HELD = {"cpu": 1500, GPU: 2, "pods": 1}
DEACTIVATED = JobStatus(phase=JobPhase.PAUSED, queueing=Queueing(name="team", deactivated=True, deactivated_in=1))


@dataclass
class Ledger:
    """Counts a job second by second, so to speak: what each attempt held between two decisions, and what it did."""

    now: int | None = None
    states: list[tuple[int, int, str, frozenset[tuple[Rank, int]], frozenset[tuple[Rank, int]]]] = field(
        default_factory=list
    )
    started: set[tuple[Rank, int]] = field(default_factory=set)
    ends: dict[tuple[Rank, int], Attempt] = field(default_factory=dict)
    unseen: Counter[tuple[Rank, int]] = field(default_factory=Counter)
    state: tuple[str, bool, frozenset[tuple[Rank, int]]] = ("waits", False, frozenset())
    expected: Counter[Cell] = field(default_factory=Counter)
    pending: dict[tuple[Rank, int], Counter[tuple[int, str]]] = field(default_factory=dict)
    ended: Counter[Cell] = field(default_factory=Counter)
    rates: Rates = field(default_factory=dict)

    def check(self, _world: World, inputs: Inputs, decision: Decision) -> None:
        self.let_time_pass(milliseconds(inputs.now))
        if not decision.dirty:
            assert not decision.usage.ended
            assert decision.usage.rates is None
            return
        for cell, total in decision.usage.ended.items():
            assert total > 0
            self.ended[cell] += total
        self.rates = self.rates if decision.usage.rates is None else decision.usage.rates
        self._end_attempts(inputs, decision)
        work = decision.status.usage.work
        phase = "waits" if work is None else "works" if work.until is None else "is over"
        held = frozenset(
            (key, replica.attempt.number)
            for key, replica in decision.replicas.items()
            if replica.attempt.node is not None and replica.attempt.outcome is None
        )
        self.started |= {
            (key, replica.attempt.number)
            for key, replica in decision.replicas.items()
            if replica.phase is ReplicaPhase.RUNNING and replica.attempt.outcome is None
        }
        self.state = (phase, decision.status.usage.queued_since is not None, held)
        assert not (self.state[1] and (held or phase == "works")), "a job that waits holds nothing"

    def let_time_pass(self, now: int) -> None:
        phase, queued, held = self.state
        before = now if self.now is None else self.now
        for since, until, day in days_between(before, now):
            if queued:
                self.expected[Cell(day, JOBS, Use.QUEUED)] += until - since
            for attempt in held:
                what = "idle" if phase == "is over" else "waits" if phase == "waits" and attempt in self.started else ""
                self.pending.setdefault(attempt, Counter())[day, what] += until - since
        self.now = now

    def _end_attempts(self, inputs: Inputs, decision: Decision) -> None:
        for key, attempt in decision.ended:
            known = inputs.recorded.replicas.get(key)
            was_known = known is not None and known.attempt.number == attempt.number
            if attempt.node is None or (was_known and known is not None and known.attempt.outcome is not None):
                continue
            where = (key, attempt.number)
            if where not in self.state[2]:
                self._see_late(where, attempt, inputs)
            self._settle(where, attempt.outcome, use_of(attempt.outcome, attempt.stopping))

    def _see_late(self, where: tuple[Rank, int], attempt: Attempt, inputs: Inputs) -> None:
        if attempt.created_at is None or attempt.finished_at is None:
            return
        now, work = milliseconds(inputs.now), inputs.recorded.status.usage.work
        length = milliseconds(attempt.finished_at) - milliseconds(attempt.created_at)
        over = now if work is None or work.until is None else work.until
        for since, until, day in days_between(now - length, now):
            counted = self.pending.setdefault(where, Counter())
            counted[day, ""] += max(0, min(until, over) - since)
            counted[day, "idle"] += max(0, until - max(since, over))

    def _settle(self, where: tuple[Rank, int], outcome: Outcome | None, own: Use) -> None:
        for (day, what), length in self.pending.pop(where, Counter()).items():
            waits = what == "waits" and outcome is not Outcome.SUCCEEDED
            use = Use.IDLE if what == "idle" or waits else own
            for resource, amount in HELD.items():
                self.expected[Cell(day, resource, use)] += amount * length

    def total(self, now: int) -> tuple[dict[Cell, int], dict[Cell, int]]:
        """What was expected and what was counted until now."""
        self.let_time_pass(now)
        for where in list(self.pending):
            self._settle(where, None, Use.USEFUL)
        going = sum_rates(self.rates.items(), 0, now // DAY, now)
        return dict(+self.expected), dict(self.ended + Counter(going))


def days_between(since: int, until: int) -> list[tuple[int, int, int]]:
    edges = [since, *(day * DAY for day in range(since // DAY + 1, -(-until // DAY))), until]
    return [(a, b, a // DAY) for a, b in pairwise(edges) if b > a]


def over_days(script: list[Op]) -> list[Op]:
    """Let each step of the time be up to two days."""
    return [(name, index * 431 if name == "advance" else index) for name, index in script]


def a_life(plan: JobPlan, timing: Timing, script: list[Op], *, rest: bool) -> tuple[Ledger, World]:
    ledger = Ledger()
    plan = with_templates(plan, {task.name: SPEC for task in plan.tasks})
    world = World(plan=plan, timing=timing, check=ledger.check)
    play(world, over_days(script))
    if rest:
        come_to_rest(world)
    return ledger, world


@examples(fixed=60, fuzz=400)
@given(plans(), TIMINGS, ANY_OP)
def test_each_moment_of_a_life_is_counted_once(plan: JobPlan, timing: Timing, script: list[Op]) -> None:
    ledger, world = a_life(plan, timing, script, rest=False)
    expected, counted = ledger.total(milliseconds(world.now) + 12_345)
    assert counted == expected


@examples(fixed=30, fuzz=200)
@given(plans(), TIMINGS, ANY_OP)
def test_a_job_that_has_come_to_rest_goes_on_with_nothing(plan: JobPlan, timing: Timing, script: list[Op]) -> None:
    ledger, world = a_life(plan, timing, script, rest=True)
    if world.recorded.status.quiet:
        assert not ledger.rates
    expected, counted = ledger.total(milliseconds(world.now))
    assert counted == expected


def test_the_status_says_whether_a_job_waits_or_works() -> None:
    """The ledger reads this from the decisions, so it would not miss it."""
    world = World(plan=with_templates(a_plan({"worker": 2}), {"worker": SPEC}), check=lambda *_: None)
    waiting = world.reconcile().status.usage
    assert (waiting.queued_since, waiting.work) == (milliseconds(world.recorded.created_at), None)
    for _ in range(5):
        world.reconcile()
        start(world)
    working = world.recorded.status.usage
    assert working.queued_since is None
    assert working.work is not None
    assert working.work.until is None


@pytest.mark.parametrize(
    ("status", "plan", "intent"),
    [
        (JobStatus(), a_plan(paused=True), Intent(generation=1)),
        (JobStatus(), a_plan(), Intent(generation=1, cancel=True)),
        (JobStatus(), a_plan(), REMOVE),
        (JobStatus(phase=JobPhase.FAILED), a_plan(), Intent(generation=1)),
        (DEACTIVATED, a_plan(), Intent(generation=1)),
    ],
    ids=["paused", "cancelled", "removed", "ended", "deactivated"],
)
def test_a_job_waits_until_it_pauses_or_ends(status: JobStatus, plan: JobPlan, intent: Intent) -> None:
    since = milliseconds(T0)
    recorded = a_record(replace(status, usage=JobUse(queued_since=since)))
    assert decide(a_plan(), now=60).status.usage.queued_since == since
    use = decide(plan, recorded, intent=intent, now=60, queue=LISTED).status.usage
    assert (use.queued_since, use.queued) == (None, 60_000)
