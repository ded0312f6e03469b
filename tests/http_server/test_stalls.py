"""The stall watch reports callbacks that block the event loop, and nothing else."""

import asyncio
import time

from app.http_server.stalls import Stall, watch


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))


async def test_a_blocking_callback_is_reported_with_its_stack() -> None:
    found: list[Stall] = []
    with watch(0.1, found.append):
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(burn, 0.3)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(found) == 1
    assert found[0].seconds >= 0.3
    assert "burn" in found[0].callback
    assert "in burn" in found[0].stack


async def test_waiting_is_not_reported() -> None:
    found: list[Stall] = []
    with watch(0.1, found.append):
        await asyncio.to_thread(burn, 0.3)
        asyncio.get_running_loop().call_soon(time.sleep, 0.3)  # like a busy machine: wall time without CPU time
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert found == []


async def test_nothing_is_watched_without_a_limit_or_afterwards() -> None:
    found: list[Stall] = []
    untouched = asyncio.Handle._run
    with watch(0, found.append):
        assert asyncio.Handle._run is untouched
    with watch(0.01, found.append):
        assert asyncio.Handle._run is not untouched
    assert asyncio.Handle._run is untouched
    burn(0.1)
    assert found == []
