"""What `until` returns, and how it fails."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.waiting import until


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_first_true_value_is_returned(*, asynchronous: bool) -> None:
    values = iter([0, None, 3, 4])

    async def read() -> int | None:
        return next(values)

    assert await until(read if asynchronous else lambda: next(values), every=0) == 3


async def test_the_first_wanted_value_is_returned() -> None:
    values = iter([3, None, 1, 0])
    assert await until(lambda: next(values), lambda value: value < 3, every=0) == 1


@pytest.mark.parametrize("what", ["three calls", lambda: "three calls"])
async def test_a_failure_names_what_was_awaited_and_the_last_value(what: str | Callable[[], str]) -> None:
    with pytest.raises(AssertionError) as failure:
        await until(lambda: {"calls": 2}, lambda value: value["calls"] == 3, what=what, within=0.01, every=0)
    assert str(failure.value) == "after 0.01 s the last value is {'calls': 2}; awaited: three calls"


async def test_a_failure_without_a_text_names_the_function() -> None:
    def has_ended() -> bool:
        return False

    with pytest.raises(AssertionError, match=r"last value is False; awaited: .*has_ended"):
        await until(has_ended, within=0.01, every=0)


async def test_a_read_that_hangs_ends_at_the_deadline() -> None:
    with pytest.raises(AssertionError, match="the last value is None"):
        await until(asyncio.Event().wait, within=0.01)


async def test_an_error_of_the_read_is_not_a_missed_deadline() -> None:
    async def read() -> Any:
        raise TimeoutError("the server does not answer")

    with pytest.raises(TimeoutError, match="the server does not answer"):
        await until(read)


@pytest.mark.parametrize(("every", "expected"), [(None, [0.02, 0.03, 0.045, 0.25]), (0.5, [0.5] * 4)])
async def test_pauses_grow_to_a_bound_unless_they_are_fixed(
    every: float | None, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    await until(lambda: len(pauses) > 20, every=every)
    assert [*pauses[:3], pauses[-1]] == pytest.approx(expected)
