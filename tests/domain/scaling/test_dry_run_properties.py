"""Whatever the cluster and the jobs: it ends, stays within bounds, plans what fits, and leaves nothing to do."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from app.domain.scaling.dry_run import dry_run
from app.domain.scaling.values import (
    DryRunResult,
    Excuse,
    Inventory,
    NodeCapacity,
    ResourceAmount,
    ScalableJob,
    Verdict,
)
from app.domain.vocabulary import JobPhase
from tests.domain.scaling.cases import a_job, a_node

amounts = st.builds(ResourceAmount, cpu=st.integers(0, 4), memory=st.integers(0, 4), gpu=st.integers(0, 2))
room = st.builds(ResourceAmount, cpu=st.integers(-2, 12), memory=st.integers(-2, 12), gpu=st.integers(-1, 4))
totals = st.builds(ResourceAmount, cpu=st.integers(0, 40), memory=st.integers(0, 40), gpu=st.integers(0, 8))
labels = st.sampled_from([{}, {"disk": "ssd"}])
EXCUSE = Excuse(verdict=Verdict.FROZEN, message="frozen")


@st.composite
def some_jobs(draw: st.DrawFn) -> tuple[ScalableJob, ...]:
    jobs = []
    for index in range(draw(st.integers(0, 4))):
        least = draw(st.integers(0, 4))
        jobs.append(
            a_job(
                f"job{index}",
                draw(st.integers(0, 9)),
                (least, least + draw(st.integers(0, 4))),
                need=draw(amounts),
                phase=draw(st.sampled_from([JobPhase.RUNNING, JobPhase.PENDING])),
                selector=draw(labels),
                excuse=draw(st.sampled_from([None, None, EXCUSE])),
            )
        )
    return tuple(jobs)


@st.composite
def some_clusters(draw: st.DrawFn) -> Inventory:
    count = draw(st.integers(0, 3))
    nodes = tuple(
        a_node(
            f"n{index}",
            draw(room),
            slots=draw(st.integers(-1, 5)),
            closed=draw(st.sampled_from(["", "", "it is cordoned"])),
            labels=draw(labels),
        )
        for index in range(count)
    )
    return Inventory(nodes=nodes, total=draw(totals), requested=draw(totals))


@dataclass(frozen=True)
class Case:
    cluster: Inventory
    jobs: tuple[ScalableJob, ...]
    pending: bool
    load: float

    def outcome(self) -> DryRunResult:
        return dry_run(self.cluster, self.jobs, pending=self.pending, max_load=self.load)


cases = st.builds(Case, some_clusters(), some_jobs(), st.booleans(), st.sampled_from([0.3, 0.8, 0.97, 1.0]))


@given(cases)
def test_sizes_never_leave_their_bounds(case: Case) -> None:
    for job, decision in zip(case.jobs, case.outcome().decisions, strict=True):
        low, high = min(job.size, job.least), max(job.size, job.most)
        assert low <= decision.to_replicas <= high
        if decision.to_replicas > job.size:
            assert decision.to_replicas <= job.most
        if decision.to_replicas < job.size:
            assert decision.to_replicas >= job.least
        if job.excuse is not None:
            assert not decision.changes


@given(cases)
def test_the_outcome_leaves_nothing_to_do(case: Case) -> None:
    outcome = case.outcome()
    resized = tuple(
        replace(job, size=decision.to_replicas) for job, decision in zip(case.jobs, outcome.decisions, strict=True)
    )
    again = replace(case, cluster=outcome.inventory, jobs=resized).outcome()
    assert [decision for decision in again.decisions if decision.changes] == []
    assert again.inventory == outcome.inventory


@given(cases)
def test_growth_is_planned_only_where_there_is_room(case: Case) -> None:
    outcome = case.outcome()
    before = {node.name: node for node in case.cluster.nodes}
    for node in outcome.inventory.nodes:
        if node != before[node.name]:
            assert node.open
            assert node.slots >= 0
            assert no_new_debt(before[node.name], node)
    taken = sum(before[node.name].slots - node.slots for node in outcome.inventory.nodes)
    assert taken >= sum(max(0, d.to_replicas - d.from_replicas) for d in outcome.decisions)


def no_new_debt(before: NodeCapacity, after: NodeCapacity) -> bool:
    pairs = zip(parts(before.free).items(), parts(after.free).values(), strict=True)
    return all(now >= 0 or now == then for (_, then), now in pairs)


def parts(found: ResourceAmount) -> Mapping[str, int]:
    return {"cpu": found.cpu, "memory": found.memory, "gpu": found.gpu}


@given(cases)
def test_nothing_that_grew_is_over_its_limit(case: Case) -> None:
    outcome = case.outcome()
    total, requested = case.cluster.total, outcome.inventory.requested
    for job, decision in zip(case.jobs, outcome.decisions, strict=True):
        if decision.to_replicas > job.size:
            assert not job.need.cpu or requested.cpu <= total.cpu * case.load + 1e-9
            assert not job.need.memory or requested.memory <= total.memory * case.load + 1e-9
            assert not job.need.gpu or requested.gpu <= total.gpu
