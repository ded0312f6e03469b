"""At most AT_ONCE logs of a node are read at once, and those of other nodes do not wait for them."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.loops.jobs.evidence import node_turns
from app.loops.jobs.evidence.node_turns import AT_ONCE, NodeTurns, NoTurn


async def test_a_block_waits_only_for_those_of_its_node() -> None:
    turns = NodeTurns()
    order: list[str] = []

    async def block(node: str) -> None:
        async with turns.turn(node):
            order.append(node)

    async with asyncio.TaskGroup() as group, AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(turns.turn("busy"))
        waiting = group.create_task(block("busy"))
        await group.create_task(block("idle"))
        assert not waiting.done()
        assert order == ["idle"]
    assert order == ["idle", "busy"]


async def test_a_block_whose_turn_does_not_come_fails_and_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_turns, "LONGEST_WAIT", 0.0)
    turns = NodeTurns()
    async with AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(turns.turn("busy"))
        with pytest.raises(NoTurn):
            await held.enter_async_context(turns.turn("busy"))
    async with AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(turns.turn("busy"))


async def test_nodes_without_a_block_take_no_memory() -> None:
    turns = NodeTurns()
    for number in range(100):
        async with turns.turn(f"node-{number}"):
            pass
    assert len(turns._slots) <= 1
