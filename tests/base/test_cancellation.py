"""A cancellation ends a task even if code turns it into an error."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from app.base.cancellation import CancellationFirst, TaskGroup, rounds

Body = Callable[[], Coroutine[None, None, None]]


async def answers_with_an_error() -> None:
    """Turn a cancellation into an error, as a driver does whose clean-up fails."""
    try:
        await asyncio.Event().wait()
    finally:
        raise ConnectionError


async def has_a_child_that_fails_when_cancelled() -> None:
    """Run a child that fails when cancelled: the TaskGroup reports that error and not its own cancellation."""
    async with TaskGroup() as group:
        group.create_task(answers_with_an_error())


async def loop_over(body: Body) -> None:
    for _ in rounds():
        try:
            await body()
        except* ConnectionError:
            pass


async def leave(body: Body) -> None:
    with CancellationFirst():
        await body()


@pytest.mark.parametrize("body", [answers_with_an_error, has_a_child_that_fails_when_cancelled])
@pytest.mark.parametrize("user", [loop_over, leave])
async def test_a_swallowed_cancellation_ends_the_task(
    user: Callable[[Body], Coroutine[None, None, None]], body: Body
) -> None:
    task = asyncio.get_running_loop().create_task(user(body))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()


async def test_a_loop_continues_after_an_error() -> None:
    seen = 0
    for _ in rounds():
        seen += 1
        if seen == 3:
            break
    assert seen == 3


async def fail_later() -> None:
    await asyncio.sleep(0)
    raise ConnectionError


async def fails_while_its_parent_waits() -> None:
    async with TaskGroup() as group:
        group.create_task(fail_later())


async def fails_while_its_parent_works() -> None:
    async with TaskGroup() as group:
        group.create_task(fail_later())
        await asyncio.Event().wait()


@pytest.mark.parametrize("body", [fails_while_its_parent_waits, fails_while_its_parent_works])
async def test_a_loop_continues_after_a_task_group_whose_child_failed(body: Body) -> None:
    """The group cancels its parent to end the block, which is not a request to end the loop."""
    seen = 0
    for _ in rounds():
        seen += 1
        if seen == 3:
            break
        with pytest.raises(ExceptionGroup):
            await body()
    assert seen == 3


async def test_an_error_without_a_cancellation_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), CancellationFirst():
        raise ZeroDivisionError


async def test_a_timeout_around_both_raises_a_timeout_error() -> None:
    for user in (loop_over, leave):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await user(answers_with_an_error)


async def test_clean_up_of_a_cancelled_task_may_handle_errors() -> None:
    """The cancellation that causes the clean-up does not end loops inside the clean-up."""
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(ZeroDivisionError), CancellationFirst():
                raise ZeroDivisionError
            for _ in rounds():
                cleaned.append(True)
                break

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=60)
    assert task.cancelled()
    assert cleaned == [True]


def test_both_helpers_work_without_an_event_loop() -> None:
    with CancellationFirst():
        assert next(iter(rounds())) is None
