"""The limiter grows while it is held back, halves when refused, and waits as it is asked to."""

import asyncio

import pytest

from app.k8s.errors import KubeServerError, KubeTooManyRequests
from app.k8s.limiter import CreateLimiter
from tests.k8s.support import ManualClock


async def full_round(limiter: CreateLimiter) -> None:
    """As many requests as the window takes, all at once, all successful."""
    at_once = limiter.window
    for _ in range(at_once):
        await limiter.__aenter__()
    for _ in range(at_once):
        await limiter.__aexit__(None, None, None)


def refused(retry_after: float | None = None) -> KubeTooManyRequests:
    return KubeTooManyRequests(429, "TooManyRequests", "later", retry_after=retry_after)


async def refuse(limiter: CreateLimiter, error: Exception) -> None:
    with pytest.raises(type(error)):
        async with limiter:
            raise error


async def test_the_window_grows_only_while_it_limits_requests() -> None:
    limiter = CreateLimiter(ManualClock(), first=4, most=8)
    async with limiter:
        pass
    assert limiter.window == 4
    for _ in range(10):
        await full_round(limiter)
    assert limiter.window == 8


async def test_a_refusal_halves_the_window_once_a_round_and_slows_its_growth() -> None:
    clock = ManualClock()
    limiter = CreateLimiter(clock, first=8)
    await refuse(limiter, refused())
    await refuse(limiter, refused())
    limiter.slow_down(None)
    assert limiter.window == 4
    clock.seconds += 1.5
    await refuse(limiter, refused())
    assert limiter.window == 2
    await full_round(limiter)
    assert limiter.window == 2
    await full_round(limiter)
    await full_round(limiter)
    assert limiter.window == 3


async def test_the_window_is_at_least_one_and_other_errors_do_not_count() -> None:
    clock = ManualClock()
    limiter = CreateLimiter(clock, first=2)
    for _ in range(5):
        clock.seconds += 2
        await refuse(limiter, refused())
    assert limiter.window == 1
    await refuse(limiter, KubeServerError(500, "", ""))
    assert limiter.window == 1
    await full_round(limiter)


async def test_no_request_starts_before_retry_after() -> None:
    clock = ManualClock()
    limiter = CreateLimiter(clock, sleep=clock.sleep)
    await refuse(limiter, refused(retry_after=6))
    async with limiter:
        assert clock.monotonic() == 6


async def test_a_waiting_request_starts_when_another_ends_and_a_cancelled_one_passes_its_turn_on() -> None:
    limiter = CreateLimiter(ManualClock(), first=1, most=1)
    order: list[str] = []

    async def request(name: str) -> None:
        async with limiter:
            order.append(name)

    async with asyncio.TaskGroup() as group:
        await limiter.__aenter__()
        first = group.create_task(request("first"))
        group.create_task(request("second"))
        await asyncio.sleep(0)
        await limiter.__aexit__(None, None, None)
        first.cancel()
    assert order == ["second"]
    await full_round(limiter)
