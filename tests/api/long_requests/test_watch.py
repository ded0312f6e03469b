"""Streams of server-sent events: a client can resume anywhere without missing or repeated events."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from app.domain.errors import Unavailable
from app.services.watching.positions import Position, parse_position
from app.services.watching.watcher import Watcher
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest
from tests.support.waiting import until


@dataclass(frozen=True)
class Event:
    id: str
    name: str
    data: Any


@asynccontextmanager
async def stream(
    gateway: Gateway, path: str, last: str | None = None, **headers: str
) -> AsyncIterator[AsyncIterator[Event]]:
    sent = headers | ({"Last-Event-ID": last} if last else {})
    async with gateway.client.stream("GET", path, headers=sent) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events(answer.aiter_lines())


async def events(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


async def take(source: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(60):
        return [await anext(source) for _ in range(count)]


@pytest.mark.parametrize("text", ["", "1", "a.b", "1.-2", "1.2.3", "٣.1", "9" * 30 + ".1"])
def test_an_invalid_position_is_not_parsed(text: str) -> None:
    assert parse_position(text) is None


def test_a_position_is_parsed_from_its_text() -> None:
    assert parse_position(str(Position(epoch=3, seq=7))) == Position(epoch=3, seq=7)


async def test_a_resumed_stream_has_no_gap(gateway: Gateway) -> None:
    async with stream(gateway, "/api/v1/jobs/watch") as source:
        (ready,) = await take(source, 1)
        assert ready.name == "ready"
        for number in range(5):
            await gateway.submit(f"job-{number}")
        first = await take(source, 3)
    for number in range(5, 10):
        await gateway.submit(f"job-{number}")
    async with stream(gateway, "/api/v1/jobs/watch", first[-1].id) as source:
        rest = await take(source, 7)
    seen = [event.data["object"]["name"] for event in (*first, *rest)]
    assert seen == [f"job-{number}" for number in range(10)]
    assert len({event.id for event in (*first, *rest)}) == 10
    assert first[0].data["type"] == "created"
    async with stream(gateway, f"/api/v1/jobs/watch?lastEventId={ready.id}") as source:
        everything = await take(source, 10)
    assert [event.id for event in everything] == [event.id for event in (*first, *rest)]


async def test_a_watch_continues_at_the_position_of_a_list(gateway: Gateway) -> None:
    await gateway.submit("before")

    async def read_position() -> str:
        return (await gateway.client.get("/api/v1/jobs")).headers["jobgate-feed-position"]

    position = await until(read_position, lambda found: found.endswith(".1"))
    await gateway.submit("after")
    async with stream(gateway, "/api/v1/jobs/watch", position) as source:
        (event,) = await take(source, 1)
    assert event.data["object"]["name"] == "after"


async def test_a_list_waits_for_the_first_read_of_the_feed(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the first lists after a start would have no position from which to watch."""

    async def not_in_time(_: Watcher) -> Position:
        raise Unavailable("not read yet", code="Starting")

    with monkeypatch.context() as patched:
        patched.setattr(Watcher, "begin", not_in_time)
        answer = await gateway.client.get("/api/v1/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "Starting")
    assert (await gateway.client.get("/api/v1/jobs")).headers["jobgate-feed-position"]


async def test_a_watch_of_one_job_or_namespace_has_only_its_events(gateway: Gateway) -> None:
    await gateway.submit("watched")
    async with (
        stream(gateway, jobs_path(NAMESPACE, "watched", "watch")) as one,
        stream(gateway, "/api/v1/jobs/watch?namespace=other") as other,
    ):
        await take(one, 1)
        await take(other, 1)
        await gateway.submit("noise")
        await gateway.submit("theirs", "other")
        await gateway.client.post(jobs_path(NAMESPACE, "watched", "cancel"))
        async for event in one:
            assert event.data["object"]["name"] == "watched"
            if event.data["type"] == "cancelled":
                break
        (event,) = await take(other, 1)
        assert event.data["object"]["namespace"] == "other"


@pytest.mark.parametrize("last", ["nonsense", "999.1", "1.99999"])
async def test_an_unknown_position_resets_the_stream(last: str, gateway: Gateway) -> None:
    async with stream(gateway, "/api/v1/jobs/watch", last) as source:
        (reset,) = await take(source, 1)
        assert reset.name == "reset"
        await gateway.submit("next")
        (event,) = await take(source, 1)
    assert event.data["object"]["name"] == "next"


async def test_a_stream_has_only_events_of_visible_namespaces(closed_gateway: Gateway) -> None:
    gateway = closed_gateway
    mine, admin = await gateway.token("viewer", "mine"), await gateway.token("admin", "*")
    async with stream(gateway, "/api/v1/jobs/watch", **mine) as source:
        await take(source, 1)
        for namespace in ("theirs", "mine"):
            body = json.dumps(manifest("x"))
            headers = admin | {"Content-Type": "application/json"}
            assert (await gateway.client.post(jobs_path(namespace), content=body, headers=headers)).status_code == 201
        (event,) = await take(source, 1)
    assert event.data["object"]["namespace"] == "mine"
    refused = await gateway.client.get("/api/v1/jobs/watch?namespace=theirs", headers=mine)
    assert refused.status_code == 404


async def test_a_shutdown_ends_the_stream_with_an_event(gateway: Gateway) -> None:
    async with stream(gateway, "/api/v1/jobs/watch") as source:
        await take(source, 1)
        gateway.services.close()
        (last,) = await take(source, 1)
        assert last.name == "shutdown"
        with pytest.raises(StopAsyncIteration):
            await anext(source)
