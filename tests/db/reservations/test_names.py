"""Postgres keeps ranges of names apart exactly when the sets of their names intersect, also for those that meet."""

import asyncio
import random
from collections.abc import Sequence
from itertools import combinations
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.db.jobs import edits
from app.db.jobs.edits import JobEdit
from app.db.jobs.submit import NewJob, Undecided, submit
from app.db.objects.submission import Answer, NameTaken, Submitted
from app.db.postgres import migrations
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended
from app.db.reservations.names import pod_is_taken_over
from app.domain.access.actors import Actor
from app.domain.errors import Conflict
from app.domain.reservations.name_ranges import NameRange, split
from tests.db.factories import NOW, later, names_held, new_job, submitted

STEMS = ("a-", "a-1-", "b-worker-", "c")
WHOLE = ("a", "a-07", "b", "7", "a-1234567890")
ODD_NAMES = (*WHOLE, "a-0", "train7", "a-999999999", "1.2", "x-00", "a\nb-3", "é-4")


def some_names(chance: random.Random) -> list[NameRange]:
    names = [
        NameRange(
            chance.choice(("pod", "service")), f"{chance.choice(STEMS)}{chance.randrange(9)}", chance.randint(1, 5)
        )
        for _ in range(chance.randint(1, 3))
    ]
    return [*names, NameRange("service", chance.choice(WHOLE))] if chance.random() < 0.3 else names


def all_names(names: Sequence[NameRange]) -> set[tuple[str, str]]:
    return {(one.kind, name) for one in names for name in one.names}


async def test_two_jobs_exclude_each_other_when_their_names_intersect(db: Database) -> None:
    """A pair a namespace: the sets of names say what the answers must be."""
    chance = random.Random(11)
    pairs = [(some_names(chance), some_names(chance)) for _ in range(400)]
    first = [new_job("one", namespace=f"n{place}", names=names) for place, (names, _) in enumerate(pairs)]
    second = [new_job("two", namespace=f"n{place}", names=names) for place, (_, names) in enumerate(pairs)]
    await submitted(db, *first)
    answers = await submit(db, second)
    clashes = 0
    for (one, other), answer in zip(pairs, answers, strict=True):
        shared = all_names(one) & all_names(other)
        clashes += bool(shared)
        if shared:
            assert isinstance(answer, NameTaken), (one, other)
            assert (answer.kind, answer.name) in shared
            assert answer.holder_name == "one"
        else:
            assert isinstance(answer, Submitted), (one, other, answer)
    assert 50 < clashes < 350, "both answers are tried"


async def until_stored(db: Database, crowd: list[NewJob]) -> list[Answer | Undecided]:
    """Repeat a submission that meets others: Postgres ends one of two that wait for each other's ranges."""
    while True:
        try:
            return await submit(db, crowd)
        except DatabaseContended:
            continue


async def test_concurrent_jobs_with_ranges_never_share_a_name(db: Database) -> None:
    chance = random.Random(5)
    for _ in range(6):
        crowds: list[list[NewJob]] = [
            [new_job(f"job-{uuid4().hex}", names=some_names(chance)) for _ in range(8)] for _ in range(4)
        ]
        answers = await asyncio.gather(*(until_stored(db, crowd) for crowd in crowds))
        held = await names_held(db)
        for crowd, of_crowd in zip(crowds, answers, strict=True):
            for job, answer in zip(crowd, of_crowd, strict=True):
                mine = all_names([*job.names, NameRange("job", job.row.name)])
                assert {name for name, holder in held.items() if holder == job.uid} == (
                    mine if isinstance(answer, Submitted) else set()
                )
                assert isinstance(answer, Submitted | NameTaken | Undecided)
                assert not isinstance(answer, NameTaken) or held[answer.kind, answer.name] == answer.holder_uid
        async with db.begin() as connection:
            await connection.execute("DELETE FROM names")


async def test_the_stored_jobs_of_a_batch_share_no_name(db: Database) -> None:
    chance = random.Random(3)
    crowd = [new_job(f"job-{n}", names=some_names(chance)) for n in range(60)]
    answers = await submit(db, crowd)
    winners = [job for job, answer in zip(crowd, answers, strict=True) if isinstance(answer, Submitted)]
    assert 1 < len(winners) < len(crowd)
    for one, other in combinations(winners, 2):
        assert not all_names(one.names) & all_names(other.names)


async def test_the_names_of_ten_thousand_replicas_are_one_row_for_each_task(db: Database) -> None:
    names = [NameRange("pod", "big-worker-0", 10_000), NameRange("service", "big-worker-0", 10_000)]
    await submitted(db, new_job("big", names=names))
    async with db.read() as connection:
        assert await connection.fetchval("SELECT count(*) FROM names") == 3
    answer = (await submit(db, [new_job("other", names=[NameRange("service", "big-worker-9999")])]))[0]
    assert isinstance(answer, NameTaken)
    assert (answer.kind, answer.name, answer.holder_name) == ("service", "big-worker-9999", "big")
    await submitted(db, new_job("beside", names=[NameRange("service", "big-worker-10000")]))


def edit(*names: NameRange) -> JobEdit:
    return JobEdit(namespace="team-a", manifest={}, labels={}, actor=Actor("a"), at=NOW, names=names)


async def test_ranges_of_a_job_that_scales_up_repeatedly_never_overlap(db: Database) -> None:
    """It grows, shrinks, and grows beyond what it had: what is its own already is not in its way."""
    (uid,) = await submitted(db, new_job("a", names=[NameRange("pod", "a-w-0", 2)]))
    for first, count in ((2, 3), (1, 9), (0, 4), (3, 12)):
        await edits.edit(db, uid, edit(NameRange("pod", f"a-w-{first}", count)))
    held = await names_held(db)
    assert {name for kind, name in held if kind == "pod"} == {f"a-w-{n}" for n in range(15)}
    (other,) = await submitted(db, new_job("b", names=[NameRange("pod", "a-w-20", 2)]))
    with pytest.raises(Conflict) as refused:
        await edits.edit(db, uid, edit(NameRange("pod", "a-w-10", 20)))
    assert f"the live job b ({other}) uses the pod name a-w-20" in refused.value.errors[0].detail
    assert await names_held(db) == {**held, ("job", "b"): other, ("pod", "a-w-20"): other, ("pod", "a-w-21"): other}


@pytest.mark.parametrize(("pod", "taken"), [("a-w-0", True), ("a-w-4", True), ("a-w-5", False), ("a-w", False)])
async def test_a_pod_name_within_a_newer_range_is_taken_over(db: Database, pod: str, taken: bool) -> None:  # noqa: FBT001
    (old,) = await submitted(db, new_job("old", names=(), created_at=NOW))
    await submitted(db, new_job("new", names=[NameRange("pod", "a-w-0", 5)], created_at=later(9)))
    assert await pod_is_taken_over(db, "team-a", pod, old) is taken


async def test_the_database_splits_names_as_the_domain_does(db: Database) -> None:
    insert = "INSERT INTO names (job_uid, namespace, kind, name) VALUES ($1, 'n', 'pod', $2) RETURNING stem, number"
    async with db.begin() as connection:
        for name in ODD_NAMES:
            assert tuple(await connection.fetchrow(insert, uuid4(), name)) == split(name)


OLD_INSERT = "INSERT INTO names (job_uid, namespace, kind, name) VALUES ($1, 'team-a', $2, $3)"
OLD_RELEASED = "INSERT INTO names (job_uid, namespace, kind, name, released) VALUES ($1, 'team-a', 'pod', $2, true)"
OLD_ROWS = "SELECT kind, name, job_uid, released FROM names ORDER BY 1, 2, 3"


async def test_stored_names_become_ranges_and_names_again(empty_database_url: str) -> None:
    migrations.migrate(empty_database_url, "0002")
    connection = await asyncpg.connect(empty_database_url, timeout=10)
    old, done = uuid4(), uuid4()
    names = [("pod", f"a-w-{n}") for n in (*range(12), 20)] + [("service", "a-w-3"), ("job", "a-7"), ("pod", "a-007")]
    for kind, name in names:
        await connection.execute(OLD_INSERT, old, kind, name)
    for n in range(3):
        await connection.execute(OLD_RELEASED, done, f"a-w-{n}")
    before = [tuple(row) for row in await connection.fetch(OLD_ROWS)]
    migrations.migrate(empty_database_url)
    rows = {tuple(row) for row in await connection.fetch("SELECT job_uid, kind, name, count, released FROM names")}
    assert rows == {
        (old, "pod", "a-w-0", 12, False),
        (old, "pod", "a-w-20", 1, False),
        (old, "pod", "a-007", 1, False),
        (old, "service", "a-w-3", 1, False),
        (old, "job", "a-7", 1, False),
        (done, "pod", "a-w-0", 3, True),
    }
    await an_older_process_is_kept_apart(connection, uuid4())
    migrations.downgrade(empty_database_url, "0002")
    assert [tuple(row) for row in await connection.fetch(OLD_ROWS)] == before
    await connection.close()


async def an_older_process_is_kept_apart(connection: asyncpg.Connection, uid: UUID) -> None:
    """It inserts a row a name, and asks for the index by its columns."""
    insert = f"{OLD_INSERT} ON CONFLICT (namespace, name, kind) WHERE NOT released DO NOTHING RETURNING name"
    assert await connection.fetchval(insert, uid, "pod", "a-w-0") is None
    with pytest.raises(asyncpg.ExclusionViolationError):
        await connection.fetchval(insert, uid, "pod", "a-w-5")
    assert await connection.fetchval(insert, uid, "pod", "a-w-12") == "a-w-12"
    await connection.execute("DELETE FROM names WHERE job_uid = $1", uid)
