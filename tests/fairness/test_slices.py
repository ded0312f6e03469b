"""One caller with many slices does not delay another one by more than a slice for each step."""

import asyncio
import time
from collections.abc import Hashable

from app.fairness.slices import LONG_ROUND, Slices


def work() -> None:
    """Use the event loop for longer than an iteration should take."""
    end = time.perf_counter() + 2 * LONG_ROUND
    while time.perf_counter() < end:
        pass


async def run(slices: Slices, key: Hashable, parts: int, order: list[Hashable]) -> None:
    for _ in range(parts):
        await slices.next(key)
        order.append(key)
        work()


async def test_a_caller_with_many_tasks_gets_as_many_slices_as_one_with_one() -> None:
    slices, order = Slices(), list[Hashable]()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(run(slices, "many", 5, order)) for _ in range(64)]
        await slices.next("many")  # the first round does not know yet that slices are long
        group.create_task(run(slices, "one", 5, order))
        while order.count("one") < 5:
            await asyncio.sleep(0)
        for task in many:
            task.cancel()
    # After the slices of the first round, both take turns.
    first = order.index("one")
    assert order[first:].count("many") <= 6


async def test_only_one_long_slice_begins_in_an_iteration() -> None:
    slices, order = Slices(), list[Hashable]()
    counts = []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(slices, number, 3, order)) for number in range(70)]
        while not all(task.done() for task in tasks):
            before = len(order)
            await asyncio.sleep(0)
            counts.append(len(order) - before)
    assert max(counts[3:]) <= 1
    assert len(order) == 210


async def in_steps(slices: Slices, key: Hashable, began: list[Hashable]) -> None:
    """Take one slice for work of five short steps that together are long."""
    await slices.next(key)
    began.append(key)
    for _ in range(5):
        end = time.perf_counter() + LONG_ROUND / 4
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def test_a_slice_is_as_long_as_all_steps_of_its_work() -> None:
    """The first step of most requests is short: it does not show that many of them may begin at once."""
    slices, began = Slices(), list[Hashable]()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(in_steps(slices, "many", began)) for _ in range(200)]
        while len(began) < 70:  # from then on, one slice begins in each round
            await asyncio.sleep(0)
        one = group.create_task(in_steps(slices, "one", began))
        before = len(began)
        while "one" not in began:
            await asyncio.sleep(0)
        for task in many:
            task.cancel()
    assert one.done()
    assert began[before:].index("one") <= 2


async def test_short_slices_one_at_a_time_do_not_allow_many_long_ones_at_once() -> None:
    slices, order = Slices(), list[Hashable]()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(run(slices, "many", 1, order))
        while len(order) < 3:
            await asyncio.sleep(0)
        for _ in range(100):
            await slices.next("one")
            await asyncio.sleep(0)
        order.clear()
        tasks = [group.create_task(run(slices, "many", 1, order)) for _ in range(64)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(order) <= 4
        for task in tasks:
            task.cancel()


async def test_a_request_waits_for_few_slices_of_others_however_many_steps_it_has() -> None:
    slices, order = Slices(), list[Hashable]()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(run(slices, "many", 50, order)) for _ in range(16)]
        while len(order) < 20:  # from then on, one slice begins in each iteration
            await asyncio.sleep(0)
        await slices.next("one")
        began = len(order)
        for _ in range(10):
            step_end = time.perf_counter() + LONG_ROUND / 5
            while time.perf_counter() < step_end:
                pass
            await asyncio.sleep(0)
        ended = len(order)
        for task in many:
            task.cancel()
    assert ended - began <= 2


async def test_slices_begin_although_the_loop_is_never_quiet() -> None:
    slices, order = Slices(), list[Hashable]()

    async def never_ends() -> None:
        while True:
            work()
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        other = group.create_task(never_ends())
        many = [group.create_task(run(slices, number, 2, order)) for number in range(3)]
        await asyncio.wait(many)
        other.cancel()
    assert len(order) == 6


async def test_short_slices_do_not_wait_for_iterations() -> None:
    slices = Slices()
    began = time.perf_counter()
    iterations = 0

    async def use() -> None:
        for _ in range(100):
            await slices.next("a")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(use())
        while not task.done():
            iterations += 1
            await asyncio.sleep(0)
    assert iterations < 100 or time.perf_counter() - began > 100 * LONG_ROUND


async def test_a_cancelled_slice_takes_no_turn() -> None:
    slices = Slices()
    order: list[Hashable] = []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(slices, "a", 1, order)) for _ in range(100)]
        await asyncio.sleep(0)
        for task in tasks[64:]:
            task.cancel()
        group.create_task(run(slices, "b", 1, order))
    assert order.count("a") == 64
    assert order[-1] == "b"
