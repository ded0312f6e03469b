"""The load, the plan and the kills of `python -m bench soak`, without a gateway."""

import asyncio
import json
from dataclasses import asdict
from typing import Any

import pytest

from bench.measuring.client import MeasurementFailed
from bench.measuring.processes import tree
from bench.soak.gateway import kill_tree
from bench.soak.load import Answers, SoakLoad, SoakRates, figures
from bench.soak.run import SoakPlan, task_group
from tests.support.waiting import until

RATES = SoakRates(submissions=1, polls=1, submitters=1, pollers=1, live=1, pods_every=1)
NONE = asdict(Answers(done=0, retries=0, broken=0, refused=0, p50=0, p99=0, codes={}))
TOLD: dict[str, Any] = {
    "submit": NONE,
    "poll": NONE,
    "delete": NONE,
    "submitted": 3,
    "unanswered": 0,
    "seconds": 1,
    "cpu": 1,
}


async def shell(script: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec("sh", "-c", script, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize(
    ("seconds", "kill_every", "kills", "after"),
    [(1800, 60, 20, 600), (81, 18, 3, 27), (48, 60, 0, 48), (90, 60, 1, 30), (170, 60, 1, 110), (90, 0, 0, 90)],
)
def test_a_plan_lasts_as_long_as_it_says(seconds: float, kill_every: float, kills: int, after: float) -> None:
    plan = SoakPlan(rates=RATES, seconds=seconds, kill_every=kill_every)
    assert (plan.kills, plan.seconds_after_kills) == (kills, after)


def test_an_error_that_is_cut_within_a_character_is_readable() -> None:
    line = json.dumps(TOLD | {"error": "caf?"}).encode().replace(b"?", "é".encode()[:1])
    assert figures(line).error == "caf\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 3 2 1; echo load: out of memory >&2; exit 2", "load: out of memory"),
        ("echo 3 2 1", "the load client ended with status 0"),
    ],
)
async def test_a_client_that_ends_early_fails_the_run_with_its_own_error(script: str, said: str) -> None:
    load = SoakLoad(await shell(script))

    async def endless() -> None:
        async with task_group() as group:
            group.create_task(load.follow())
            await asyncio.Event().wait()

    with pytest.raises(MeasurementFailed) as failed:
        await endless()
    assert str(failed.value) == said
    assert (load.accepted, load.deleted, load.polled) == (3, 2, 1)


async def test_a_client_that_is_asked_to_end_says_what_it_counted() -> None:
    load = SoakLoad(await shell(f"cat; echo '{json.dumps(TOLD | {'error': ''})}'"))
    async with task_group() as group:
        told = await load.end(group.create_task(load.follow()))
    assert told.submitted == 3


async def test_a_client_that_fails_at_the_end_fails_the_run_with_its_own_error() -> None:
    load = SoakLoad(await shell("cat; echo load: no more threads >&2; exit 2"))

    async def whole() -> None:
        async with task_group() as group:
            await load.end(group.create_task(load.follow()))

    with pytest.raises(MeasurementFailed, match="no more threads"):
        await whole()


async def test_the_error_of_the_block_is_raised_as_it_is() -> None:
    async def block() -> None:
        async with task_group() as group:
            group.create_task(asyncio.Event().wait())
            raise MeasurementFailed("the block")

    with pytest.raises(MeasurementFailed, match="the block"):
        await block()


async def test_a_supervisor_that_replaces_its_children_leaves_none_when_its_tree_is_killed() -> None:
    process = await shell("while :; do sleep 600 & wait; done")
    await until(lambda: len(tree(process.pid)) == 2)
    await kill_tree(process.pid)
    assert process.stdout is not None
    assert await process.stdout.read() == b""  # it ends when no process has it open
    assert await process.wait() == -9
