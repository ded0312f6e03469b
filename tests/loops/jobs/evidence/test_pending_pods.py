"""Events are read beside the reconciles, one namespace at a time, and not again at once."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from app.base.clock import SystemClock
from app.domain.kubernetes.objects import Event
from app.domain.plan import JobIdentity
from app.domain.reconcile.actions import ReadEvents
from app.domain.vocabulary import PendingCode
from app.k8s.codec import ListPage
from app.k8s.errors import Unreachable
from app.loops.jobs.evidence.event_lists import EventLists
from app.loops.jobs.evidence.pending_pods import AGAIN, REST, EventReader
from app.loops.jobs.expectations import Expectations

JOB = JobIdentity(
    uid="job", kind="GenericJob", api_version="v1", namespace="team", name="n", generation=1, installation="here"
)
SECONDS = 0.5
FAILED_MOUNT = Event(
    type="Warning",
    reason="FailedMount",
    message="secret not found",
    last_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
)


class Clock(SystemClock):
    def __init__(self) -> None:
        self.time = 100.0

    @override
    def monotonic(self) -> float:
        return self.time


class Api:
    """Answers with `events`, or fails. With a clock, each answer takes SECONDS."""

    def __init__(self, *events: Event, error: Exception | None = None, clock: Clock | None = None) -> None:
        self.events = events
        self.clock = clock
        self.error = error
        self.asked: list[str] = []

    async def list_page(self, *_: Any, field_selector: str, **__: Any) -> ListPage[Event]:
        self.asked.append(field_selector)
        if self.clock is not None:
            self.clock.time += SECONDS
        if self.error:
            raise self.error
        return ListPage(items=self.events, resource_version="1")


async def requeued(
    api: Api, clock: Clock, expectations: Expectations, *pods: str, times: int = 1
) -> list[tuple[str, float]]:
    """What the event_reader asks to be looked at again, once it has dealt with every wish."""
    answers: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    lists = EventLists(api, clock)  # type: ignore[arg-type]
    event_reader = EventReader(lists, clock, lambda uid, delay: answers.put_nowait((uid, delay)))
    heard: list[tuple[str, float]] = []
    async with asyncio.TaskGroup() as group:
        running = group.create_task(event_reader.run())
        for _ in range(times):
            for pod in pods:
                event_reader.request(JOB, ReadEvents(name=pod, uid=pod), expectations)
            if not heard:
                heard = [await asyncio.wait_for(answers.get(), 60) for _ in pods]
        running.cancel()
    return heard


async def test_a_reason_requeues_the_job_at_once() -> None:
    expectations = Expectations()
    assert await requeued(Api(FAILED_MOUNT), Clock(), expectations, "a", "b") == [("job", 0.0), ("job", 0.0)]
    assert {uid: reason.code for uid, reason in expectations.pending_events.items()} == {
        "a": PendingCode.VOLUME,
        "b": PendingCode.VOLUME,
    }


async def test_events_are_read_again_later_if_there_are_none_or_the_cluster_does_not_answer() -> None:
    for api in (Api(), Api(error=Unreachable("refused"))):
        expectations = Expectations()
        assert await requeued(api, Clock(), expectations, "a") == [("job", AGAIN)]
        assert not expectations.pending_events


async def test_the_events_of_a_pod_are_not_read_twice_within_a_short_time() -> None:
    api, clock = Api(), Clock()
    await requeued(api, clock, Expectations(), "a", times=5)
    assert api.asked == ["involvedObject.uid=a"]


async def test_a_reconcile_in_between_keeps_the_later_read() -> None:
    """The queue keeps the earliest wish alone: the pass that comes of it has to renew the later one."""
    clock, answers = Clock(), asyncio.Queue[tuple[str, float]]()
    lists = EventLists(Api(), clock)  # type: ignore[arg-type]
    event_reader = EventReader(lists, clock, lambda uid, delay: answers.put_nowait((uid, delay)))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(event_reader.run())
        event_reader.request(JOB, ReadEvents(name="a", uid="a"), Expectations())
        assert await asyncio.wait_for(answers.get(), 60) == ("job", AGAIN)
        clock.time += 4.0
        event_reader.request(JOB, ReadEvents(name="a", uid="a"), Expectations())
        assert answers.get_nowait() == ("job", AGAIN - 4.0)
        running.cancel()


async def test_a_namespace_rests_after_a_read_and_others_do_not_wait_for_it() -> None:
    """While many pods start, their Events are wanted all the time. The API server also has to start them."""
    clock, answers = Clock(), asyncio.Queue[tuple[str, float]]()
    api = Api(clock=clock)
    lists = EventLists(api, clock, sleep=lambda _: asyncio.sleep(0))  # type: ignore[arg-type]
    event_reader = EventReader(lists, clock, lambda uid, delay: answers.put_nowait((uid, delay)))
    elsewhere = replace(JOB, uid="elsewhere", namespace="elsewhere")

    async def read(job: JobIdentity, *pods: str) -> list[str]:
        """Request the Events of the pods, and return those that are read before one of this job is."""
        api.asked.clear()
        for pod in pods:
            event_reader.request(job, ReadEvents(name=pod, uid=pod), Expectations())
        assert await asyncio.wait_for(answers.get(), 60) == (job.uid, AGAIN)
        return api.asked

    async with asyncio.TaskGroup() as group:
        running = group.create_task(event_reader.run())
        assert await read(JOB, "a") == ["involvedObject.uid=a"]
        for pod in ("b", "c"):
            event_reader.request(JOB, ReadEvents(name=pod, uid=pod), Expectations())
        assert await read(elsewhere, "x") == ["involvedObject.uid=x"]
        clock.time += REST * SECONDS
        # Any request ends the wait of the reader, whose time the clock of this test does not know.
        assert sorted(await read(JOB, "d")) == [f"involvedObject.uid={pod}" for pod in ("b", "c", "d")]
        running.cancel()
