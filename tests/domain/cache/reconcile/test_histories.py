"""Random histories of faults: a set becomes Ready, syncs its source once, and its removal leaves nothing."""

from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.domain.cache.vocabulary import SampleJobPhase, SetPart, SetPhase
from tests.domain.cache.reconcile.world import Job, World
from tests.support.json_values import UNHURRIED

DEATHS = st.sampled_from([None, None, None, -1, 0, 1, 2])
INDEXES = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("cluster"), st.none()),
    st.tuples(st.just("cluster"), st.none()),
    st.tuples(st.just("set"), DEATHS),
    st.tuples(st.just("set"), DEATHS),
    st.tuples(st.just("job"), DEATHS),
    st.tuples(st.just("lose"), INDEXES),
    st.tuples(st.just("silence"), INDEXES),
    st.tuples(st.just("answer"), INDEXES),
    st.tuples(st.just("scale"), st.integers(1, 4)),
    st.tuples(st.just("source"), st.integers(0, 9)),
    st.tuples(st.just("relabel"), INDEXES),
    st.tuples(st.just("drop"), st.sampled_from(SetPart)),
)
HISTORIES = st.lists(STEPS, max_size=40)
AGES = st.integers(0, 20)
JOBS = st.lists(st.tuples(st.sampled_from(["sync", "warmup", "rmr", "clear"]), st.booleans()), max_size=3)
BROKEN = st.sets(st.integers(0, 9), max_size=4)


def source(number: int) -> str:
    return f"s3://bucket-{number}.example.com/x"


def begun(jobs: list[tuple[str, bool]], broken: set[int], age: int) -> World:
    """Return a world after this number of turns without a fault."""
    world = World(jobs=[Job(kind, terminate) for kind, terminate in jobs])
    world.broken = {source(number) for number in broken} | {f"job-{number}-0" for number in broken}
    for turn in range(age):
        world.turn(turn)
    return world


def live(world: World, history: list[tuple[str, Any]]) -> None:
    for what, value in history:
        HAPPENINGS[what](world, value)


def over_jobs(world: World, done: int | None) -> None:
    for number in range(len(world.jobs)):
        world.over_job(number, done)


def speak(world: World, index: int, *, answers: bool) -> None:
    if index in world.servers:
        world.servers[index].answers = answers


def relabel(world: World, index: int) -> None:
    """Somebody labels a node as the set does. Nothing of a set that is gone is reconciled, its labels included."""
    if not world.gone:
        world.labelled[f"n{index}"] = "somebody's"


HAPPENINGS: dict[str, Callable[[World, Any], object]] = {
    "cluster": lambda world, _: world.step(),
    "set": lambda world, done: world.over_set(done),
    "job": over_jobs,
    "lose": lambda world, index: world.lose(index),
    "silence": lambda world, index: speak(world, index, answers=False),
    "answer": lambda world, index: speak(world, index, answers=True),
    "scale": lambda world, partitions: world.edit(partitions=partitions),
    "source": lambda world, number: world.edit(source=source(number)),
    "relabel": relabel,
    "drop": lambda world, resource: world.objects.discard(resource),
}


@settings(UNHURRIED, max_examples=100)
@given(history=HISTORIES, jobs=JOBS, broken=BROKEN, age=AGES)
def test_a_set_gets_ready_with_the_data_that_its_spec_names(
    history: list[tuple[str, Any]], jobs: list[tuple[str, bool]], broken: set[int], age: int
) -> None:
    world = begun(jobs, broken, age)
    live(world, history)
    world.heal()
    assert world.record.phase is SetPhase.READY
    assert world.record.synced
    assert world.record.digest == world.digest
    assert len(world.servers) == world.replicas == world.spec.partitions
    assert world.labelled == {f"n{index}": f"pod-{index}" for index in world.servers}
    assert [job.record.phase for job in world.jobs] == [SampleJobPhase.SUCCEEDED] * len(world.jobs)


@settings(UNHURRIED, max_examples=100)
@given(history=HISTORIES, jobs=JOBS, broken=BROKEN, age=AGES)
def test_options_are_posted_again_only_to_a_server_that_lost_them(
    history: list[tuple[str, Any]], jobs: list[tuple[str, bool]], broken: set[int], age: int
) -> None:
    world = begun(jobs, broken, age)
    live(world, history)
    world.heal()
    for (_, _, index), times in world.posted.items():
        assert times <= 1 + world.lost[index]


@settings(UNHURRIED, max_examples=100)
@given(history=HISTORIES, jobs=JOBS, broken=BROKEN, age=AGES, later=HISTORIES)
@example(history=[], jobs=[], broken=set(), age=0, later=[("set", None), ("relabel", 0)])
@example(history=[("set", None)], jobs=[], broken=set(), age=0, later=[("relabel", 0)])
def test_a_deleted_set_leaves_no_objects_and_no_waiting_jobs(
    history: list[tuple[str, Any]],
    jobs: list[tuple[str, bool]],
    broken: set[int],
    age: int,
    later: list[tuple[str, Any]],
) -> None:
    world = begun(jobs, broken, age)
    live(world, history)
    world.deleted = True
    live(world, later)
    world.heal()
    assert world.gone
    assert (world.objects, world.servers, world.labelled) == (set(), {}, {})
    followed = {SampleJobPhase.PENDING, SampleJobPhase.RUNNING}
    assert not followed & {job.record.phase for job in world.jobs}


def test_a_source_that_changes_while_it_is_synced_is_synced_too() -> None:
    """The source is frozen once the set is ready, so the data must come from the source that the spec names then."""
    world = World()
    while world.record.phase is not SetPhase.SYNCING:
        world.turn(0)
    first = world.digest
    world.edit(source=source(1))
    assert world.digest == source(1)
    world.heal()
    assert (world.record.phase, world.record.digest) == (SetPhase.READY, source(1))
    assert [options for options, _, _ in world.posted] == [first, source(1)]
