"""Lookups that share statements: what each sees, and what the failure or the cancellation of one means for others."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.group_read import MAX_STATEMENTS, GroupRead
from tests.support.waiting import until

T = TypeVar("T")
NEVER = 1e9  # seconds
MAX_KEYS = 3


@dataclass(slots=True)
class Statement:
    """A statement under way. It reads what was committed when it was sent."""

    keys: Sequence[str]
    sees: int
    ends: asyncio.Future[None]


@dataclass(slots=True)
class Store:
    """A database whose statements the test ends. Each commit changes the version of every key that begins with `k`."""

    committed: int = 0
    open: list[Statement] = field(default_factory=list)
    sent: int = 0

    async def read(self, keys: Sequence[str]) -> Mapping[str, int]:
        statement = Statement(keys, self.committed, asyncio.get_running_loop().create_future())
        self.open.append(statement)
        self.sent += 1
        try:
            await statement.ends
        finally:
            self.open.remove(statement)
        return {key: statement.sees for key in keys if key.startswith("k")}

    async def answer_all(self, lookups: Sequence["asyncio.Task[Any]"]) -> None:
        def done() -> bool:
            for statement in self.open:
                if not statement.ends.done():
                    statement.ends.set_result(None)
            return all(lookup.done() for lookup in lookups)

        await until(done, what="the end of all lookups", every=0)


def task_of(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    return asyncio.get_running_loop().create_task(work)


Step: TypeAlias = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["get", "get", "get", "commit", "cancel", "end", "fail"]), st.integers(0, 5)), max_size=40
)


@given(steps=STEPS, patience=st.sampled_from([0.0, NEVER]))
def test_each_lookup_is_answered_once_by_a_statement_sent_after_it(steps: list[Step], patience: float) -> None:
    asyncio.run(_check(steps, patience))


async def _check(steps: list[Step], patience: float) -> None:
    story = Story(patience)
    running = task_of(story.group.run())
    for step in steps:
        story.act(*step)
        await _settle()
        assert len(story.store.open) <= (MAX_STATEMENTS if patience == 0 else 1)
        for statement in story.store.open:
            assert len(statement.keys) == len(set(statement.keys)) <= MAX_KEYS
    await story.store.answer_all([lookup for _, _, lookup in story.lookups])
    story.check()
    running.cancel()
    await asyncio.wait({running})


class Story:
    """Lookups, commits and ends of statements in any order."""

    def __init__(self, patience: float) -> None:
        self.store = Store()
        self.group = GroupRead[str, int](self.store.read, max_wait=NEVER, max_keys=MAX_KEYS, patience=patience)
        # Key, what was committed before the lookup, and the lookup.
        self.lookups: list[tuple[str, int, asyncio.Task[Any]]] = []
        self.failed: set[str] = set()

    def act(self, name: str, number: int) -> None:
        if name == "get":
            key = "absent" if number == 0 else f"k{number}"
            self.lookups.append((key, self.store.committed, task_of(_outcome(self.group, key))))
        elif name == "commit":
            self.store.committed += 1
        elif name == "cancel" and self.lookups:
            self.lookups[number % len(self.lookups)][2].cancel()
        elif name in ("end", "fail") and self.store.open:
            self._end(self.store.open[number % len(self.store.open)], fails=name == "fail")

    def _end(self, statement: Statement, *, fails: bool) -> None:
        if fails:
            self.failed.update(statement.keys)
            statement.ends.set_exception(DatabaseUnavailable("no answer"))
        else:
            statement.ends.set_result(None)

    def check(self) -> None:
        for key, before, lookup in self.lookups:
            outcome = None if lookup.cancelled() else lookup.result()
            if isinstance(outcome, DatabaseUnavailable):
                assert key in self.failed
            elif key == "absent" or lookup.cancelled():
                assert outcome is None
            else:
                assert outcome is not None
                assert outcome >= before


async def _outcome(group: GroupRead[str, int], key: str) -> int | DatabaseUnavailable | None:
    try:
        return await group.get(key)
    except DatabaseUnavailable as error:
        return error


async def _settle() -> None:
    """Let the tasks of the event loop run until each waits for the test."""
    for _ in range(12):
        await asyncio.sleep(0)


async def test_lookups_during_a_statement_share_the_next_one() -> None:
    store = Store()
    group = GroupRead[str, int](store.read, max_wait=NEVER, patience=NEVER)
    running = task_of(group.run())
    first = task_of(group.get("k1"))
    await _settle()
    assert [statement.keys for statement in store.open] == [["k1"]]
    store.committed += 1
    later = [task_of(group.get(key)) for key in ("k1", "k2", "k1")]
    await _settle()
    await store.answer_all([first, *later])
    assert ([await first], [await one for one in later], store.sent) == ([0], [1, 1, 1], 2)
    running.cancel()


async def test_the_cancellation_of_a_lookup_does_not_concern_others() -> None:
    store = Store()
    group = GroupRead[str, int](store.read, max_wait=NEVER, patience=NEVER)
    running = task_of(group.run())
    gone, stays = task_of(group.get("k1")), task_of(group.get("k1"))
    await _settle()
    gone.cancel()
    await _settle()
    await store.answer_all([gone, stays])
    assert gone.cancelled()
    assert (await stays, store.sent) == (0, 1)
    running.cancel()


async def test_a_statement_without_an_answer_does_not_hold_up_later_lookups() -> None:
    store = Store()
    group = GroupRead[str, int](store.read, max_wait=NEVER, patience=0.001)
    running = task_of(group.run())
    stuck = task_of(group.get("k1"))
    await until(lambda: len(store.open) == 1)
    later = task_of(group.get("k1"))
    await until(lambda: len(store.open) == 2)
    store.open[1].ends.set_result(None)
    assert await later == 0
    assert not stuck.done()
    await store.answer_all([stuck])
    running.cancel()


async def test_an_unavailable_database_fails_also_the_lookups_that_have_waited_long() -> None:
    store = Store()
    group = GroupRead[str, int](store.read, max_wait=0, patience=NEVER)
    running = task_of(group.run())
    lookups = [task_of(group.get("k1"))]
    await _settle()
    lookups.append(task_of(group.get("k2")))
    await _settle()
    store.open[0].ends.set_exception(DatabaseUnavailable("no connection"))
    await asyncio.wait(lookups)
    assert [type(lookup.exception()) for lookup in lookups] == [DatabaseUnavailable] * 2
    assert store.sent == 1
    running.cancel()


async def test_a_key_that_cannot_be_read_fails_alone() -> None:
    async def read(keys: Sequence[str]) -> Mapping[str, int]:
        if "bad" in keys:
            raise ValueError("a bad key")
        return dict.fromkeys(keys, 7)

    group = GroupRead[str, int](read, max_wait=NEVER)
    lookups = [task_of(group.get(key)) for key in ("k1", "bad", "k2")]
    await _settle()
    running = task_of(group.run())
    await asyncio.wait(lookups)
    assert [await lookups[0], await lookups[2]] == [7, 7]
    assert isinstance(lookups[1].exception(), ValueError)
    running.cancel()


async def test_the_end_refuses_all_lookups_and_a_new_run_answers_again() -> None:
    store = Store()
    group = GroupRead[str, int](store.read, max_wait=NEVER, max_keys=1, patience=NEVER)
    running = task_of(group.run())
    lookups = [task_of(group.get(key)) for key in ("k1", "k2")]
    await _settle()
    running.cancel()
    await asyncio.wait({running, *lookups})
    lookups.append(task_of(group.get("k3")))
    await asyncio.wait(lookups)
    assert [type(lookup.exception()) for lookup in lookups] == [DatabaseUnavailable] * 3
    running = task_of(group.run())
    await _settle()
    again = task_of(group.get("k1"))
    await _settle()
    await store.answer_all([again])
    assert await again == 0
    running.cancel()
