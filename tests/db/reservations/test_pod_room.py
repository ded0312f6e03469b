"""Concurrent submissions never exceed the limits on planned pods. Pods are released when a job ends or scales down."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import pytest

from app.db.installation import leases
from app.db.jobs.controller import load, persist
from app.db.jobs.edits import JobEdit, edit
from app.db.jobs.submit import NewJob, submit, submit_together
from app.db.objects.submission import NameTaken, Submitted
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended
from app.db.reservations.pod_room import recount
from app.domain.access.actors import Actor
from app.domain.errors import Conflict
from app.domain.reservations.name_ranges import NameRange
from app.domain.reservations.pod_limits import OverLimit, PodLimits
from app.domain.status.records import JobStatus
from app.domain.vocabulary import JobPhase
from tests.db.factories import NOW, decision, new_job

TIGHT = PodLimits(installation=100, namespace=60)
WIDE = PodLimits(installation=10_000, namespace=8_000)


def jobs(count: int, pods: int, namespace: str = "team-a", prefix: str = "job") -> list[NewJob]:
    return [
        new_job(f"{prefix}-{number}", namespace=namespace, pods=pods, names=(NameRange("pod", f"{prefix}-{number}-0"),))
        for number in range(count)
    ]


async def planned(db: Database) -> dict[str, int]:
    async with db.read() as connection:
        rows = await connection.fetch("SELECT namespace, sum(pods) AS pods FROM planned_pods GROUP BY namespace")
        of_jobs = await connection.fetch(
            "SELECT namespace, sum(planned_pods) AS pods FROM jobs WHERE finished_at IS NULL GROUP BY namespace"
        )
    counted = {row["namespace"]: int(row["pods"]) for row in rows if row["pods"]}
    assert counted == {row["namespace"]: int(row["pods"]) for row in of_jobs if row["pods"]}
    return counted


async def test_each_job_of_a_batch_is_stored_or_refused_by_itself(db: Database) -> None:
    batch = [*jobs(3, 25), *jobs(2, 25, "team-b", "other"), *jobs(1, 5, prefix="small")]
    answers = await submit(db, batch, TIGHT)
    assert [type(answer) for answer in answers] == [Submitted, Submitted, OverLimit, Submitted, Submitted, OverLimit]
    refused = answers[2]
    assert isinstance(refused, OverLimit)
    assert (refused.namespace, refused.planned, refused.limit) == ("team-a", 50, 60)
    assert isinstance(answers[5], OverLimit)
    assert answers[5].namespace is None
    assert await planned(db) == {"team-a": 50, "team-b": 50}
    freed = new_job("again", namespace="team-a", names=batch[2].names)
    assert not isinstance((await submit(db, [freed], TIGHT))[0], NameTaken), "who is refused keeps no names"


@pytest.mark.parametrize("limits", [TIGHT, WIDE], ids=["near", "far"])
async def test_submissions_at_the_same_time_never_exceed_a_limit(db: Database, limits: PodLimits) -> None:
    size = max(limits.installation // 40, 1)
    batches = [
        jobs(4, size, namespace, f"{namespace}-{number}") for number in range(8) for namespace in ("team-a", "team-b")
    ]

    async def one(batch: Sequence[NewJob]) -> Counter[type]:
        while True:
            with suppress(DatabaseContended):  # a slow machine holds a lock for long, and then it is to be repeated
                return Counter(type(answer) for answer in await submit(db, batch, limits))

    kinds = sum(await asyncio.gather(*(one(batch) for batch in batches)), Counter())
    assert kinds[OverLimit] > 0
    found = await planned(db)
    assert sum(found.values()) == limits.installation // size * size
    assert max(found.values()) <= limits.namespace
    assert kinds[Submitted] == sum(found.values()) // size


async def test_jobs_stored_together_are_all_refused_if_one_exceeds_a_limit(db: Database) -> None:
    refused = await submit_together(db, jobs(3, 25), TIGHT)
    assert {place: type(answer) for place, answer in refused.items()} == {2: OverLimit}
    assert await planned(db) == {}


async def test_scaling_up_obeys_the_limits_and_scaling_down_releases_pods(db: Database) -> None:
    (job,) = jobs(1, 50)
    await submit(db, [job], TIGHT)

    def resized(pods: int) -> JobEdit:
        return JobEdit(namespace="team-a", manifest={}, labels={}, actor=Actor("a"), at=NOW, added_pods=pods)

    with pytest.raises(Conflict) as refused:
        await edit(db, job.uid, resized(11), TIGHT)
    assert refused.value.code == "TooManyPods"
    await edit(db, job.uid, resized(10), TIGHT)
    assert await planned(db) == {"team-a": 60}
    await edit(db, job.uid, resized(-55), TIGHT)
    assert await planned(db) == {"team-a": 5}


async def test_a_job_that_ends_releases_its_planned_pods_once(db: Database) -> None:
    (job,) = jobs(1, 50)
    await submit(db, [job], TIGHT)
    lease = await leases.acquire(db, "controller", "a test", ttl=600)
    assert lease is not None
    for message in ("first", "second"):
        stored = (await load(db, [job.uid]))[job.uid]
        status = JobStatus(phase=JobPhase.SUCCEEDED, message=message, finished_at=NOW)
        assert await persist(db, lease, [stored.write(decision(status))]) == []
        assert await planned(db) == {}


async def test_many_changes_are_folded(db: Database) -> None:
    for number in range(3):
        await submit(db, jobs(1, 1, prefix=f"before-{number}"), WIDE)
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO planned_pods (namespace, pods) "
            "SELECT 'team-c', x % 2 * 2 - 1 FROM generate_series(1, 400) AS x"
        )
    await submit(db, jobs(1, 1, prefix="after"), WIDE)
    async with db.read() as connection:
        rows = await connection.fetch("SELECT namespace, pods FROM planned_pods ORDER BY id")
    assert [tuple(row) for row in rows] == [("team-a", 3), ("team-a", 1)]


async def test_a_fold_is_not_repeated_where_many_namespaces_have_pods(db: Database) -> None:
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO planned_pods (namespace, pods) SELECT 'team-' || x, 1 FROM generate_series(1, 400) AS x"
        )
    for number in range(3):
        await submit(db, jobs(1, 1, prefix=f"job-{number}"), WIDE)
    async with db.read() as connection:
        assert await connection.fetchval("SELECT count(*) FROM planned_pods") == 403


async def test_a_recount_releases_pods_that_an_earlier_version_did_not_release(db: Database) -> None:
    await submit(db, [*jobs(2, 20), *jobs(1, 5, namespace="team-b")], TIGHT)
    async with db.begin() as connection:
        await connection.execute("UPDATE jobs SET finished_at = created_at, quiet = true WHERE name = 'job-1'")
    await recount(db)
    assert await planned(db) == {"team-a": 20, "team-b": 5}
