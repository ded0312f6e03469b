"""At most AT_ONCE logs of a node are read at once, and those of other nodes do not wait for them."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.loops.jobs.evidence import node_slots
from app.loops.jobs.evidence.node_slots import AT_ONCE, NodeSlots, NoSlot


async def test_a_block_waits_only_for_those_of_its_node() -> None:
    slots = NodeSlots()
    order: list[str] = []

    async def block(node: str) -> None:
        async with slots.slot(node):
            order.append(node)

    async with asyncio.TaskGroup() as group, AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(slots.slot("busy"))
        waiting = group.create_task(block("busy"))
        await group.create_task(block("idle"))
        assert not waiting.done()
        assert order == ["idle"]
    assert order == ["idle", "busy"]


async def test_a_block_that_gets_no_slot_fails_and_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_slots, "LONGEST_WAIT", 0.0)
    slots = NodeSlots()
    async with AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(slots.slot("busy"))
        with pytest.raises(NoSlot):
            await held.enter_async_context(slots.slot("busy"))
    async with AsyncExitStack() as held:
        for _ in range(AT_ONCE):
            await held.enter_async_context(slots.slot("busy"))


async def test_nodes_without_a_block_take_no_memory() -> None:
    slots = NodeSlots()
    for number in range(100):
        async with slots.slot(f"node-{number}"):
            pass
    assert len(slots._slots) <= 1
