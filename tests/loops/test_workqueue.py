"""Each key waits once, is with one worker, and comes when it is due; groups take turns."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import TaskGroup
from app.base.clock import SystemClock
from app.loops.workqueue import WorkQueue
from tests.k8s.support import ManualClock
from tests.support.telemetry.metrics import value


async def test_a_key_waits_once_and_comes_again_if_added_meanwhile() -> None:
    queue = WorkQueue(ManualClock())
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_the_longest_wait_is_that_of_the_first_ready_key() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock)
    waits = [queue.longest_wait]
    queue.add("a")
    clock.seconds = 5.0
    queue.add("b")
    clock.seconds = 7.0
    waits.append(queue.longest_wait)
    await queue.get()
    waits.append(queue.longest_wait)
    assert waits == [None, 7.0, 2.0]


async def test_groups_take_turns() -> None:
    queue = WorkQueue(ManualClock(), group_of=lambda key: key[0])
    for key in ["a1", "a2", "a3", "a4", "b1", "c1", "c2"]:
        queue.add(key)
    assert await queue.get_batch(3) == ["a1", "b1", "c1"]
    queue.add("b2")
    assert await queue.get_batch(10) == ["a2", "c2", "b2", "a3", "a4"]


async def test_a_waiting_worker_is_woken() -> None:
    queue = WorkQueue(ManualClock())
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add("a")
        queue.add("b")
    assert {worker.result() for worker in workers} == {"a", "b"}


def test_delayed_keys_are_ready_when_due_and_the_earliest_delay_counts() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    queue.add_after("b", 7)
    assert queue.bring_due() == 5
    clock.seconds = 5
    assert queue.bring_due() == 2
    assert len(queue) == 1
    clock.seconds = 30
    assert queue.bring_due() is None
    assert len(queue) == 2


def test_each_failure_doubles_the_delay_until_forget() -> None:
    clock = ManualClock()
    queue = WorkQueue(clock, backoff=ExponentialBackoff(first=1.0, longest=10.0))
    waits = []
    for _ in range(6):
        queue.add_rate_limited("a")
        wait = queue.bring_due()
        assert wait is not None
        waits.append(wait)
        clock.seconds += wait
        queue.bring_due()
    assert waits == [1, 2, 4, 8, 10, 10]
    assert queue.failures("a") == 6
    queue.forget("a")
    queue.add_rate_limited("a")
    assert queue.bring_due() == 1


async def test_run_makes_delayed_keys_ready() -> None:
    queue = WorkQueue(SystemClock())
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = group.create_task(queue.run())
        queue.add_after("late", 3600)
        await asyncio.sleep(0)
        queue.add_after("soon", 0.01)
        assert await queue.get() == "soon"
        running.cancel()


KEYS = st.sampled_from(["a1", "a2", "b1", "b2", "c1"])
OPERATIONS = st.lists(
    st.tuples(st.just("add"), KEYS)
    | st.tuples(st.just("after"), KEYS)
    | st.tuples(st.just("take"), KEYS)
    | st.tuples(st.just("done"), KEYS),
    max_size=60,
)


@given(OPERATIONS)
def test_no_added_key_is_lost_and_no_two_workers_have_the_same_key(operations: list[tuple[str, str]]) -> None:
    async def play() -> None:
        clock = ManualClock()
        queue = WorkQueue(clock, group_of=lambda key: key[0])
        held: set[str] = set()
        wanted: set[str] = set()
        for operation, key in operations:
            if operation == "add":
                queue.add(key)
                wanted.add(key)
            elif operation == "after":
                queue.add_after(key, 1)
                wanted.add(key)
            elif operation == "take" and len(queue):
                taken = await queue.get()
                assert taken not in held
                held.add(taken)
                wanted.discard(taken)
            elif operation == "done" and key in held:
                held.discard(key)
                queue.done(key)
        for key in held:
            queue.done(key)
        clock.seconds += 2
        queue.bring_due()
        left = set(await queue.get_batch(100)) if len(queue) else set()
        assert wanted <= left

    asyncio.run(play())


async def test_metrics_have_the_meaning_of_those_of_client_go() -> None:
    """The wait counts from the addition, also of a key that is in work, and the work from `get` to `done`."""
    clock = ManualClock()
    queue = WorkQueue(clock, name="test")
    names = {"name": "test"}
    queue.add("a")
    queue.add("a")
    clock.seconds = 3
    await queue.get()
    clock.seconds = 4
    queue.add("a")
    clock.seconds = 8
    queue.done("a")
    clock.seconds = 10
    await queue.get()
    queue.add_rate_limited("a")
    assert value("jobgate_workqueue_adds_total", **names) == 2
    assert value("jobgate_workqueue_retries_total", **names) == 1
    assert value("jobgate_workqueue_queue_duration_seconds_sum", **names) == 3 + 6
    assert value("jobgate_workqueue_queue_duration_seconds_count", **names) == 2
    assert value("jobgate_workqueue_work_duration_seconds_sum", **names) == 5
    async with TaskGroup() as group:
        run = group.create_task(queue.run())
        await asyncio.sleep(0)
        clock.seconds = 12
        queue.add("b")
        assert value("jobgate_workqueue_depth", **names) == 1
        assert value("jobgate_workqueue_unfinished_work_seconds", **names) == 2
        assert value("jobgate_workqueue_longest_running_processor_seconds", **names) == 2
        run.cancel()
