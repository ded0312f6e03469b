"""Logs take turns to be read, and do not all begin in the same moment."""

import asyncio

import pytest

from app.base.cancellation import TaskGroup
from app.loops.logs import slots
from app.loops.logs.slots import ReadSlots
from tests.support.waiting import until

LOGS = 25


@pytest.mark.parametrize(("pause", "begun"), [(3600.0, slots._BEGIN_AT_ONCE), (0.01, LOGS)])
async def test_few_logs_begin_at_once(monkeypatch: pytest.MonkeyPatch, pause: float, begun: int) -> None:
    monkeypatch.setattr(slots, "_BEGIN_EVERY", pause)
    places, reading = ReadSlots(LOGS), list[int]()

    async def read(number: int) -> None:
        async with places.take():
            reading.append(number)
            await asyncio.Event().wait()

    async with TaskGroup() as group:
        tasks = [group.create_task(read(number)) for number in range(LOGS)]
        await until(lambda: len(reading) == begun and places.waiting == 0, what="logs are read")
        assert reading == list(range(begun))
        for task in tasks:
            task.cancel()
    assert places.reading == 0


async def test_a_log_gives_its_place_to_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_TURN", 0.0)
    places = ReadSlots(1)

    async def read() -> bool:
        async with places.take() as turn:
            return turn.is_over

    async with TaskGroup() as group, places.take() as turn:
        assert (turn.left, turn.is_over) == (0.0, False), "nobody waits"
        other = group.create_task(read())
        await until(lambda: places.waiting, what="another log waits")
        assert turn.is_over
    assert not other.result()
