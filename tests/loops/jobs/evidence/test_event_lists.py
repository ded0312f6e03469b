"""One list of the Events of a namespace at a time answers every request that waited for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from app.domain.kubernetes.objects import Event, ObjectReference
from app.k8s.codec import ListPage
from app.k8s.errors import Unreachable
from app.loops.jobs.evidence.event_lists import MOST_PAUSE, ONE_BY_ONE, EventLists
from tests.k8s.support import ManualClock
from tests.support.waiting import until

MANY = [f"pod-{number}" for number in range(ONE_BY_ONE + 1)]


class Api:
    """Answers after `seconds`, once it is released, with one Event of each pod, or with an error."""

    def __init__(self, clock: ManualClock, *, seconds: float = 0.0, is_released: bool = True) -> None:
        self.clock = clock
        self.seconds = seconds
        self.released = asyncio.Event()
        self.error: Exception | None = None
        self.asked: list[tuple[str, str]] = []
        if is_released:
            self.released.set()

    async def list_page(self, _: Any, namespace: str, *, field_selector: str = "", **__: Any) -> ListPage[Event]:
        self.asked.append((namespace, field_selector))
        await self.released.wait()
        self.clock.seconds += self.seconds
        if self.error is not None:
            raise self.error
        return ListPage(
            items=tuple(an_event(uid) for uid in MANY if uid in (field_selector or uid)), resource_version="1"
        )


def an_event(uid: str) -> Event:
    return Event(involved_object=ObjectReference(uid=uid), reason=f"About-{uid}")


def event_lists(api: Api) -> EventLists:
    return EventLists(api, api.clock, sleep=api.clock.sleep)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uids", "asked"),
    [
        ([], []),
        (MANY[:2], ["involvedObject.uid=pod-0", "involvedObject.uid=pod-1"]),
        (MANY, [""]),
    ],
)
async def test_the_events_of_more_than_a_few_pods_come_from_one_list(uids: Sequence[str], asked: list[str]) -> None:
    api = Api(ManualClock())
    found = await event_lists(api).of("ns", uids)
    assert found is not None
    assert {uid: [event.reason for event in events] for uid, events in found.items()} == {
        uid: [f"About-{uid}"] for uid in uids
    }
    assert sorted(selector for _, selector in api.asked) == asked


async def test_requests_that_come_during_a_list_share_the_next_one_of_their_namespace() -> None:
    api = Api(ManualClock(), is_released=False)
    lists = event_lists(api)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(lists.of("ns", MANY))
        await until(lambda: len(api.asked) == 1)
        others = [group.create_task(lists.of("ns", [uid])) for uid in MANY]
        elsewhere = group.create_task(lists.of("elsewhere", MANY))
        await until(lambda: len(api.asked) == 2)
        assert api.asked[1] == ("elsewhere", "")
        api.released.set()
    assert api.asked[2:] == [("ns", "")]
    assert all(MANY[0] in (task.result() or {}) for task in (first, elsewhere, *others))


async def test_a_cancelled_request_does_not_fail_those_that_share_its_list() -> None:
    api = Api(ManualClock(), is_released=False)
    lists = event_lists(api)
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(lists.of("ns", MANY))
        following = group.create_task(lists.of("ns", MANY))
        await until(lambda: api.asked)
        leading.cancel()
        api.released.set()
    assert set(following.result() or {}) == set(MANY)


@pytest.mark.parametrize(("seconds", "pause"), [(0.5, 0.5), (MOST_PAUSE + 8, MOST_PAUSE)])
async def test_the_next_list_waits_for_as_long_as_the_last_one_took(seconds: float, pause: float) -> None:
    api = Api(ManualClock(), seconds=seconds)
    lists = event_lists(api)
    await lists.of("ns", MANY)
    await lists.of("ns", MANY)
    assert [slept for slept in api.clock.slept if slept] == [pause]


async def test_an_error_is_no_result_and_the_next_list_is_tried() -> None:
    api = Api(ManualClock())
    lists = event_lists(api)
    api.error = Unreachable("refused")
    assert await lists.of("ns", MANY) is None
    api.error = None
    assert set(await lists.of("ns", MANY) or {}) == set(MANY)
