"""The copy equals the cluster when the cluster is quiet, whatever happened on the way."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.cancellation import TaskGroup
from app.domain.kubernetes.objects import Pod
from app.k8s.codec import ListPage
from app.k8s.errors import BrokenAnswer, KubeGone, KubeServerError, KubeTooManyRequests, SilentStream, Unreachable
from app.k8s.session.watch_events import WatchEvent
from app.k8s.watching.reflector import DECODED_AT_ONCE, PAGE_SIZE, Pace, Reflector
from app.k8s.watching.store import ReflectorStore, by_label
from tests.k8s.scripted import JOB, Cluster, Quiet, ScriptedSource, Step, added, bookmark, deleted, pod
from tests.k8s.support import ManualClock

FAULTS = [
    *("", "gone", "busy", "error", "refused", "compact", "bookmark"),
    *("late gone", "silence", "cut", "late error", "expired"),
]
CHANGES = st.tuples(st.sampled_from(["a0", "a1", "b0", "b1", "c0"]), st.sampled_from(["modify", "delete"]))
STEPS = st.lists(
    st.builds(
        Step,
        fault=st.sampled_from(FAULTS),
        changes=st.lists(CHANGES, max_size=8),
        cut=st.integers(0, 10),
        seed=st.integers(0, 2**16),
        reorder=st.booleans(),
        repeat=st.booleans(),
    ),
    max_size=25,
)


@given(steps=STEPS)
@settings(max_examples=400, deadline=None)
def test_the_store_ends_equal_to_the_cluster(steps: list[Step]) -> None:
    clock = ManualClock()
    cluster = Cluster()
    seen: dict[str, dict[str, int]] = {}

    def look(job: str) -> None:
        seen[job] = versions(store.get_by_index(job))

    store = ReflectorStore[Pod](by_label(JOB), look)
    reflector = Reflector[Pod](
        ScriptedSource(cluster, iter(steps), clock), store, clock, sleep=clock.sleep, chance=lambda: 0.5
    )
    with pytest.raises(Quiet):
        asyncio.run(reflector.run())
    there = versions(cluster.pods.values())
    assert versions(store.all()) == there
    assert {name: store.get_by_name("ns", name) for name in cluster.pods} == cluster.pods
    # Whoever looks only after a report has missed nothing.
    last_seen = {uid: version for pods in seen.values() for uid, version in pods.items()}
    assert last_seen == there


def versions(pods: object) -> dict[str, int]:
    return {item.metadata.uid: item.metadata.version for item in pods}  # type: ignore[attr-defined]


class Recorder:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def replaced(self, objects: Sequence[Pod]) -> None:
        self.calls.append("= " + " ".join(f"{o.metadata.uid}@{o.metadata.version}" for o in objects))

    def applied(self, obj: Pod) -> None:
        self.calls.append(f"+ {obj.metadata.uid}@{obj.metadata.version}")

    def deleted(self, obj: Pod) -> None:
        self.calls.append(f"- {obj.metadata.uid}")


Watch = list[WatchEvent[Pod] | Exception | float]


class Script:
    """Lists and watches, one after the other; a number lets that many seconds pass. Ends with Quiet."""

    def __init__(self, lists: list[ListPage[Pod] | Exception], watches: list[Watch], clock: ManualClock) -> None:
        self.lists = lists
        self.watches = watches
        self.clock = clock
        self.asked: list[tuple[str, str, int]] = []

    async def list_page(self, continue_token: str, limit: int) -> ListPage[Pod]:
        self.asked.append(("list", continue_token, limit))
        if not self.lists:
            raise Quiet
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(
        self, resource_version: str, timeout_seconds: int, idle: float, opened: Callable[[], None]
    ) -> AsyncGenerator[WatchEvent[Pod], None]:
        assert idle == Pace().idle
        self.asked.append(("watch", resource_version, timeout_seconds))
        if not self.watches:
            raise Quiet
        if not isinstance(self.watches[0][0], Exception):
            opened()
        for item in self.watches.pop(0):
            if isinstance(item, Exception):
                raise item
            if isinstance(item, float):
                self.clock.seconds += item
            else:
                yield item


def page(version: int, *pods: Pod, token: str = "") -> ListPage[Pod]:
    return ListPage(items=pods, resource_version=str(version), continue_token=token)


async def play(
    lists: list[ListPage[Pod] | Exception],
    watches: list[Watch],
    chance: Callable[[], float] = lambda: 0.0,
    page_size: int = PAGE_SIZE,
) -> tuple[Recorder, Script, Reflector[Pod], ManualClock]:
    clock, sink = ManualClock(), Recorder()
    source = Script(lists, watches, clock)
    reflector = Reflector[Pod](source, sink, clock, page_size=page_size, sleep=clock.sleep, chance=chance)
    with pytest.raises(Quiet):
        await reflector.run()
    return sink, source, reflector, clock


async def test_pages_make_one_list_and_the_watch_follows_it() -> None:
    sink, source, reflector, clock = await play(
        [page(7, pod("a", 3), token="t"), page(7, pod("b", 4))], [[5.0, added("c", 8), deleted("a", 9)]]
    )
    assert sink.calls == ["= a@3 b@4", "+ c@8", "- a"]
    assert source.asked == [("list", "", 500), ("list", "t", 500), ("watch", "7", 300), ("watch", "9", 300)]
    assert reflector.synced.is_set()
    assert reflector.last_contact == clock.now()
    assert (reflector.stats.relists, reflector.stats.events, reflector.stats.errors) == (1, 2, 0)


async def test_an_object_deleted_during_a_gap_is_gone_after_the_list() -> None:
    sink, _, reflector, _ = await play(
        [page(7, pod("a", 3), pod("b", 4)), page(20, pod("b", 4))],
        [[2.0, KubeGone(410, "Expired", "too old resource version")]],
    )
    assert sink.calls == ["= a@3 b@4", "= b@4"]
    assert reflector.stats.relists == 2


async def test_the_next_page_is_requested_before_the_objects_of_a_page_are_decoded() -> None:
    """Otherwise the API server and the gateway would take turns: a list of 50 000 pods would take a third longer."""
    before_decoding: list[int] = []

    class Undecoded:
        def __iter__(self) -> Iterator[Pod]:
            yield pod("a", 3)
            before_decoding.append(len(source.asked))
            yield pod("b", 4)

    first = ListPage[Pod](items=Undecoded(), resource_version="4", continue_token="2")
    clock, sink = ManualClock(), Recorder()
    source = Script([first, page(4, pod("c", 2))], [], clock)
    with pytest.raises(Quiet):
        await Reflector[Pod](source, sink, clock, sleep=clock.sleep).run()
    assert before_decoding == [2]
    assert sink.calls == ["= a@3 b@4 c@2"]


async def test_other_tasks_run_while_a_page_is_decoded() -> None:
    """A page of 500 pods would otherwise hold up the heartbeat and the renewal of the lease."""
    turns: set[int] = set()
    decoded = 0

    async def run() -> None:
        with suppress(Quiet):
            await reflector.run()

    async def note_turns() -> None:
        while not reader.done():
            turns.add(decoded)
            await asyncio.sleep(0)

    class Undecoded:
        def __iter__(self) -> Iterator[Pod]:
            nonlocal decoded
            for number in range(3 * DECODED_AT_ONCE):
                decoded += 1
                yield pod(f"p{number}", 3)

    clock = ManualClock()
    source = Script([ListPage[Pod](items=Undecoded(), resource_version="4")], [], clock)
    reflector = Reflector[Pod](source, Recorder(), clock, sleep=clock.sleep)
    async with TaskGroup() as group:
        reader = group.create_task(run())
        group.create_task(note_turns())
    assert {1, DECODED_AT_ONCE + 1, 2 * DECODED_AT_ONCE + 1} <= turns


async def test_old_and_repeated_events_are_dropped() -> None:
    sink, _, reflector, _ = await play(
        [page(7, pod("a", 5))],
        [
            [
                2.0,
                added("a", 4),
                added("a", 5),
                added("a", 8),
                added("a", 8),
                deleted("a", 9),
                added("a", 8),
                deleted("a", 9),
            ]
        ],
    )
    assert sink.calls == ["= a@5", "+ a@8", "- a"]
    assert reflector.stats.stale == 5


async def test_an_object_that_left_the_watch_can_come_back_with_a_newer_version() -> None:
    """As a pod does whose labels somebody takes off and puts back."""
    sink, _, reflector, _ = await play(
        [page(7, pod("a", 5))], [[2.0, deleted("a", 9), added("a", 9), added("a", 11), added("a", 8)]]
    )
    assert sink.calls == ["= a@5", "- a", "+ a@11"]
    assert reflector.stats.stale == 2


async def test_bookmarks_move_the_watch_and_count_as_contact() -> None:
    _, source, reflector, _ = await play([page(7)], [[30.0, bookmark(90), 1.0]])
    assert source.asked[-1] == ("watch", "90", 300)
    assert reflector.stats.bookmarks == 1


async def test_a_429_waits_for_retry_after_and_does_not_list() -> None:
    busy = KubeTooManyRequests(429, "TooManyRequests", "later", retry_after=9)
    _, source, _, clock = await play([page(7)], [[busy], [2.0]])
    assert clock.slept == [9.0]
    assert [what for what, *_ in source.asked] == ["list", "watch", "watch", "watch"]


async def test_an_absurd_retry_after_is_capped() -> None:
    _, _, _, clock = await play([KubeTooManyRequests(429, "", "", retry_after=10_000), page(7)], [])
    assert clock.slept == [120.0]


async def test_a_very_short_watch_proves_nothing_and_lists() -> None:
    sink, _, _, clock = await play([page(7), page(8)], [[0.5]])
    assert sink.calls == ["= ", "= "]
    assert clock.slept == [0.8]


async def test_a_short_watch_with_events_is_repeated_after_a_back_off() -> None:
    sink, source, _, clock = await play([page(7)], [[added("a", 8), 0.1], [2.0]])
    assert sink.calls == ["= ", "+ a@8"]
    assert clock.slept == [0.8]
    assert [what for what, *_ in source.asked] == ["list", "watch", "watch", "watch"]


async def test_the_second_silent_watch_leads_to_a_list() -> None:
    silence: Watch = [70.0, SilentStream("nothing came")]
    _, source, _, _ = await play([page(7), page(9)], [list(silence), list(silence)])
    assert [what for what, *_ in source.asked] == ["list", "watch", "watch", "list", "watch"]


async def test_a_bookmark_between_silences_keeps_the_watch() -> None:
    silence: Watch = [70.0, SilentStream("nothing came")]
    _, source, _, _ = await play([page(7)], [silence, [bookmark(8), *silence], [bookmark(9), *silence]])
    assert [what for what, *_ in source.asked].count("list") == 1


async def test_watches_that_fail_repeatedly_without_progress_lead_to_a_list() -> None:
    error: Watch = [2.0, KubeServerError(500, "InternalError", "cannot decode")]
    _, source, _, _ = await play([page(7), page(9)], [list(error) for _ in range(5)])
    assert [what for what, *_ in source.asked] == ["list", *["watch"] * 5, "list", "watch"]


async def test_watches_that_end_without_an_event_lead_to_a_list() -> None:
    """As those do that are ahead of a server whose database was restored."""
    _, source, _, _ = await play([page(99), page(7)], [[50.0] for _ in range(3)])
    assert [what for what, *_ in source.asked] == ["list", *["watch"] * 3, "list", "watch"]


async def test_a_version_ahead_of_the_server_is_listed_at_once() -> None:
    ahead = KubeServerError(504, "Timeout", "Timeout: Too large resource version: 99, current: 7")
    _, source, _, _ = await play([page(99), page(7)], [[ahead]])
    assert [asked[1] for asked in source.asked] == ["", "99", "", "7"]


@pytest.mark.parametrize("size", [500, 3000])
async def test_a_list_that_expires_between_pages_is_repeated_as_one_page(size: int) -> None:
    sink, source, _, _ = await play(
        [page(7, pod("a", 3), token="t"), KubeGone(410, "Expired", "continue"), page(9, pod("b", 8)), page(9)],
        [[2.0, KubeGone(410, "Expired", "")]],
        page_size=size,
    )
    assert sink.calls == ["= b@8", "= "]
    assert [limit for what, _, limit in source.asked if what == "list"] == [size, size, 0, size]


async def test_back_off_doubles_to_30_seconds_and_restarts_after_two_minutes_without_failure() -> None:
    refused: list[ListPage[Pod] | Exception] = [Unreachable("refused") for _ in range(8)]
    _, _, reflector, clock = await play([*refused, page(7)], [[130.0, Unreachable("cut")], [2.0]])
    assert clock.slept == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 0.8]
    assert reflector.stats.errors == 9


@pytest.mark.parametrize(
    ("lists", "watches", "error"),
    [
        ([Unreachable("refused")], [], "refused"),
        ([Unreachable("refused"), page(7)], [], ""),
        ([page(7)], [[2.0, Unreachable("cut")]], "cut"),
        ([page(7)], [[2.0, Unreachable("cut")], [2.0]], ""),
    ],
)
async def test_an_error_is_known_until_the_server_answers(
    lists: list[ListPage[Pod] | Exception], watches: list[Watch], error: str
) -> None:
    _, _, reflector, _ = await play(lists, watches)
    assert str(reflector.stats.last_error or "") == error


async def test_an_error_that_is_kept_holds_nothing_of_a_list() -> None:
    broken = BrokenAnswer("a list could not be read")
    broken.__cause__ = broken.__context__ = ValueError("not JSON")
    _, _, reflector, _ = await play(
        [page(7), page(7, pod("a", 3), token="t"), broken], [[KubeGone(410, "Expired", "")]]
    )
    assert reflector.stats.last_error is broken
    assert not any((broken.__traceback__, broken.__cause__, broken.__context__))


async def test_back_off_is_jittered_and_watches_are_of_random_length() -> None:
    _, source, _, clock = await play([Unreachable("refused"), page(7)], [[2.0]], chance=lambda: 1.0)
    assert clock.slept == [1.6]
    assert source.asked[-1] == ("watch", "7", 600)
