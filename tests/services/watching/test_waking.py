"""What a wake-up does to a request that waits, that has not waited yet, or whose wait is over."""

import asyncio
import weakref
from dataclasses import dataclass, field

import pytest

from app.services.watching.waking import Waiter

LONG = 600.0  # seconds; no test waits for them


@dataclass(frozen=True, kw_only=True)
class Case:
    """Wake-ups before a wait and during it, with the results of `serve`, or None if the request has none.

    `ends` says whether the wait ends, and `served` how often `serve` is called.
    """

    before: int = 0
    during: int = 0
    serve: tuple[bool, ...] | None = ()
    ends: bool
    served: int = 0


CASES = {
    "a wait without a wake-up goes on": Case(ends=False),
    "a wake-up before the wait ends it": Case(before=1, ends=True),
    "several wake-ups before the wait end it": Case(before=3, ends=True),
    "a wake-up ends a wait that nothing serves": Case(during=1, serve=None, ends=True),
    "a served wake-up does not end the wait": Case(during=1, serve=(True,), ends=False, served=1),
    "each wake-up is served": Case(during=3, serve=(True, True, True), ends=False, served=3),
    "a wake-up that cannot be served ends the wait": Case(during=1, serve=(False,), ends=True, served=1),
    "it also does so after served ones": Case(during=3, serve=(True, True, False), ends=True, served=3),
    "a wait that is over serves no more": Case(during=2, serve=(False, True), ends=True, served=1),
}


@dataclass
class Server:
    """A `serve` with the given results."""

    results: tuple[bool, ...]
    at: list[float] = field(default_factory=list)

    def __call__(self) -> bool:
        self.at.append(asyncio.get_running_loop().time())
        return self.results[len(self.at) - 1]


async def turns() -> None:
    """Let the tasks run that can run."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_wake_up_is_served_or_ends_one_wait(case: Case) -> None:
    waiter, serve = Waiter(), None if case.serve is None else Server(case.serve)
    for _ in range(case.before):
        waiter.wake()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(waiter.wait(LONG, serve))
        await turns()
        for _ in range(case.during):
            waiter.wake()
        await turns()
        assert waiting.done() is case.ends
        assert (len(serve.at) if serve else 0) == case.served
        assert waiter.is_idle
        if case.ends:
            assert waiting.result() is True
            waiting = group.create_task(waiter.wait(LONG))
            await turns()
            assert not waiting.done(), "a wake-up ends only one wait"
        waiting.cancel()


async def test_a_cancelled_wait_serves_no_more_and_leaves_its_wake_up_to_the_next() -> None:
    waiter, serve = Waiter(), Server(())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(waiter.wait(LONG, serve))
        await turns()
        waiting.cancel()
        waiter.wake()  # the task has not run since
    assert waiting.cancelled()
    assert not waiter.is_idle
    assert await waiter.wait(LONG, serve) is True
    waiter.wake()
    assert not serve.at


async def test_a_wait_ends_after_its_seconds() -> None:
    waiter = Waiter()
    assert await waiter.wait(0.01) is False
    assert waiter.is_idle
    waiter.wake()
    assert await waiter.wait(LONG) is True


async def test_a_waiter_keeps_no_request_whose_wait_is_over() -> None:
    waiter, serve = Waiter(), Server(())
    kept = weakref.ref(serve)
    await waiter.wait(0.01, serve)
    del serve
    assert kept() is None


async def test_a_served_wake_up_begins_the_seconds_again() -> None:
    waiter, serve = Waiter(), Server((True,))
    loop, seconds = asyncio.get_running_loop(), 0.2
    loop.call_later(seconds / 2, waiter.wake)
    assert await waiter.wait(seconds, serve) is False
    (served_at,) = serve.at
    assert loop.time() - served_at >= seconds
