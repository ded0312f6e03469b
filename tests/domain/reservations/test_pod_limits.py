"""Limits on planned pods: what fits, what is said of what does not, and what those add who see nobody else."""

from bisect import insort
from dataclasses import replace
from random import Random
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.reservations.pod_limits import JobWithoutRoom, PodLimits, PodRoom, RoomWait, share

LIMITS = PodLimits(installation=100, namespace=60)


def test_pods_are_counted_against_both_limits() -> None:
    room = PodRoom(LIMITS)
    assert room.take("a", 50) is None
    over = room.take("a", 11)
    assert over is not None
    assert (over.namespace, over.wanted, over.planned, over.limit) == ("a", 11, 50, 60)
    assert room.take("b", 45) is None
    over = room.take("b", 6)
    assert over is not None
    assert (over.namespace, over.planned) == (None, 95)
    assert room.take("b", 5) is None


def test_requests_without_new_pods_are_never_refused() -> None:
    room = PodRoom(LIMITS, planned=1000, by_namespace={"a": 1000})
    assert room.take("a", 0) is None
    assert room.take("a", -7) is None
    assert room.planned == 993


@pytest.mark.parametrize(
    ("planned", "wanted", "refused", "accepted"),
    [
        (58, 3, "3 more pods do", "at most 2 pods"),
        (59, 2, "2 more pods do", "at most 1 pod"),
        (60, 1, "1 more pod does", "no more pods"),
    ],
)
def test_a_refusal_names_the_limit_and_what_is_accepted(planned: int, wanted: int, refused: str, accepted: str) -> None:
    over = PodRoom(LIMITS, planned=planned, by_namespace={"a": planned}).take("a", wanted)
    assert over is not None
    error = over.error("/spec")
    assert (error.pointer, error.code) == ("/spec", "TooManyPods")
    assert error.detail == f"{refused} not fit: the jobs of the namespace a that have not ended have {planned} of 60"
    assert error.accepted == f"{accepted}, or wait until other jobs end"


WAITING = PodLimits(installation=12, namespace=8, waiting=2)


def a_room(limits: PodLimits = WAITING, **pods: int) -> PodRoom:
    return PodRoom(limits, planned=sum(pods.values()), by_namespace=pods)


def waiting_job(pods: int) -> JobWithoutRoom:
    return JobWithoutRoom(uid=uuid4(), pods=pods)


@pytest.mark.parametrize(
    ("room", "wanted", "waits"),
    [
        (a_room(a=5), 4, True),
        (a_room(a=8), 8, True),
        (a_room(a=5), 9, False),  # larger than the limit
        (a_room(PodLimits(installation=6, namespace=8, waiting=2), a=5), 7, False),
        (a_room(a=5, b=5), 3, False),  # no room in the installation
        (a_room(LIMITS, a=59), 2, False),  # no job may wait
    ],
)
def test_a_job_without_room_waits_if_it_can_have_room_in_its_namespace(
    room: PodRoom, wanted: int, *, waits: bool
) -> None:
    over = room.take("a", wanted)
    assert over is not None
    assert room.enqueue(over) is waits
    assert room.waiting == ({"a": 1} if waits else {})


def test_no_job_overtakes_those_that_wait_and_only_a_few_may_wait() -> None:
    room = a_room(a=6)
    refused = []
    for _ in range(3):
        over = room.take("a", 3 if not room.waiting else 1)
        assert over is not None
        if not room.enqueue(over):
            refused.append(over)
    assert [over.waiting for over in refused] == [2]
    error = refused[0].error("/spec")
    assert error.detail.endswith("have 6 of 8, and 2 jobs wait for room before")
    assert replace(refused[0], waiting=1).error("/spec").detail.endswith("and 1 job waits for room before")
    assert error.accepted == "no more pods, or wait until these jobs have started"
    assert room.take("b", 4) is None, "other namespaces have room"
    assert room.take("a", 0) is None, "no pods need no room"


def test_a_job_that_can_never_have_room_is_told_so() -> None:
    over = a_room(a=5).take("a", 9)
    assert over is not None
    error = over.error("/spec")
    assert error.detail == "9 pods never fit: the jobs of the namespace a may have 8 together"
    assert error.accepted == "at most 8 pods"
    assert [bool(a_room(a=5).exceed("a", pods)) for pods in (8, 9)] == [False, True]
    small = PodLimits(installation=6, namespace=8)
    assert [bool(a_room(small).exceed("a", pods)) for pods in (6, 7)] == [False, True]


@pytest.mark.parametrize(
    ("room", "wanted", "started"),
    [
        (a_room(a=4), [1, 3, 1], 2),
        (a_room(a=4), [5, 1, 1], 0),  # a small job does not overtake the first
        (a_room(a=4), [9, 2, 3, 1], 1),  # what is larger than a lowered limit holds nobody up
        (a_room(a=4, b=6), [2, 1], 1),  # the room of the installation
        (a_room(a=9), [1], 0),  # a lowered limit is exceeded already
        (a_room(), [], 0),
    ],
)
def test_a_turn_ends_at_the_first_job_that_does_not_fit(room: PodRoom, wanted: list[int], started: int) -> None:
    jobs, before = [waiting_job(pods) for pods in wanted], room.planned
    chosen = room.take_in_turn("a", jobs)
    assert chosen == [job for job in jobs if job.pods <= WAITING.namespace][:started]
    assert room.planned == before + sum(job.pods for job in chosen)


@pytest.mark.parametrize(
    ("wait", "message"),
    [
        (RoomWait(pods=3, planned=6, limit=8), "needs 3 pods, and {} 6 of 8 pods; it is the next job to get room"),
        (RoomWait(pods=1, planned=8, limit=8, before=("big",)), "needs 1 pod, and {} 8 of 8 pods; before it: big"),
        (
            RoomWait(pods=1, planned=8, limit=8, before=("a", "b"), is_complete=False),
            "needs 1 pod, and {} 8 of 8 pods; before it: a, b and possibly more",
        ),
        (
            RoomWait(pods=9, planned=2, limit=8, before=("a",), is_complete=False),
            "needs 9 pods, more than its namespace may have: {} 2 of 8 pods",
        ),
        (
            RoomWait(pods=3, planned=2, limit=8, is_installation_full=True),
            "needs 3 pods, for which this installation has no room; {} 2 of 8 pods",
        ),
    ],
)
def test_a_job_says_what_it_waits_for(wait: RoomWait, message: str) -> None:
    assert wait.message == f"the job {message.format('the jobs of the namespace that have room have')}"


@given(
    limit=st.integers(1, 12),
    sizes=st.lists(st.tuples(st.integers(1, 14), st.integers(0, 2)), max_size=30),
    ends=st.randoms(use_true_random=False),
)
def test_every_job_that_may_wait_starts_in_order_within_the_limit(
    limit: int, sizes: list[tuple[int, int]], ends: Random
) -> None:
    """Each job is submitted, or one that runs ends, in a random order."""
    room = PodRoom(PodLimits(installation=1000, namespace=limit, waiting=1000))
    waiting: list[tuple[int, int, JobWithoutRoom]] = []  # by the order of turns: negated priority, age
    running: list[JobWithoutRoom] = []
    left = [(age, priority, waiting_job(pods)) for age, (pods, priority) in enumerate(sizes)]
    accepted = []
    while left or running or waiting:
        if left and ends.random() < 0.6:
            age, priority, job = left.pop(0)
            over = room.take("a", job.pods)
            if over is None:
                assert not waiting
                running.append(job)
            elif room.enqueue(over):
                insort(waiting, (-priority, age, job))
            else:
                assert job.pods > limit
                continue
            accepted.append(job)
        elif running:
            room.take("a", -running.pop(ends.randrange(len(running))).pods)
        started = room.take_in_turn("a", [job for _, _, job in waiting])
        assert started == [job for _, _, job in waiting[: len(started)]]
        room.waiting["a"] = len(waiting) - len(started)
        running += started
        del waiting[: len(started)]
        assert running or not waiting, "what waits for ever"
        assert sum(job.pods for job in running) == room.by_namespace.get("a", 0) <= limit
    assert all(job.pods <= limit for job in accepted)


@pytest.mark.parametrize(
    ("planned", "of_a", "wanted", "is_far"),
    [
        (0, 0, {"a": 50}, True),
        (0, 0, {"a": 51}, False),
        (0, 0, {"a": 50, "b": 50, "c": 25}, True),
        (0, 0, {"a": 50, "b": 50, "c": 26}, False),
        (775, 0, {"a": 50, "b": 50}, True),
        (776, 0, {"a": 50, "b": 50}, False),
        (300, 300, {"a": 50}, True),
        (301, 301, {"a": 50}, False),
    ],
)
def test_two_writers_may_each_add_an_eighth_of_a_limit_unseen(
    planned: int, of_a: int, wanted: dict[str, int], *, is_far: bool
) -> None:
    room = PodRoom(PodLimits(installation=1000, namespace=400), planned=planned, by_namespace={"a": of_a})
    assert room.is_far_from_full(wanted, writers=2) is is_far


def test_where_jobs_wait_a_transaction_adds_no_pods() -> None:
    room = a_room(a=8)
    assert not room.is_far_from_full({"a": 1}, writers=2)
    room.waiting["a"] = 1
    assert room.is_far_from_full({"a": 1}, writers=2)


@given(
    limits=st.builds(PodLimits, installation=st.integers(1, 5000), namespace=st.integers(1, 5000)),
    planned=st.integers(0, 5000),
    others=st.integers(0, 5000),
    wanted=st.integers(0, 200),
    writers=st.integers(1, 8),
)
def test_pods_that_are_far_from_the_limits_fit_despite_concurrent_writers(
    limits: PodLimits, planned: int, others: int, wanted: int, writers: int
) -> None:
    room = PodRoom(limits, planned=planned + others, by_namespace={"a": planned})
    if not room.is_far_from_full({"a": wanted}, writers):
        return
    unseen = writers - 1
    for _ in range(unseen):
        room.take("a", min(share(limits.installation, writers), share(limits.namespace, writers)))
    assert room.take("a", wanted) is None
