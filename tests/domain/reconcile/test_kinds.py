# ruff: noqa: FBT001  hypothesis passes by name
"""Whatever happens to a job of any kind, its passes hold the laws, it comes to rest, and its native status is true."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plan import Rank
from app.domain.reconcile.timing import Timing
from app.domain.vocabulary import JobPhase, ScaleOutcome
from tests.support.kinds.variations import ANNOTATIONS, JOBS, KINDS, accepted, kind_of
from tests.support.model.kind_world import KindWorld, a_kind_world
from tests.support.model.native_laws import FOLLOWED, LAWS, PHASES, check_native_status
from tests.support.model.stories import (
    ANY_OP,
    NO_END_OP,
    SIZES,
    Op,
    apply,
    check_world,
    come_to_rest,
    come_to_rest_running,
    intend,
    play,
)
from tests.support.plugins.properties import examples

RESIZABLE = [job for job in JOBS if kind_of(manifest := accepted(job)).scaling(kind_of(manifest).read(manifest))]
TIMINGS = st.builds(
    Timing, disruption_limit=st.sampled_from([1, 10]), node_lost_after=st.sampled_from([None, 60.0, 300.0])
)
NOTES = st.sampled_from(ANNOTATIONS)
stories = examples(fixed=10, fuzz=30)


def test_no_kind_is_missing() -> None:
    assert {accepted(job)["kind"] for job in JOBS} == KINDS
    assert LAWS.keys() == PHASES.keys() == FOLLOWED.keys() == KINDS
    resizable = {accepted(job)["kind"] for job in RESIZABLE}
    assert resizable == {"TrainingJob", "DIJob"}


def a_world(job: str, timing: Timing, notes: Mapping[str, str]) -> KindWorld:
    world = a_kind_world(accepted(job, notes), timing, check_native_status)
    world.read_native_status()
    return world


# Stories that `make fuzz` has found: timing, annotations, script, and whether the job is warm.
FOUND: Sequence[tuple[str, Timing, list[Op], bool]] = (
    # A replica that fails while the job's pods are being stopped has no part in its end.
    ("DIJob without restarts", Timing(disruption_limit=1), [("exit", 3), ("exit", 1)], True),
    ("MxJob dist", Timing(disruption_limit=1), [("exit", 3), ("exit", 10)], True),
    # The last pod comes into view after the job was cancelled.
    (
        "DIJob without limit",
        Timing(),
        [("reconcile", 0), ("blind", 0), ("cancel", 0), ("reconcile", 0), ("reconcile", 0)],
        False,
    ),
)


@pytest.mark.parametrize(("job", "timing", "script", "warm"), FOUND)
def test_a_found_sequence_of_events_leads_to_a_stable_state(
    job: str, timing: Timing, script: list[Op], *, warm: bool
) -> None:
    check_story(job, timing, {}, script, warm=warm)


@pytest.mark.parametrize("job", JOBS)
@stories
@given(TIMINGS, NOTES, ANY_OP, st.booleans())
def test_every_sequence_of_events_leads_to_a_stable_state_and_removal_leaves_nothing(
    job: str, timing: Timing, notes: Mapping[str, str], script: list[Op], warm: bool
) -> None:
    check_story(job, timing, notes, script, warm=warm)


def check_story(job: str, timing: Timing, notes: Mapping[str, str], script: list[Op], *, warm: bool) -> None:
    world = a_world(job, timing, notes)
    play(world, script, warm=warm)
    come_to_rest(world)
    check_world(world)
    status = world.recorded.status
    if world.plan.paused and not status.phase.is_terminal:
        assert status.phase is JobPhase.PAUSED
        assert not world.pods
    else:
        assert status.phase.is_terminal
    intend(world, remove=True)
    come_to_rest(world)
    check_world(world)
    assert world.recorded.status.gone_at is not None
    assert not world.pods
    assert not world.anchor


@pytest.mark.parametrize("job", JOBS)
@stories
@given(TIMINGS, NO_END_OP, st.booleans())
def test_a_cancelled_job_keeps_nothing_running(job: str, timing: Timing, script: list[Op], warm: bool) -> None:
    world = a_world(job, timing, {})
    play(world, script, warm=warm)
    ended_before = world.recorded.status.phase.is_terminal
    intend(world, cancel=True)
    come_to_rest(world)
    check_world(world)
    assert world.recorded.status.quiet
    if not ended_before:
        assert world.recorded.status.phase is JobPhase.CANCELLED
        assert all(pod.ended for pod in world.pods.values())


@pytest.mark.parametrize("job", RESIZABLE)
@stories
@given(SIZES)
def test_resizing_never_restarts_the_remaining_replicas(job: str, script: list[Op]) -> None:
    world = a_world(job, Timing(), {})
    play(world, [], warm=True)
    lives = dict.fromkeys(world.plan.replicas, 1)  # how often a rank was wanted anew
    for op in script:
        before = set(world.plan.replicas)
        apply(world, op)
        for key in world.plan.replicas.keys() - before:
            lives[key] = lives.get(key, 0) + 1
    come_to_rest_running(world)
    check_settled(world, lives)


def check_settled(world: KindWorld, lives: Mapping[Rank, int]) -> None:
    """The job runs with the size that was asked for last, and nobody has had more pods than lives."""
    assert world.recorded.status.phase is JobPhase.RUNNING
    assert world.recorded.status.restarts == 0
    assert {pod.key for pod in world.pods.values()} == set(world.plan.replicas)
    for key in world.plan.replicas:
        assert world.recorded.replicas[key].attempt.number <= lives[key]
    assert {record.seq for record in world.scaled} == set(range(1, world.requested + 1))
    last = {record.task: record for record in world.scaled}
    assert {record.outcome for record in last.values()} <= {ScaleOutcome.REACHED}
