"""The turns of requests at work that one process can do only a little of at a time."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from app.base.cancellation import TaskGroup
from app.services.limits.turns import Overloaded, Turns
from tests.support.waiting import until


class Requests:
    """Requests that hold their turn until they are released.

    `ran` has their tokens in the order in which they ran. `outcomes` has one word for each request, in the order in
    which they were sent.
    """

    def __init__(self, turns: Turns, group: TaskGroup) -> None:
        self.ran: list[str] = []
        self.outcomes: list[str] = []
        self._turns = turns
        self._group = group
        self._release = asyncio.Event()

    async def send(self, tokens: str) -> list[asyncio.Task[None]]:
        """Start a request of each token, and return when all of them run, wait or are refused."""
        tasks = [self._group.create_task(self._run(token)) for token in tokens]
        await asyncio.sleep(0)  # each task runs up to its first wait
        return tasks

    def release(self) -> None:
        self._release.set()

    async def _run(self, token: str) -> None:
        place = len(self.outcomes)
        self.outcomes.append("cancelled")
        try:
            async with self._turns.turn(token):
                self.ran.append(token)
                await self._release.wait()
        except Overloaded:
            self.outcomes[place] = "refused"
        else:
            self.outcomes[place] = "ran"


def refusals(work: str) -> float:
    return REGISTRY.get_sample_value("jobgate_overload_refusals_total", {"work": work}) or 0.0


async def test_a_token_with_many_requests_delays_another_by_one() -> None:
    turns = Turns("work", at_once=1, max_waiting=10)
    async with TaskGroup() as group:
        requests = Requests(turns, group)
        await requests.send("aaaab")
        assert (requests.ran, turns.waiting) == (["a"], 4)
        requests.release()
    assert requests.outcomes == ["ran"] * 5
    assert requests.ran == ["a", "a", "b", "a", "a"]


async def test_only_the_token_that_fills_the_queue_is_refused() -> None:
    async with TaskGroup() as group:
        requests = Requests(Turns("refusals", at_once=1, max_waiting=3), group)
        await requests.send("aaaaab")
        requests.release()
    assert requests.outcomes == ["ran", "ran", "ran", "refused", "refused", "ran"]
    assert refusals("refusals") == 2


async def test_the_error_says_what_to_do() -> None:
    turns = Turns("submissions", at_once=1, max_waiting=1)
    async with TaskGroup() as group:
        requests = Requests(turns, group)
        await requests.send("aa")
        with pytest.raises(Overloaded, match="too many waiting submissions: repeat the request later"):
            async with turns.turn("a"):
                pytest.fail("the block must not start")
        requests.release()


@pytest.mark.parametrize("cancelled", [0, 1, 2], ids=["the one that runs", "the next one", "the last one"])
async def test_a_cancelled_request_leaves_its_turn_to_the_next(cancelled: int) -> None:
    turns = Turns("work", at_once=1, max_waiting=10)
    async with TaskGroup() as group:
        requests = Requests(turns, group)
        tasks = await requests.send("aaa")
        tasks[cancelled].cancel()
        requests.release()
    assert sorted(requests.outcomes) == ["cancelled", "ran", "ran"]
    assert requests.outcomes[cancelled] == "cancelled"
    async with turns.turn("a"):
        assert turns.waiting == 0


@pytest.mark.parametrize("has_turn", [True, False], ids=["it has the turn", "it is still in the queue"])
async def test_a_request_that_is_cancelled_when_its_turn_comes_keeps_no_turn(*, has_turn: bool) -> None:
    turns = Turns("work", at_once=1, max_waiting=10)
    async with TaskGroup() as group:
        requests = Requests(turns, group)
        async with turns.turn("a"):
            first, _ = await requests.send("aa")
            if not has_turn:
                first.cancel()
        # The end of the block gives the turn to the first request, which has not run since.
        first.cancel()
        await until(lambda: requests.ran, what="the second request runs")
        requests.release()
    assert requests.outcomes == ["cancelled", "ran"]


async def test_a_request_that_waits_for_too_long_is_refused() -> None:
    turns = Turns("work", at_once=1, max_waiting=10, max_seconds=0.01)
    async with TaskGroup() as group, turns.turn("a"):
        requests = Requests(turns, group)
        requests.release()
        await requests.send("ab")
        await until(lambda: requests.outcomes == ["refused", "refused"], what="both are refused")
    assert (requests.ran, turns.waiting) == ([], 0)
    async with turns.turn("a"):
        assert turns.waiting == 0


async def test_an_error_in_the_block_ends_the_turn() -> None:
    turns = Turns("work", at_once=1, max_waiting=1)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn("a"):
            raise ZeroDivisionError
    async with turns.turn("b"):
        assert turns.waiting == 0
