"""Answers never hold more than the memory, callers share it, and readers that are slow lose it to others."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from app.fairness import byte_budget, fair_memory
from app.fairness.answer_memory import HeldAnswer, answer_memory
from app.fairness.byte_budget import ByteBudget
from app.fairness.fair_memory import FairMemory, NoRoomError
from tests.support.waiting import until

MAX = 100


@dataclass
class Client:
    """A connection that notes whether it was ended."""

    is_ended: bool = False

    def abort(self) -> None:
        self.is_ended = True

    def is_gone(self) -> bool:
        return self.is_ended


def answer(memory: FairMemory, key: str = "a") -> HeldAnswer:
    return HeldAnswer(memory, key, Client())


async def test_one_caller_holds_at_most_half() -> None:
    memory = answer_memory(MAX)
    first, second, other = answer(memory), answer(memory), answer(memory, "b")
    await first.hold(40)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(second.hold(20))
        await other.hold(50)
        assert not waiting.done()
        first.release()
    assert (memory.budget.held, second.held, other.held) == (70, 20, 50)


async def test_more_than_the_share_of_a_caller_counts_as_the_share() -> None:
    memory = answer_memory(MAX)
    large = answer(memory)
    await large.hold(10 * MAX)
    assert large.held == MAX // 2


async def test_an_answer_changes_what_it_holds_without_waiting() -> None:
    memory = answer_memory(MAX)
    one, other = answer(memory), answer(memory, "b")
    await one.hold(50)
    await other.hold(50)
    await one.hold(60)
    assert memory.budget.held == 110, "it has the bytes already"
    one.resize(5)
    one.release()
    other.release()
    assert memory.budget.held == 0


async def test_callers_that_wait_take_turns() -> None:
    memory = answer_memory(MAX)
    holders = [answer(memory, "x"), answer(memory, "y")]
    for holder in holders:
        await holder.hold(50)
    order: list[str] = []

    async def take(key: str) -> None:
        one = answer(memory, key)
        await one.hold(50)
        order.append(key)
        one.release()

    async with asyncio.TaskGroup() as group:
        for key in ("a", "a", "a", "b"):
            group.create_task(take(key))
        await asyncio.sleep(0)
        holders[0].release()
    assert order[:2] == ["a", "b"]


async def test_a_slow_reader_loses_its_memory_to_an_answer_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(fair_memory, "_SEARCH_SECONDS", 0.01)
    memory = answer_memory(MAX)
    clients = [Client(), Client()]
    slow, busy = (HeldAnswer(memory, key, client) for key, client in zip("ab", clients, strict=True))
    await slow.hold(50)
    await busy.hold(50)
    slow.begin_sending()
    newcomer = answer(memory, "c")
    await newcomer.hold(30)
    assert [client.is_ended for client in clients] == [True, False], "only the one that waits for its client"
    assert memory.budget.held == 80


async def test_a_slow_reader_loses_its_memory_to_another_answer_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(fair_memory, "_SEARCH_SECONDS", 0.01)
    memory = answer_memory(MAX)
    client, stranger = Client(), Client()
    own, other = HeldAnswer(memory, "a", client), HeldAnswer(memory, "b", stranger)
    for slow in (other, own):
        await slow.hold(10)
        slow.begin_sending()
    newcomer = answer(memory)
    await newcomer.hold(50)
    assert (client.is_ended, stranger.is_ended) == (True, False), "the memory itself has room"
    assert memory.budget.held == 60


async def test_all_answers_that_wait_share_the_searches_for_slow_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, wait_seconds, waiting = 0.02, 0.1, 50
    monkeypatch.setattr(fair_memory, "_SEARCH_SECONDS", seconds)
    monkeypatch.setattr(fair_memory, "WAIT_SECONDS", wait_seconds)
    searches: list[float] = []
    evict_slow = ByteBudget.evict_slow

    def count(budget: ByteBudget, now: float, **given: Any) -> None:
        searches.append(now)
        evict_slow(budget, now, **given)

    monkeypatch.setattr(ByteBudget, "evict_slow", count)
    memory = answer_memory(MAX)
    for key in "ab":
        await answer(memory, key).hold(50)
    ends = await asyncio.gather(
        *(answer(memory, f"c{number}").hold(10) for number in range(waiting)), return_exceptions=True
    )
    assert {type(end) for end in ends} == {NoRoomError}
    assert 1 <= len(searches) <= wait_seconds / seconds + 1, "none for the shares, which have room"


async def test_one_search_makes_room_for_all_answers_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_budget, "GRACE_SECONDS", 0.0)
    memory = answer_memory(MAX)
    slow = [answer(memory, f"slow{number}") for number in range(10)]
    for one in slow:
        await one.hold(10)
        one.begin_sending()
    newcomers = [answer(memory, f"c{number}") for number in range(5)]
    async with asyncio.TaskGroup() as group:
        for one in newcomers:
            group.create_task(one.hold(10))
        await until(lambda: any(one.held for one in newcomers), what="the search")
        assert [one.held for one in newcomers] == [10] * 5
    assert [one.held for one in slow] == [0] * 5 + [10] * 5, "the oldest, and no more than needed"


async def test_an_answer_that_finds_no_room_in_time_is_refused_and_holds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_memory, "WAIT_SECONDS", 0.01)
    memory = answer_memory(MAX)
    first, second = answer(memory), answer(memory)
    await first.hold(50)
    with pytest.raises(NoRoomError):
        await second.hold(1)
    first.release()
    assert memory.budget.held == 0


async def test_a_client_that_has_gone_meanwhile_gets_no_memory() -> None:
    memory = answer_memory(MAX)
    first, gone = answer(memory), Client()
    await first.hold(50)
    second = HeldAnswer(memory, "a", gone)
    waiting = asyncio.ensure_future(second.hold(50))  # noqa: TID251 - awaited below
    await until(lambda: not waiting.done(), what="the answer to wait")
    gone.abort()
    first.release()
    with pytest.raises(NoRoomError):
        await waiting
    assert memory.budget.held == 0


async def test_the_newest_of_the_caller_with_the_most_is_refused_if_too_many_wait() -> None:
    memory = FairMemory(MAX, max_waiting=2)
    holders = [answer(memory), answer(memory, "x")]
    for holder in holders:
        await holder.hold(MAX // 2)

    async def is_held(key: str) -> bool:
        try:
            await answer(memory, key).hold(10)
        except NoRoomError:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        first, second = group.create_task(is_held("a")), group.create_task(is_held("a"))
        other = group.create_task(is_held("b"))
        assert await second is False, "it gives way to the other caller"
        holders[0].release()
        assert (await first, await other) == (True, True)
