"""One caller with many slices does not delay another one by more than a slice for each step."""

import asyncio
from collections.abc import Hashable

from app.fairness.slices import LONG_ROUND, Slices


class Loop:
    """Slices of an event loop whose time passes only while a task works. `began` has the callers of the slices."""

    def __init__(self) -> None:
        self.slices = Slices(lambda: self._seconds)
        self.began: list[Hashable] = []
        self._seconds = 0.0

    def work(self, seconds: float = 2 * LONG_ROUND) -> None:
        """Use the event loop: by default, for longer than a round should take."""
        self._seconds += seconds

    async def run(self, key: Hashable, slices: int = 1) -> None:
        """Use a number of long slices."""
        for _ in range(slices):
            await self.slices.next(key)
            self.began.append(key)
            self.work()

    async def run_in_steps(self, key: Hashable) -> None:
        """Use one slice for work of five short steps that together are long."""
        await self.slices.next(key)
        self.began.append(key)
        for _ in range(5):
            self.work(LONG_ROUND / 4)
            await asyncio.sleep(0)


async def test_a_caller_with_many_tasks_gets_as_many_slices_as_one_with_one() -> None:
    loop = Loop()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(loop.run("many", 5)) for _ in range(64)]
        await loop.slices.next("many")  # the first round does not know yet that slices are long
        group.create_task(loop.run("one", 5))
        while loop.began.count("one") < 5:
            await asyncio.sleep(0)
        for task in many:
            task.cancel()
    # After the slices of the first round, both take turns.
    first = loop.began.index("one")
    assert loop.began[first:].count("many") <= 6


async def test_only_one_long_slice_begins_in_an_iteration() -> None:
    loop = Loop()
    counts = []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop.run(number, 3)) for number in range(70)]
        while not all(task.done() for task in tasks):
            before = len(loop.began)
            await asyncio.sleep(0)
            counts.append(len(loop.began) - before)
    assert max(counts[3:]) <= 1
    assert len(loop.began) == 210


async def test_a_slice_is_as_long_as_all_steps_of_its_work() -> None:
    """The first step of most requests is short: it does not show that many of them may begin at once."""
    loop = Loop()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(loop.run_in_steps("many")) for _ in range(200)]
        while len(loop.began) < 80:  # from then on, one slice begins in each round
            await asyncio.sleep(0)
        group.create_task(loop.run_in_steps("one"))
        before = len(loop.began)
        while "one" not in loop.began:
            await asyncio.sleep(0)
        for task in many:
            task.cancel()
    assert loop.began[before:].index("one") <= 2


async def test_short_slices_one_at_a_time_do_not_allow_many_long_ones_at_once() -> None:
    loop = Loop()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(loop.run("many"))
        while len(loop.began) < 3:
            await asyncio.sleep(0)
        for _ in range(100):
            await loop.slices.next("one")
            await asyncio.sleep(0)
        loop.began.clear()
        tasks = [group.create_task(loop.run("many")) for _ in range(64)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(loop.began) <= 4
        for task in tasks:
            task.cancel()


async def test_as_many_slices_begin_as_are_short_together() -> None:
    loop, counts = Loop(), []

    async def run(slices: int) -> None:
        for _ in range(slices):
            await loop.slices.next("polls")
            loop.began.append("polls")
            loop.work(LONG_ROUND / 8)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(20)) for _ in range(64)]
        while not all(task.done() for task in tasks):
            before = len(loop.began)
            await asyncio.sleep(0)
            counts.append(len(loop.began) - before)
    assert all(4 <= count <= 16 for count in counts[4:-4] if count)


async def test_a_request_waits_for_few_slices_of_others_however_many_steps_it_has() -> None:
    loop = Loop()
    async with asyncio.TaskGroup() as group:
        many = [group.create_task(loop.run("many", 50)) for _ in range(16)]
        while len(loop.began) < 20:  # from then on, one slice begins in each round
            await asyncio.sleep(0)
        await loop.slices.next("one")
        before = len(loop.began)
        for _ in range(10):
            loop.work(LONG_ROUND / 10)
            await asyncio.sleep(0)
        after = len(loop.began)
        for task in many:
            task.cancel()
    assert after - before <= 2


async def test_slices_begin_although_the_loop_is_never_quiet() -> None:
    loop = Loop()

    async def never_ends() -> None:
        while True:
            loop.work()
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        other = group.create_task(never_ends())
        many = [group.create_task(loop.run(number, 2)) for number in range(3)]
        await asyncio.wait(many)
        other.cancel()
    assert len(loop.began) == 6


async def test_short_slices_do_not_wait_for_iterations() -> None:
    loop, iterations = Loop(), 0

    async def use() -> None:
        for _ in range(100):
            await loop.slices.next("a")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(use())
        while not task.done():
            iterations += 1
            await asyncio.sleep(0)
    assert iterations < 100


async def test_a_cancelled_slice_takes_no_turn() -> None:
    loop = Loop()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop.run("a")) for _ in range(100)]
        await asyncio.sleep(0)
        for task in tasks[64:]:
            task.cancel()
        group.create_task(loop.run("b"))
    assert loop.began.count("a") == 64
    assert loop.began[-1] == "b"
