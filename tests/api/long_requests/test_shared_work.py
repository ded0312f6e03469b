"""Streams and long polls share work: an event is rendered once, and equal polls read once after a change."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import Request

from app.api.answers.rendering import status_view
from app.api.long_requests import responses
from app.api.long_requests.streams import EventStream
from app.api.requests.dependencies import Api, Caller
from app.api.resources import jobs
from app.api.resources.jobs import JOBS_RESOURCE
from app.api.routes.objects.watch import event_loader
from app.api.shared import polls as shared_polls
from app.api.shared.broadcast import Broadcast
from app.api.shared.job_views import JobViewCache
from app.api.shared.polls import Poll, SharedPolls, Snapshot
from app.api.views.objects import JobStatusView
from app.base.cancellation import TaskGroup
from app.db.jobs.rows import JobSummary
from app.domain.access.namespaces import NamespaceSet
from app.domain.listing import Criteria
from app.domain.vocabulary import JobPhase
from app.services.watching import waking
from app.services.watching import watcher as watching
from app.services.watching.positions import Interest
from app.services.watching.waking import Waiter, Waker
from tests.api.long_requests.test_watch import Event, stream, take
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, until_followed, until_open
from tests.support.waiting import until

STREAMS = 30


class Spy:
    """Records the first argument of each call of a method."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.calls: list[Any] = []
        real = getattr(owner, name)

        async def counted(*arguments: Any) -> Any:
            self.calls.append(arguments[0])
            return await real(*arguments)

        monkeypatch.setattr(owner, name, counted)


async def test_streams_share_each_rendered_event(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = Spy(monkeypatch, gateway.services.reading, "summaries")
    rendered: list[str] = []

    def counted(job: JobSummary) -> JobStatusView:
        rendered.append(job.name)
        return status_view(job)

    monkeypatch.setattr(jobs, "status_view", counted)
    everything, one_namespace = "/api/v1/jobs/watch", f"/api/v1/jobs/watch?namespace={NAMESPACE}"

    async def follow(number: int) -> list[Event]:
        async with stream(gateway, everything if number % 2 else one_namespace) as source:
            return (await take(source, 4))[1:]

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        following = [group.create_task(follow(number)) for number in range(STREAMS)]
        await until_open(gateway, STREAMS)
        for number in range(3):
            await gateway.submit(f"job-{number}")
    received = [task.result() for task in following]
    assert all(events == received[0] for events in received)
    assert [event.data["object"]["name"] for event in received[0]] == ["job-0", "job-1", "job-2"]
    assert sorted(rendered) == ["job-0", "job-1", "job-2"]
    assert len(summaries.calls) <= 3


async def tag_of(gateway: Gateway, url: str) -> str:
    return str((await gateway.client.get(url)).headers["etag"])


async def waiting(gateway: Gateway, url: str, tag: str) -> httpx2.Response:
    return await gateway.client.get(url, headers={"If-None-Match": tag, "Prefer": "wait=60"})


async def test_equal_polls_cause_one_read_after_a_change(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await gateway.submit("first")
    await until_followed(gateway)
    url = "/api/v1/jobs?search=job-"
    tag = await tag_of(gateway, url)
    pages = Spy(monkeypatch, gateway.services.reading, "page")
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        polls = [group.create_task(waiting(gateway, url, tag)) for _ in range(STREAMS)]
        await until_open(gateway, STREAMS)
        before = len(pages.calls)
        assert before <= 2  # a poll that arrives during the first read causes a second one
        await gateway.submit("unrelated")
        await until_followed(gateway)
        await gateway.submit("job-1")
    assert len(pages.calls) == before + 1
    assert {poll.result().content for poll in polls} == {polls[0].result().content}
    assert [item["name"] for item in polls[0].result().json()["items"]] == ["job-1"]


async def test_a_change_wakes_only_the_polls_that_it_concerns(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_polls, "_COALESCED", 0.0)
    made = {name: await gateway.submit(name, labels={"team": name}) for name in ("a", "b", "c")}
    await until_followed(gateway)
    urls = {name: f"/api/v1/jobs?labelSelector=team%3D{name}" for name in made}
    urls |= {
        "failed": "/api/v1/jobs?phase=Failed",
        "elsewhere": jobs_path("elsewhere"),
        "kind": "/api/v1/jobs?kind=MxJob",
        "late": "/api/v1/jobs?createdAfter=2099-01-01T00:00:00Z",
    }
    tags = {name: await tag_of(gateway, url) for name, url in urls.items()}
    pages = Spy(monkeypatch, gateway.services.reading, "page")
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        polls = {name: group.create_task(waiting(gateway, url, tags[name])) for name, url in urls.items()}
        await until_open(gateway, len(urls))
        pages.calls.clear()
        await gateway.conclude(made["b"]["uid"], {"phase": JobPhase.RUNNING})
        await polls["b"]
        await until_followed(gateway)
        assert [where.labels[0].values for where in pages.calls] == [("b",)]
        await gateway.conclude(made["c"]["uid"], {"phase": JobPhase.FAILED})
        await asyncio.gather(polls["c"], polls["failed"])
        assert len(pages.calls) == 3
        assert sorted(name for name, poll in polls.items() if not poll.done()) == ["a", "elsewhere", "kind", "late"]
        for poll in polls.values():
            poll.cancel()


async def test_polls_of_one_job_read_its_new_version_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    created = await gateway.submit("hello")
    await until_followed(gateway)
    url = jobs_path(NAMESPACE, "hello", "status")
    tag = await tag_of(gateway, url)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        polls = [group.create_task(waiting(gateway, url, tag)) for _ in range(STREAMS)]
        await until_open(gateway, STREAMS)
        summaries = Spy(monkeypatch, gateway.services.reading, "summary")
        versions = Spy(monkeypatch, gateway.services.reading, "version")
        await gateway.conclude(created["uid"], {"phase": JobPhase.RUNNING})
    assert (len(summaries.calls), len(versions.calls)) == (1, 1)
    assert {poll.result().json()["status"]["phase"] for poll in polls} == {"Running"}


async def test_another_request_reads_if_the_woken_one_disconnects(gateway: Gateway) -> None:
    """The request that is woken first may end before it reads."""
    await gateway.submit("first")
    await until_followed(gateway)
    tag = await tag_of(gateway, "/api/v1/jobs")
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        polls = [group.create_task(waiting(gateway, "/api/v1/jobs", tag)) for _ in range(4)]
        await until_open(gateway, 4)
        await gateway.submit("second")
        for poll in polls[:3]:
            poll.cancel()
        answer = await polls[3]
    assert answer.status_code == 200
    assert len(answer.json()["items"]) == 2


async def test_waiters_are_woken_a_few_at_a_time() -> None:
    waker, waiters = Waker(), [Waiter() for _ in range(100)]
    woken: list[int] = []

    async def wait(number: int) -> None:
        assert await waiters[number].wait(60)
        woken.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(wait(number))
        running = group.create_task(waker.run())
        await asyncio.sleep(0)
        waker.wake(waiters)
        waker.wake(waiters)
        most = before = 0
        while len(woken) < 100:
            await asyncio.sleep(0)
            most, before = max(most, len(woken) - before), len(woken)
        running.cancel()
    assert most <= waking._WOKEN_AT_ONCE
    assert sorted(woken) == list(range(100))


async def test_tokens_take_turns_to_read_lists(gateway: Gateway) -> None:
    """A token whose many long polls read after a change delays another one by the reads in progress."""
    polls = SharedPolls(gateway.services.watcher, gateway.services.clock)
    may_read = asyncio.Event()
    read: list[str] = []

    async def poll(token: str, number: int) -> None:
        async def one_read() -> Snapshot:
            read.append(token)
            await may_read.wait()
            return Snapshot(tag='"tag"', render=lambda: pytest.fail("no request needs a body"))

        interest = Interest(resources=frozenset({"jobs"}))
        of_token = Poll(key=(token, number), token=token, interest=interest, read=one_read, criteria=Criteria())
        with polls.join(of_token) as (shared, _):
            await shared.current('"tag"')

    async with TaskGroup() as group:
        for number in range(10):
            group.create_task(poll("many", number))
        await until(lambda: read == ["many"] * shared_polls._LISTS_AT_ONCE, what="the first polls read")
        group.create_task(poll("one", 0))
        await asyncio.sleep(0)
        may_read.set()
    assert len(read) == 11
    assert read.index("one") <= shared_polls._LISTS_AT_ONCE + 1


async def events_of(gateway: Gateway) -> AsyncIterator[bytes]:
    """Yield the pieces of a stream as fast as the test consumes them."""
    services = gateway.services
    api = Api(
        services=services,
        job_views=JobViewCache(services),
        broadcast=Broadcast(services),
        polls=SharedPolls(services.watcher, services.clock),
    )
    caller = Caller(Request({"type": "http", "headers": []}), api, await services.access.authenticate(None))
    response = EventStream(caller, Interest(namespaces=NamespaceSet()), None, event_loader(JOBS_RESOURCE))
    async for piece in await response.open():
        yield piece


async def test_a_stream_that_is_read_too_slowly_is_reset(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.gateways.gateway import running_gateway

    monkeypatch.setattr(watching, "_KEPT", 5)
    async with running_gateway(database_url) as gateway, asyncio.timeout(60):
        await gateway.services.watcher.begin()
        events = aiter(events_of(gateway))
        assert b"event: ready" in await anext(events)
        await gateway.submit("first")
        assert b'"first"' in await anext(events)
        for number in range(9):
            await gateway.submit(f"more-{number}")
        await until_followed(gateway)
        assert b"event: reset" in await anext(events)
        await gateway.submit("last")
        assert b'"last"' in await anext(events)


async def test_a_stream_whose_client_does_not_read_is_dropped(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr(responses, "WRITE_SECONDS", 0.3)
    first = await gateway.submit("first")
    await until_followed(gateway)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(gateway.url.rpartition(":")[2])))
        client.sendall(b"GET /api/v1/jobs/watch HTTP/1.1\r\nHost: x\r\n\r\n")
        await until_open(gateway, 1)
        async with asyncio.timeout(60):
            while gateway.services.long_requests.count:
                await gateway.conclude(first["uid"], {"message": "x" * 100_000})
