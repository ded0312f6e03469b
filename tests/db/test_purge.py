"""A purge deletes all that is stored of expired objects, and nothing else, wherever it is interrupted."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Uuid

from app.db import purge
from app.db.postgres.engine import Database
from app.db.purge import Purge
from app.models import metadata
from app.models.feed import job_events
from app.models.jobs import jobs
from app.models.purged import purged
from app.models.requests import idempotency_keys
from app.models.samples import samples
from tests.db.factories import NOW, new_job, submitted
from tests.db.lists.rows import Explained

BEFORE = {"team-a": NOW, "team-b": NOW - timedelta(days=5)}
DAY = timedelta(days=1)
KEEP = {"metadata": {"annotations": {"jobgate.dev/keep": "true"}}}
END = """
UPDATE jobs
SET phase = $2, finished_at = $3::timestamptz, gone_at = CASE WHEN $4::bool THEN $3::timestamptz END, quiet = true,
    intent_at = $5
WHERE uid = $1
"""


async def fetch(db: Database, statement: str, *values: Any) -> list[Any]:
    async with db.read() as connection:
        found: list[Any] = await connection.fetch(statement, *values)
    return found


async def rows_about(db: Database, uid: UUID) -> dict[str, int]:
    """Count the rows with the uid in any column of a uid, in all tables."""
    found = {}
    for table in metadata.sorted_tables:
        columns = [column.name for column in table.columns if isinstance(column.type, Uuid)]
        if columns:
            condition = " OR ".join(f"{name} = $1" for name in columns)
            found[table.name] = (await fetch(db, f"SELECT count(*) FROM {table.name} WHERE {condition}", uid))[0][0]
    return {table: count for table, count in found.items() if count}


async def record(db: Database, uid: UUID, attempts: int = 1) -> None:
    """Write a row about the job into each table of its records."""
    for number in range(1, attempts + 1):
        key = (uid, "worker", 0, number)
        await fetch(db, "INSERT INTO attempt_logs VALUES ($1, $2, $3, $4, 'main', '', false)", *key)
        await fetch(db, "INSERT INTO attempt_events VALUES ($1, $2, $3, $4)", *key)
        await fetch(
            db,
            "INSERT INTO attempts (job_uid, task, rank, attempt, phase, evidence) VALUES ($1, $2, $3, $4, '', '')",
            *key,
        )
    await fetch(
        db,
        """INSERT INTO replicas (job_uid, task, rank, attempt, phase, evidence, restarts, disruptions)
        VALUES ($1, 'worker', 0, 1, '', '', 0, 0)""",
        uid,
    )
    await fetch(
        db,
        """INSERT INTO scale_records (job_uid, seq, task, from_replicas, to_replicas, actor, reason, requested_at)
        VALUES ($1, 1, 'worker', 1, 2, 'alice', '', $2)""",
        uid,
        NOW,
    )
    await fetch(
        db,
        """INSERT INTO conditions (job_uid, type, position, status, reason, message, last_transition_at,
        observed_generation) VALUES ($1, 'Failed', 0, 'True', '', '', $2, 1)""",
        uid,
        NOW,
    )
    await fetch(
        db,
        "INSERT INTO room_waits (job_uid, namespace, priority, created_at, pods) VALUES ($1, 'team-a', 0, $2, 1)",
        uid,
        NOW,
    )


async def a_job(
    db: Database,
    number: int,
    *,
    days: float | None = 10,
    namespace: str = "team-a",
    phase: str = "Failed",
    is_gone: bool = True,
    has_intent: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> UUID:
    """Store a job with all sorts of records. It ended this many days ago, or is live."""
    manifest = {"metadata": {"annotations": dict(annotations or {}), "note": "\0"}}
    job = new_job(f"job-{number}", names=(), manifest=manifest, namespace=namespace)
    (uid,) = await submitted(db, job)
    if days is not None:
        await fetch(db, END, uid, phase, NOW - days * DAY, is_gone, NOW if has_intent else None)
    await record(db, uid)
    return uid


def a_purge(db: Database, **changes: Any) -> Purge:
    return replace(Purge(db=db, of=purge.JOBS, ended_before=BEFORE, objects=3, rows=7), **changes)


async def run(a: Purge, steps: int = 1_000) -> bool:
    """Make at most this many steps, and return whether that was all."""
    for _ in range(steps):
        if (await a.step()).is_last:
            return True
    return False


KEPT: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("live", {"days": None}),
    ("young", {"days": -1}),
    ("with objects in the cluster", {"is_gone": False}),
    ("with an intent", {"has_intent": True}),
    ("pinned", {"annotations": {"jobgate.dev/keep": "true"}}),
    ("young in its namespace", {"namespace": "team-b", "days": 4}),
    ("of another namespace", {"namespace": "team-c"}),
)
PURGED: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("expired", {}),
    ("just expired", {"days": 0.001}),
    ("not pinned", {"annotations": {"jobgate.dev/keep": "false", "example.com/jobgate.dev/keep": "true"}}),
    ("expired in its namespace", {"namespace": "team-b", "days": 6}),
    ("succeeded", {"phase": "Succeeded"}),
)


@pytest.mark.parametrize("interrupted", [0, 1, 2, 5])
async def test_only_expired_objects_are_purged_with_all_that_is_about_them(db: Database, interrupted: int) -> None:
    cases = [*KEPT, *PURGED]
    uids = {name: await a_job(db, number, **case) for number, (name, case) in enumerate(cases)}
    before = {name: await rows_about(db, uids[name]) for name, _ in KEPT}
    counted = {phase: count for _, phase, count in await a_purge(db, ended_before={"team-a": NOW}).count()}
    assert counted == {"Failed": 3, "Succeeded": 1}
    await run(a_purge(db), interrupted)
    assert await run(a_purge(db))
    assert {name: await rows_about(db, uids[name]) for name, _ in KEPT} == before
    for name, case in PURGED:
        # The feed has its submission and the purge.
        assert await rows_about(db, uids[name]) == {"job_events": 2, "purged": 1}, name
        assert await purge.namespace_of(db, uids[name], "jobs") == case.get("namespace", "team-a")
        assert await purge.namespace_of(db, uids[name], "samplesets") is None
    left = await fetch(db, "SELECT type, version FROM job_events WHERE job_uid = $1 ORDER BY id", uids["expired"])
    assert [tuple(row) for row in left] == [("created", 1), ("purged", 2)]
    assert await fetch(db, "SELECT FROM purged WHERE has_records") == []


async def test_a_job_with_many_rows_is_gone_at_once_and_its_rows_later(db: Database) -> None:
    uid = await a_job(db, 1)
    await fetch(db, "DELETE FROM attempts WHERE job_uid = $1", uid)
    await fetch(
        db,
        """INSERT INTO attempts (job_uid, task, rank, attempt, phase, evidence)
        SELECT $1, 'worker', 0, n, '', '' FROM generate_series(1, 40) AS n""",
        uid,
    )
    a = a_purge(db)
    steps = []
    while not (step := await a.step()).is_last:
        steps.append(sum(step.rows.values()))
        assert await fetch(db, "SELECT FROM jobs") == []
    assert max(steps) <= a.rows + 1
    assert len(steps) > 5
    assert await rows_about(db, uid) == {"job_events": 2, "purged": 1}


async def test_phases_restrict_a_purge(db: Database) -> None:
    uids = [await a_job(db, number, phase=phase) for number, phase in enumerate(("Failed", "Succeeded", "Cancelled"))]
    assert await run(a_purge(db, phases=["Failed", "Cancelled"]))
    assert [row["uid"] for row in await fetch(db, "SELECT uid FROM jobs")] == [uids[1]]


async def test_a_locked_job_is_left_to_the_next_purge(db: Database) -> None:
    """The lock may be that of a request which pins the job."""
    uids = [await a_job(db, number) for number in range(2)]
    async with db.begin() as connection:
        await connection.execute("UPDATE jobs SET manifest = $2 WHERE uid = $1", uids[0], KEEP)
        assert await run(a_purge(db))
        left = await fetch(db, "SELECT uid FROM jobs")
    assert [row["uid"] for row in left] == [uids[0]]
    assert await run(a_purge(db))
    assert await rows_about(db, uids[0]) != {}
    await fetch(db, "UPDATE jobs SET manifest = '{}'::json")
    assert await run(a_purge(db))
    assert await fetch(db, "SELECT FROM jobs") == []


async def test_two_purges_at_a_time_do_no_harm(db: Database) -> None:
    for number in range(20):
        await a_job(db, number)
    assert all(await asyncio.gather(*(run(a_purge(db)) for _ in range(3))))
    assert await fetch(db, "SELECT FROM jobs") == []
    (counts,) = await fetch(db, "SELECT count(*), count(*) FILTER (WHERE has_records) FROM purged")
    assert tuple(counts) == (20, 0)


SAMPLE = """
INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase, reason,
                     message, finished_at, gone_at, wake_at)
VALUES ($1, $2, 'team-a', $3, 'v', '{}', 's', $4, 'me', '', '', '', $5, $6, $7)
"""
OLD = NOW - 10 * DAY
SAMPLES: Mapping[str, tuple[str, Any, Any, Any, bool]] = {
    "a sample job that ended": ("SampleJob", OLD, None, None, True),
    "a sample job that is tried again": ("SampleJob", OLD, None, NOW, False),
    "a sample job that runs": ("SampleJob", None, None, None, False),
    "a young sample job": ("SampleJob", NOW, None, None, False),
    "a deleted sample job": ("SampleJob", None, OLD, None, True),
    "a sample set": ("SampleSet", None, None, None, False),
    "a sample set that failed": ("SampleSet", OLD, None, None, False),
    "a removed sample set": ("SampleSet", None, OLD, None, True),
}


async def test_samples_are_purged_when_they_have_ended_or_are_gone(db: Database) -> None:
    uids = {name: uuid4() for name in SAMPLES}
    for name, (kind, finished_at, gone_at, wake_at, _) in SAMPLES.items():
        uid = uids[name]
        await fetch(db, SAMPLE, uid, kind, name, OLD, finished_at, gone_at, wake_at)
        await fetch(db, "INSERT INTO sample_history VALUES ($1, 1, $2, '', '', '', 'me')", uid, NOW)
        await fetch(db, "INSERT INTO sample_events VALUES ($1, 1, $2, '', '', '')", uid, NOW)
    assert await run(a_purge(db, of=purge.SAMPLES))
    for name, (kind, *_, is_purged) in SAMPLES.items():
        left = {"samples": 1, "sample_history": 1, "sample_events": 1}
        expected = {"job_events": 1, "purged": 1} if is_purged else left
        assert await rows_about(db, uids[name]) == expected, name
        resource = f"{kind.lower()}s"
        assert await purge.namespace_of(db, uids[name], resource) == ("team-a" if is_purged else None)


MANY = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet, finished_at, gone_at, imported_at)
SELECT gen_random_uuid(), $1, 'many-' || n, 'X', 'v1', '{}', $2, 'me', 'Failed', '', '', true,
       $2::timestamptz - n * interval '1 minute', $3, $5
FROM generate_series(1, $4::int) AS n
"""


async def test_the_search_reads_only_what_is_purged(db: Database) -> None:
    """Neither what is younger, nor what another namespace keeps, has objects in the cluster, or was imported."""
    young, old = NOW + 10 * DAY, NOW - 10 * DAY
    for namespace, at, is_gone, imported_at in (
        ("team-a", young, True, None),
        ("team-a", young, False, None),
        ("kept", young, True, None),
        ("team-a", old, True, NOW),
    ):
        await fetch(db, MANY, namespace, at, at if is_gone else None, 2_000, imported_at)
    for number in range(5):
        await a_job(db, number)
    await fetch(db, "ANALYZE jobs")
    a = a_purge(db)
    async with db.read() as connection:
        explained = Explained(connection)
        found = await explained.fetch(purge.JOBS.find, *a._arguments(sorted(BEFORE), {}), 3)
    assert len(found) == 3
    assert explained.examined <= 6, explained.plans


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_for_a_rare_phase_reads_a_bounded_number_of_rows(db: Database, *, analyzed: bool) -> None:
    old = NOW - 10 * DAY
    await fetch(db, MANY, "team-a", old, old, 20_000, None)
    await fetch(db, "UPDATE jobs SET phase = 'TimedOut' WHERE name IN ('many-1', 'many-7000', 'many-20000')")
    if analyzed:
        await fetch(db, "ANALYZE jobs")
    a = a_purge(db, phases=["TimedOut"], examined=500)
    async with db.snapshot(by_index=True) as connection:
        explained = Explained(connection)
        found = await explained.fetch(purge.JOBS.find, *a._arguments(["team-a"], {}), 500)
    assert (len(found), sum(row["matches"] for row in found)) == (500, 1)
    assert explained.examined <= 502, explained.plans
    assert await a.count() == [("team-a", "TimedOut", 3)]
    assert await run(a)
    assert (await fetch(db, "SELECT count(*) FROM jobs WHERE phase = 'TimedOut'"))[0][0] == 0
    assert (await fetch(db, "SELECT count(*) FROM jobs"))[0][0] == 19_997


async def test_jobs_that_ended_at_the_same_time_are_all_counted_and_deleted(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "_COUNTED", 4)
    for number in range(10):
        await a_job(db, number, phase="Succeeded" if number == 4 else "Failed")
    a = a_purge(db, examined=3)
    assert await a.count() == [("team-a", "Failed", 9), ("team-a", "Succeeded", 1)]
    assert await run(a)
    assert await fetch(db, "SELECT FROM jobs") == []


async def test_namespaces_are_those_of_objects_that_can_be_purged(db: Database) -> None:
    cases: Sequence[Mapping[str, Any]] = [
        *({"namespace": namespace} for namespace in ("b", "a", "b", "c~1")),
        {"namespace": "live", "days": None},
        {"namespace": "in-cluster", "is_gone": False},
        {"namespace": "pinned", "annotations": {"jobgate.dev/keep": "true"}},
    ]
    for number, case in enumerate(cases):
        await a_job(db, number, **case)
    assert await purge.namespaces(db, purge.JOBS) == ["a", "b", "c~1"]


# Their rows name objects, and stay after the records of these for a time of their own.
WITH_OWN_TIME = {job_events, idempotency_keys, purged}


def test_every_table_with_a_uid_of_an_object_is_purged_or_has_its_own_time() -> None:
    """A new table is purged with its object when it is in one of the lists of `app.db.objects.records`."""
    records = {records.table for records in (*purge.JOBS.records, *purge.SAMPLES.records)}
    owners = {"uid", "job_uid"}
    tables = {table for table in metadata.sorted_tables if owners & set(table.columns.keys())}
    assert tables == records | {jobs, samples} | WITH_OWN_TIME
