"""The command `jobgate purge` on a real database: what it prints, deletes and leaves when it is killed."""

from pathlib import Path
from signal import SIGKILL

import pytest

from app.db.postgres.engine import Database
from app.db.purge import OBJECTS
from app.running.operations.purging import PurgeOrder
from tests.api.conftest import gateway
from tests.exports.ended_jobs import ended_job, imported, stored
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.gateway import Gateway
from tests.support.postgres import count_rows

__all__ = ["gateway"]

JOBS = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet, finished_at, gone_at)
SELECT gen_random_uuid(), $1, 'job-' || n, 'X', 'v1', '{}', now(), 'me', $2, '', '', true,
       '2026-01-01Z'::timestamptz + n * interval '1 hour', now()
FROM generate_series(1, $3::int) AS n
"""
REPLICAS = """
INSERT INTO replicas (job_uid, task, rank, attempt, phase, evidence, restarts, disruptions)
SELECT uid, 'worker', rank, 1, '', '', 0, 0 FROM jobs, generate_series(1, 3) AS rank
"""
# Rows of no job, except those whose deletion goes on.
LOST = """
SELECT count(*) FROM replicas WHERE job_uid NOT IN (
    SELECT uid FROM jobs UNION ALL SELECT uid FROM purged WHERE has_records)
"""


async def store(db: Database, namespace: str, phase: str, count: int) -> None:
    async with db.begin() as connection:
        await connection.execute(JOBS, namespace, phase, count)


async def test_it_counts_and_then_deletes(db: Database, database_url: str, tmp_path: Path) -> None:
    await store(db, "a", "Failed", 100)
    await store(db, "a", "Succeeded", 30)
    await store(db, "b", "Failed", 20)
    options = ("--before", "2026-01-03", "--namespace", "a", "--phase", "Failed")
    shown = "jobs that ended before 2026-01-03T00:00:00Z:\n  a  Failed  47\n  47 in all\n"
    for more, printed, left in ((("--dry-run",), "", 150), ((), "deleted: 47 jobs\n", 103)):
        ran = jobgate("purge", *options, *more, home=tmp_path, JOBGATE_DATABASE_URL=database_url)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, shown + printed, "")
        assert await count_rows(db, "jobs") == left
    again = jobgate("purge", *options, home=tmp_path, JOBGATE_DATABASE_URL=database_url)
    assert again.stdout.endswith("  0 in all\ndeleted: nothing\n")


async def test_jobs_are_exported_before_they_are_deleted(gateway: Gateway, tmp_path: Path) -> None:
    uids = [await ended_job(gateway, name) for name in ("one", "two")]
    async with gateway.db.begin() as connection:
        await connection.execute("UPDATE jobs SET gone_at = finished_at")
    before = await stored(gateway.db, *uids)
    folder = tmp_path / "archive"
    given = {"JOBGATE_DATABASE_URL": gateway.db.url, "JOBGATE_EXPORT_TO": str(folder)}
    dry = jobgate("purge", "--before", "0d", "--dry-run", home=tmp_path, **given)
    assert (dry.returncode, dry.stderr) == (0, "")
    assert f"each is exported to {folder} before it is deleted\n" in dry.stdout
    assert not folder.exists()
    assert await count_rows(gateway.db, "jobs") == 2
    ran = jobgate("purge", "--before", "0d", home=tmp_path, **given)
    assert ran.returncode == 0, ran.stderr
    assert await count_rows(gateway.db, "jobs") == 0
    assert (await imported(gateway.db, folder)).imported == 2
    assert await stored(gateway.db, *uids) == before


@pytest.mark.parametrize("point", ["segment-stored", "batch-purged"])
async def test_a_killed_purge_has_exported_what_it_has_deleted(gateway: Gateway, tmp_path: Path, point: str) -> None:
    uids = [await ended_job(gateway, name) for name in ("one", "two")]
    async with gateway.db.begin() as connection:
        await connection.execute("UPDATE jobs SET gone_at = finished_at")
    before = await stored(gateway.db, *uids)
    folder = tmp_path / "archive"
    given = {"JOBGATE_DATABASE_URL": gateway.db.url, "JOBGATE_EXPORT_TO": str(folder)}
    killed = jobgate("purge", "--before", "0d", home=tmp_path, **given, JOBGATE_FAULT_POINTS=point)
    assert killed.returncode == -SIGKILL
    assert jobgate("purge", "--before", "0d", home=tmp_path, **given).returncode == 0
    assert await count_rows(gateway.db, "jobs") == 0
    assert (await imported(gateway.db, folder)).imported == 2
    assert await stored(gateway.db, *uids) == before


async def test_nothing_is_deleted_that_cannot_be_exported(db: Database, database_url: str, tmp_path: Path) -> None:
    await store(db, "a", "Failed", 3)
    folder = tmp_path / "archive"
    folder.touch()  # a file in the place of the folder
    given = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_EXPORT_TO": str(folder)}
    ran = jobgate("purge", "--before", "0d", home=tmp_path, **given)
    assert ran.returncode == 2
    assert str(folder) in ran.stderr
    assert await count_rows(db, "jobs") == 3


async def test_a_clock_that_is_a_year_ahead_makes_no_duration_too_short(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    """For the database, a controller has recorded the last time a year ago."""
    await store(db, "a", "Failed", 3)
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO timekeeping (ahead, reached_at, fault) VALUES (0, now() - interval '365 days', '')"
        )
    ran = jobgate("purge", "--before", "30d", home=tmp_path, JOBGATE_DATABASE_URL=database_url)
    assert ran.returncode == 2
    assert "no controller has recorded the time for 365 days" in ran.stderr
    assert await count_rows(db, "jobs") == 3
    sure = jobgate("purge", "--before", "2026-01-02", home=tmp_path, JOBGATE_DATABASE_URL=database_url)
    assert sure.returncode == 0, sure.stderr
    assert await count_rows(db, "jobs") == 0


@pytest.mark.parametrize("batches", [1, 3])
async def test_another_one_completes_what_a_killed_one_began(
    db: Database, database_url: str, tmp_path: Path, batches: int
) -> None:
    await store(db, "a", "Failed", 180)
    async with db.begin() as connection:
        await connection.execute(REPLICAS)
    killed = {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_FAULT_POINTS": f"batch-purged:{batches}"}
    assert jobgate("purge", "--before", "0d", home=tmp_path, **killed).returncode == -9
    assert await count_rows(db, "jobs") == 180 - OBJECTS * batches
    async with db.read() as connection:
        assert await connection.fetchval(LOST) == 0
    assert jobgate("purge", "--before", "0d", home=tmp_path, JOBGATE_DATABASE_URL=database_url).returncode == 0
    tables = ("jobs", "replicas", "purged", "job_events")
    assert [await count_rows(db, table) for table in tables] == [0, 0, 180, 180]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Missing option '--before'"),
        (("--before", "soon"), "--before soon: expected a time such as 2026-08-31T12:00Z, or a duration such as 90d"),
        (("--before", "never"), "--before never: expected a time"),
        (("--before", "1d", "--phase", "Running"), "the phases are Cancelled, Failed, Succeeded, TimedOut"),
        (("--before", "1d", "--phase", "Failed", "--samples"), "--phase is one of jobs"),
    ],
)
def test_wrong_options_are_named(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ran = jobgate("purge", *options, home=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr


@pytest.mark.parametrize("text", ["2026-01-03", "2026-01-03T00:00", "2026-01-03T00:00Z", "2026-01-03T01:00+01:00"])
def test_a_time_without_a_zone_is_in_utc(text: str) -> None:
    order = PurgeOrder.of(before=text, namespaces=[], phases=[], samples=False, dry_run=True)
    assert str(order.before).startswith("2026-01-03 0")
    wanted = PurgeOrder.of(before="2026-01-03T00:00Z", namespaces=[], phases=[], samples=False, dry_run=True)
    assert order.before == wanted.before
