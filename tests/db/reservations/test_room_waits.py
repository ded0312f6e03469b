"""Jobs wait for room within the limit of their namespace, and get it by priority, then by age."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from uuid import uuid4

import pytest

from app.db import former_namespaces
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.jobs.controller import load
from app.db.jobs.edits import JobEdit, edit
from app.db.jobs.submit import NewJob, submit, submit_together
from app.db.objects.submission import Submitted
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended, LeaseLost
from app.db.reservations import pod_room, room_waits
from app.db.reservations.room_waits import NewWait
from app.domain.access.actors import Actor
from app.domain.errors import Conflict
from app.domain.reservations.name_ranges import NameRange
from app.domain.reservations.pod_limits import OverLimit, PodLimits, PodRoom, RoomWait
from app.domain.vocabulary import JobPhase
from tests.db.factories import NOW, later, move, new_job
from tests.db.reservations.test_pod_room import planned

LIMITS = PodLimits(installation=1000, namespace=10, waiting=50)


def a_job(name: str, pods: int, namespace: str = "team-a", *, age: float = 0, priority: int = 0) -> NewJob:
    names = (NameRange("pod", f"{name}-0"),)
    return new_job(name, namespace=namespace, pods=pods, names=names, priority=priority, created_at=later(-age))


async def submit_all(db: Database, *jobs: NewJob, limits: PodLimits = LIMITS) -> list[bool]:
    """Submit the jobs, each by itself. Return which ones are accepted."""
    return [isinstance((await submit(db, [job], limits))[0], Submitted) for job in jobs]


async def waiting(db: Database, *jobs: NewJob) -> list[str]:
    """The names of those of the jobs that wait."""
    found = await load(db, [job.uid for job in jobs], limits=LIMITS)
    return [job.row.name for job in jobs if found[job.uid].room_wait is not None]


async def wait_of(db: Database, job: NewJob, limits: PodLimits) -> RoomWait:
    wait = (await load(db, [job.uid], limits=limits))[job.uid].room_wait
    assert wait is not None
    return wait


async def start(db: Database, lease: Lease, jobs: Sequence[NewJob], namespace: str = "team-a") -> list[str]:
    """Give room to those whose turn it is, and return their names in this order."""
    names = {job.uid: job.row.name for job in jobs}
    return [names[uid] for uid in await room_waits.start(db, lease, namespace, LIMITS)]


async def test_jobs_get_room_by_priority_then_by_age(db: Database, lease: Lease) -> None:
    runs = a_job("runs", 10)
    jobs = [
        a_job("young", 2),
        a_job("old", 3, age=60),
        a_job("urgent", 4, priority=7),
        a_job("older-urgent", 8, age=5, priority=7),
        a_job("small", 1, age=1),
    ]
    assert all(await submit_all(db, runs, *jobs))
    assert await waiting(db, runs, *jobs) == [job.row.name for job in jobs]
    assert await planned(db) == {"team-a": 10}
    assert await start(db, lease, jobs) == []
    started = []
    running = runs
    for _ in jobs:
        await move(db, lease, running.uid, JobPhase.SUCCEEDED)
        turn = await start(db, lease, jobs)
        started.append(turn)
        if not turn:
            break
        running = next(job for job in jobs if job.row.name == turn[0])
        assert sum((await planned(db)).values()) <= LIMITS.namespace
    # The small jobs would have fit beside the urgent one, but others were before them.
    assert started[:2] == [["older-urgent"], ["urgent", "old", "small", "young"]]
    assert await waiting(db, *jobs) == []


async def test_a_waiting_job_says_what_it_waits_for(db: Database) -> None:
    jobs = [a_job(f"job-{number}", 5, age=100 - number) for number in range(9)]
    assert all(await submit_all(db, *jobs))
    found = await load(db, [job.uid for job in jobs], limits=LIMITS)
    waits = [wait for job in jobs if (wait := found[job.uid].room_wait) is not None]
    assert {(wait.pods, wait.planned, wait.limit) for wait in waits} == {(5, 10, 10)}
    assert [len(wait.before) for wait in waits] == [0, 1, 2, 3, 4, 5, 5]
    assert [wait.is_complete for wait in waits] == [True] * 6 + [False]
    assert waits[2].before == ("job-2", "job-3")
    turns, room = await room_waits.turns(db, LIMITS)
    assert [(turn.namespace, turn.planned, len(turn.jobs)) for turn in turns] == [("team-a", 10, 6)]
    assert room.waiting == {"team-a": 7}
    lowered = replace(LIMITS, namespace=4)
    assert "more than its namespace may have" in (await wait_of(db, jobs[2], lowered)).message
    assert (await room_waits.turns(db, lowered))[0] == [], "none of them can start"
    full = replace(LIMITS, namespace=20, installation=12)
    assert (await wait_of(db, jobs[2], full)).is_installation_full


async def test_a_wait_without_a_live_job_takes_no_room(db: Database, lease: Lease) -> None:
    """A process of another version may end or delete a job that waits."""
    runs, ended, waits = a_job("runs", 10), a_job("ended", 4, priority=1), a_job("waits", 6)
    assert all(await submit_all(db, runs, ended, waits))
    await move(db, lease, ended.uid, JobPhase.CANCELLED)
    orphans = [
        NewWait(job_uid=uid, namespace="team-a", priority=1, created_at=NOW, pods=4) for uid in (ended.uid, uuid4())
    ]
    async with db.begin() as connection:
        await room_waits.add(connection, orphans)
    assert (await wait_of(db, waits, LIMITS)).before == ("ended",)
    await move(db, lease, runs.uid, JobPhase.SUCCEEDED)
    assert await start(db, lease, [ended, waits]) == []
    assert await planned(db) == {}
    assert await start(db, lease, [ended, waits]) == ["waits"]
    assert await planned(db) == {"team-a": 6}


async def test_which_submissions_wait(db: Database) -> None:
    limits = replace(LIMITS, waiting=2)
    first, second, third, fourth = (a_job(f"job-{number}", 6) for number in range(4))
    elsewhere, larger = a_job("elsewhere", 6, "team-b"), a_job("larger", 11)
    assert await submit_all(db, larger, first, second, third, fourth, elsewhere, limits=limits) == [
        *(False, True, True, True),
        False,  # too many wait
        True,
    ]
    assert await waiting(db, first, second, third, elsewhere) == ["job-1", "job-2"]
    # Without the setting, what waits keeps its turn, and new jobs are refused.
    (over,) = await submit(db, [a_job("late", 1)], replace(limits, waiting=0))
    assert isinstance(over, OverLimit)
    assert over.waiting == 2
    assert await planned(db) == {"team-a": 6, "team-b": 6}


async def test_jobs_stored_together_wait_in_their_order(db: Database, lease: Lease) -> None:
    jobs = [a_job(f"job-{number}", 4) for number in range(5)]
    assert await submit_together(db, jobs, LIMITS) == {}
    assert await waiting(db, *jobs) == ["job-2", "job-3", "job-4"]
    await move(db, lease, jobs[0].uid, JobPhase.FAILED)
    await move(db, lease, jobs[1].uid, JobPhase.FAILED)
    assert await start(db, lease, jobs) == ["job-2", "job-3"]
    assert list(await submit_together(db, [a_job("a", 1), a_job("b", 11)], LIMITS)) == [1]


async def test_a_waiting_job_that_ends_gives_back_nothing_but_its_turn(db: Database, lease: Lease) -> None:
    jobs = [a_job(f"job-{number}", pods, age=-number) for number, pods in enumerate((8, 9, 2))]
    await submit_all(db, *jobs)
    await move(db, lease, jobs[1].uid, JobPhase.CANCELLED)
    assert await planned(db) == {"team-a": 8}
    assert await start(db, lease, jobs) == ["job-2"]
    assert await planned(db) == {"team-a": 10}
    for job in jobs[::2]:
        await move(db, lease, job.uid, JobPhase.SUCCEEDED)
    assert await planned(db) == {}


async def test_edits_of_sizes(db: Database, lease: Lease) -> None:
    runs, waits, last = (a_job(name, pods, age=age) for name, pods, age in (("a", 6, 3), ("b", 6, 2), ("c", 1, 1)))
    await submit_all(db, runs, waits, last)

    async def grow(job: NewJob, pods: int) -> None:
        change = JobEdit(namespace="team-a", manifest={}, labels={}, actor=Actor("a"), at=NOW, added_pods=pods)
        await edit(db, job.uid, change, LIMITS)

    with pytest.raises(Conflict) as refused:
        await grow(runs, 1)  # it would take the room for which others wait
    assert "2 jobs wait for room before" in refused.value.errors[0].detail
    await grow(waits, 4)
    with pytest.raises(Conflict) as refused:
        await grow(waits, 1)
    assert refused.value.errors[0].detail.startswith("11 pods never fit")
    assert await planned(db) == {"team-a": 6}
    await grow(waits, -7)
    assert await start(db, lease, [waits, last]) == ["b", "c"]
    await grow(waits, -2)
    assert await planned(db) == {"team-a": 8}
    await grow(runs, 2)
    assert await planned(db) == {"team-a": 10}


async def test_a_recount_and_a_move_know_which_jobs_wait(db: Database, lease: Lease) -> None:
    jobs = [a_job(f"job-{number}", 6, age=number) for number in range(3)]
    await submit_all(db, *jobs)
    await pod_room.recount(db)
    assert await planned(db) == {"team-a": 6}
    async with db.begin() as connection:
        await former_namespaces.move(connection, "team-a", "1", created_before=later(1), at=NOW)
    assert await planned(db) == {"team-a~1": 6}
    assert await room_waits.turns(db, LIMITS) == ([], PodRoom(LIMITS))
    assert await start(db, lease, jobs) == []


async def test_a_former_controller_gives_no_room(db: Database, lease: Lease) -> None:
    runs, waits = a_job("runs", 10), a_job("waits", 1)
    await submit_all(db, runs, waits)
    await move(db, lease, runs.uid, JobPhase.SUCCEEDED)
    await leases.release(db, lease)
    assert await leases.acquire(db, "controller", "another", ttl=600) is not None
    with pytest.raises(LeaseLost):
        await start(db, lease, [waits])
    assert await waiting(db, waits) == ["waits"]


async def test_submissions_edits_ends_and_turns_at_the_same_time(db: Database, lease: Lease) -> None:
    """Several processes submit to two namespaces while a controller gives room: the limits hold, and all jobs end."""
    choice = Random(7)
    spaces = ("team-a", "team-b")
    batches = [
        [a_job(f"{space}-{number}-{index}", choice.randint(1, 6), space, priority=index % 2) for index in range(4)]
        for number in range(6)
        for space in spaces
    ]

    async def store(batch: Sequence[NewJob]) -> None:
        while True:
            with suppress(DatabaseContended):  # a slow machine holds a lock for long, and then it is to be repeated
                answers = await submit(db, batch, LIMITS)
                assert {type(answer) for answer in answers} == {Submitted}
                return

    async def control() -> int:
        left, ended = {job.uid for batch in batches for job in batch}, 0
        while left:
            found = await load(db, list(left), limits=LIMITS)
            running = [uid for uid, job in found.items() if job.room_wait is None]
            held = await planned(db)
            assert all(pods <= LIMITS.namespace for pods in held.values()), held
            for uid in running[:3]:
                await move(db, lease, uid, JobPhase.SUCCEEDED)
                left.remove(uid)
                ended += 1
            for space in spaces:
                with suppress(DatabaseContended):
                    await room_waits.start(db, lease, space, LIMITS)
            await asyncio.sleep(0)
        return ended

    *_, ended = await asyncio.gather(*(store(batch) for batch in batches), control())
    assert ended == sum(map(len, batches))
    assert await planned(db) == {}


async def test_the_next_job_of_many_is_found_by_the_index(db: Database) -> None:
    """Ten thousand jobs wait in one namespace, and others wait elsewhere."""
    await submit_all(db, a_job("runs", 10), a_job("waits", 1), a_job("other", 10, "team-b"), a_job("b", 1, "team-b"))
    async with db.begin() as connection:
        await connection.execute(
            """
            INSERT INTO room_waits (job_uid, namespace, priority, created_at, pods)
            SELECT gen_random_uuid(), 'team-a', x % 3, now() - x * interval '1 s', 1 FROM generate_series(1, 10000) AS x
            """
        )
        await connection.execute("ANALYZE room_waits")
        plans = [
            "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN (ANALYZE, COSTS OFF) {sql}", *arguments))
            for sql, arguments in (
                (room_waits._NAMESPACES, ()),
                (room_waits._FIRST, (["team-a", "team-b"], 10, 6)),
            )
        ]
    for plan in plans:
        assert "room_waits_in_order" in plan
        assert "rows=10000" not in plan, plan
        assert "Seq Scan on room_waits" not in plan, plan
