"""The watch of one object of every kind: its current state, every change, and its end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from app.api.routes.objects import watch
from app.api.routes.objects.watch import read_state
from app.db.feed import entries
from app.domain.cache.vocabulary import SampleJobPhase
from app.domain.kinds.base import JOBS
from app.domain.vocabulary import JobPhase
from tests.api.long_requests.test_watch import Event, stream, take
from tests.support.gateways.gateway import Gateway
from tests.support.kinds import samples
from tests.support.kinds.every_kind import Collection

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def settle(of: Collection, uid: str) -> None:
    """Store the end of the object and of its objects in the cluster, as the controller does."""
    if of.resource == JOBS:
        await of.gateway.conclude(uid, {"phase": JobPhase.SUCCEEDED, "finished_at": NOW, "quiet": True})
    elif of.kind == "SampleSet":
        assert (await of.delete()).status_code == 202
        await samples.conclude(of.gateway, uid, gone=True)
    else:
        await samples.conclude(of.gateway, uid, {"phase": SampleJobPhase.SUCCEEDED})


async def rest_of(source: AsyncIterator[Event]) -> list[Event]:
    """Return the events until the server closes the stream."""
    async with asyncio.timeout(60):
        return [event async for event in source]


async def test_a_watch_sends_the_state_then_every_change_then_the_end(of: Collection) -> None:
    uid = (await of.submit())["uid"]
    event = of.kind.lower() if of.resource != JOBS else "job"
    async with stream(of.gateway, of.path("one", "watch")) as source:
        ready, state = await take(source, 2)
        assert (ready.name, state.name, state.data["type"]) == ("ready", event, "current")
        assert state.data["object"] == (await of.get("one", "status")).json()
        await of.patch({"metadata": {"labels": {"a": "b"}}})
        # The event of the submission may come after the state, which contains the submission already.
        changes = await take(source, 1)
        if changes[0].data["type"] == "created":
            changes = await take(source, 1)
        assert changes[0].data["type"] == "edited"
        await settle(of, uid)
        *others, end = await rest_of(source)
    assert (end.name, end.data) == ("end", {})
    assert others
    assert {other.name for other in others} == {event}
    assert others[-1].data["object"] == (await of.get("one", "status")).json()


async def test_a_watch_of_an_ended_object_sends_its_state_and_its_end(of: Collection) -> None:
    uid = (await of.submit())["uid"]
    await settle(of, uid)
    events: list[Event] = []
    for url in (of.path("one", "watch"), of.by_uid(uid, "watch")):
        async with stream(of.gateway, url) as source:
            events = await rest_of(source)
        kept = [event for event in events if event.data.get("type") in (None, "current")]
        assert [event.name for event in kept] == ["ready", events[1].name, "end"]
        assert events[1].data["object"] == (await of.get("one", "status")).json()
    async with stream(of.gateway, of.path("one", "watch"), "nonsense") as source:
        reset, state, *_, end = await rest_of(source)
    assert (reset.name, state.data["type"], end.name) == ("reset", "current", "end")


async def test_a_resumed_watch_of_an_ended_object_waits_for_its_last_events(
    of: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_was_read = asyncio.Event()

    async def reading(*arguments: Any) -> Any:
        state = await read_state(*arguments)
        state_was_read.set()
        return state

    monkeypatch.setattr(watch, "read_state", reading)
    position = (await of.get()).headers["jobgate-feed-position"]
    async with AsyncExitStack() as streams:
        async with asyncio.timeout(60), of.gateway.db.begin() as connection:
            # Until the end of this transaction, no publisher numbers the events.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", entries.PUBLISHER_LOCK)
            uid = (await of.submit())["uid"]
            await settle(of, uid)
            source = await streams.enter_async_context(stream(of.gateway, of.path("one", "watch"), position))
            await state_was_read.wait()
        *events, end = await rest_of(source)
    assert (events[0].data["type"], end.name) == ("created", "end")
    assert "current" not in {event.data["type"] for event in events}
    assert events[-1].data["object"] == (await of.get("one", "status")).json()
    async with stream(of.gateway, of.path("one", "watch"), events[-1].id) as source:
        assert [event.name for event in await rest_of(source)] == ["end"]


@pytest.mark.parametrize("media_type", ["application/jsonl", "application/x-ndjson"])
async def test_a_watch_can_be_read_as_json_lines(media_type: str, of: Collection) -> None:
    uid = (await of.submit())["uid"]
    await settle(of, uid)
    answer = await of.get("one", "watch", Accept=media_type)
    assert answer.headers["content-type"].startswith(media_type)
    lines: list[dict[str, Any]] = [json.loads(line) for line in answer.text.splitlines()]
    assert [set(line) for line in lines] == [{"id", "event", "data"}] * len(lines)
    assert (lines[0]["event"], lines[1]["data"]["type"], lines[-1]["event"]) == ("ready", "current", "end")
    async with stream(of.gateway, of.path("one", "watch"), Accept=f"{media_type}, text/event-stream") as source:
        assert (await take(source, 1))[0].name == "ready"


async def test_the_watch_of_a_deleted_job_ends_when_its_objects_are_gone(shared_gateway: Gateway) -> None:
    of = Collection(shared_gateway, "GenericJob")
    uid = (await of.submit())["uid"]
    await settle(of, uid)
    await of.delete()
    async with stream(of.gateway, of.path("one", "watch")) as source:
        _, state = await take(source, 2)
        assert state.data["object"]["deletedAt"]
        await of.gateway.conclude(uid, {"quiet": True, "gone_at": NOW})
        assert (await rest_of(source))[-1].name == "end"
