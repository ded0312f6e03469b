"""Each check finds the fault that it is for, and nothing in a database in which the invariants hold."""

from typing import Any

import asyncpg
import pytest

from app.db import log_removal
from app.db.postgres.engine import Database
from app.db.verification import runner
from app.db.verification.check import CheckResult
from app.db.verification.runner import CHECKS, next_batch, verify_database
from tests.db.factories import NOW
from tests.support.schemas import fill
from tests.support.verified_world import ENDED, RUNNING, SAMPLE, WAITING, create_world

# A statement that makes a fault, and a part of its report.
FAULTS: dict[str, list[tuple[str, str]]] = {
    "history-numbers": [
        (f"DELETE FROM status_history WHERE job_uid = '{RUNNING}' AND seq = 2", "history_count is 3, and there are 2"),
        (f"UPDATE jobs SET history_count = 4 WHERE uid = '{RUNNING}'", "history_count is 4"),
        (f"UPDATE status_history SET seq = 5 WHERE job_uid = '{RUNNING}' AND seq = 3", "numbered from 1 to 5"),
    ],
    "history-phase": [
        (f"UPDATE jobs SET phase = 'Pending' WHERE uid = '{RUNNING}'", "the phase is Pending, and the last row"),
    ],
    "terminal-phases": [
        (f"UPDATE status_history SET phase = 'Failed' WHERE job_uid = '{ENDED}' AND seq = 1", "Failed in row 1"),
    ],
    "end-times": [
        (f"UPDATE jobs SET finished_at = NULL WHERE uid = '{ENDED}'", "the phase is Succeeded, finished_at "),
        (f"UPDATE jobs SET finished_at = now() WHERE uid = '{RUNNING}'", "the phase is Running"),
        (f"UPDATE jobs SET gone_at = now() WHERE uid = '{RUNNING}'", "the phase is Running"),
    ],
    "generations": [
        (f"UPDATE jobs SET observed_generation = 2 WHERE uid = '{RUNNING}'", "observed_generation is 2, generation 1"),
    ],
    "conditions": [
        ("DELETE FROM conditions WHERE type = 'Completed'", "the condition Completed is missing"),
        ("UPDATE conditions SET status = 'True' WHERE type = 'Failed'", "the condition Failed is True"),
        ("UPDATE conditions SET status = 'True' WHERE type = 'Running'", "the condition Running is True"),
        (f"UPDATE conditions SET type = 'Failed' WHERE job_uid = '{RUNNING}'", "the condition Failed is True"),
    ],
    "scale-records": [("DELETE FROM scale_records", "scale_count is 1, and there are 0 rows")],
    "aggregate": [
        ("DELETE FROM replicas WHERE rank = 1", "the aggregate counts 2 replicas, and there are 1"),
        ("UPDATE replicas SET leaving = true WHERE rank = 1", "the aggregate counts 2 replicas, and there are 1"),
    ],
    "attempt-numbers": [
        ("UPDATE replicas SET attempt = 3 WHERE rank = 0", "worker-0 is at attempt 3"),
        ("UPDATE attempts SET attempt = 2 WHERE attempt = 1", "worker-0 is at attempt 2; 1 are stored"),
    ],
    "one-pod": [
        (
            "UPDATE attempts SET pod_uid = 'another' WHERE pod_uid = 'pod-4'",
            "worker-0, attempt 1: the pod another, one of 2 of",
        ),
        (
            "UPDATE attempts SET pod_uid = 'pod-2' WHERE pod_uid = 'pod-1'",
            "worker-0, attempt 1: the pod pod-2, one of 1 of",
        ),
        ("UPDATE replicas SET pod_uid = 'pod-2' WHERE pod_uid = 'pod-3'", "that of 2 attempts"),
    ],
    "evidence": [
        ("UPDATE attempts SET evidence = 'None' WHERE pod_uid = 'pod-1'", "worker-0, attempt 1: None"),
        ("UPDATE attempts SET evidence = 'Unavailable' WHERE pod_uid = 'pod-1'", "worker-0, attempt 1: Unavailable"),
    ],
    "evidence-of-attempts": [
        ("UPDATE attempt_logs SET attempt = 5", "worker-0, attempt 5: there is no such attempt"),
        ("UPDATE attempt_events SET attempt = 5", "worker-0, attempt 5: there is no such attempt"),
    ],
    "kept-logs": [
        (
            "DELETE FROM log_chunks WHERE start = 20",
            "30 bytes and 3 lines, and its chunks have 20 and 2, and end at 20",
        ),
        ("UPDATE log_chunks SET start = 21 WHERE start = 20", "its chunks have 30 and 3, and end at 31"),
    ],
    "names-of-jobs": [
        (f"DELETE FROM names WHERE job_uid = '{WAITING}'", "the phase is Queued, gone_at : 0 names"),
        (f"UPDATE names SET released = true WHERE job_uid = '{WAITING}'", "1 names, 1 of them released"),
        (f"UPDATE names SET released = false WHERE job_uid = '{ENDED}'", "1 names, 0 of them released"),
        (f"UPDATE jobs SET gone_at = now() WHERE uid = '{ENDED}'", "1 names, 1 of them released"),
    ],
    "names-apart": [
        (
            f"""ALTER TABLE names DROP CONSTRAINT names_apart; INSERT INTO names (job_uid, namespace, kind, name, count)
            VALUES ('{WAITING}', 'team', 'pod', 'running-worker-1', 3)""",
            f"held by the jobs {RUNNING} and {WAITING}",
        ),
        (
            f"""DROP INDEX names_reserved; INSERT INTO names (job_uid, namespace, kind, name)
            VALUES ('{WAITING}', 'team', 'job', 'running')""",
            f"held by the jobs {RUNNING} and {WAITING}",
        ),
    ],
    "idempotency-keys": [
        ("UPDATE idempotency_keys SET job_uid = gen_random_uuid() WHERE key = 'two'", "does not exist"),
    ],
    "feed-numbers": [
        ("DELETE FROM job_events WHERE seq = 9", "the entry before it is missing"),
        ("UPDATE feed SET last = 10", "it is not within 8 and 10"),
        ("UPDATE feed SET first = 9", "it is not within 9 and 11"),
    ],
    "feed-bounds": [
        ("UPDATE feed SET last = 12", "the bounds are 8 and 12, the numbers 8 to 11"),
        ("DELETE FROM job_events", "the bounds are 8 and 11, the numbers  to "),
    ],
    "feed-backlog": [
        (
            f"""INSERT INTO job_events (at, type, namespace, job_uid, version)
            VALUES (now(), 'status', 'team', '{RUNNING}', 1)""",
            "it has no number",
        ),
    ],
    "feed-objects": [
        ("UPDATE job_events SET version = 4 WHERE seq = 8", f"version 4 of jobs {RUNNING}, which has version 3"),
        ("UPDATE job_events SET job_uid = gen_random_uuid() WHERE seq = 8", "which has version none"),
    ],
    "planned-pods": [
        ("INSERT INTO planned_pods (namespace, pods) VALUES ('team', 5)", "7 pods are counted, and live jobs plan 2"),
        ("INSERT INTO planned_pods (namespace, pods) VALUES ('other', 1)", "1 pods are counted, and live jobs plan 0"),
        ("DELETE FROM planned_pods", "0 pods are counted, and live jobs plan 2"),
    ],
    "waits-for-room": [
        (f"UPDATE jobs SET planned_pods = 1 WHERE uid = '{WAITING}'", "it waits for room with 1 planned pods"),
        (f"UPDATE jobs SET finished_at = now() WHERE uid = '{WAITING}'", "it waits for room with 0 planned pods"),
    ],
    "sample-history-numbers": [("DELETE FROM sample_history", "history_count is 1, and there are 0 rows")],
    "sample-event-numbers": [(f"UPDATE samples SET event_count = 2 WHERE uid = '{SAMPLE}'", "event_count is 2")],
    "sample-names-apart": [
        (
            """DROP INDEX samples_name; INSERT INTO samples
            (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase, reason,
             message)
            SELECT gen_random_uuid(), kind, namespace, name, 'v1', '{}', 'set', now(), 'me', '', '', '' FROM samples""",
            "held by ",
        ),
    ],
}
OF_OWNERS = [check.name for check in CHECKS if check.name.startswith("owners-of-")]


@pytest.fixture
async def world(database_url: str) -> Any:
    connection = await asyncpg.connect(database_url, timeout=60)
    await create_world(connection)
    yield connection
    await connection.close()


def found(results: list[CheckResult], name: str) -> list[str]:
    (result,) = [result for result in results if result.name == name]
    return [f"{fault.subject}: {fault.found}" for fault in result.faults]


@pytest.mark.usefixtures("world")
async def test_a_healthy_database_has_no_fault(db: Database) -> None:
    results = await verify_database(db, pause=0)
    assert [result.name for result in results if result.faults] == []
    assert {result.name: result.examined for result in results if result.name in FAULTS and not result.examined} == {}


@pytest.mark.parametrize("name", [check.name for check in CHECKS if check.name not in OF_OWNERS])
async def test_a_check_finds_its_fault(name: str, world: Any) -> None:
    for statement, part in FAULTS[name]:
        transaction = world.transaction()
        await transaction.start()
        await world.execute(statement)
        # On the connection that has made the fault, and takes it back.
        (check,) = [check for check in CHECKS if check.name == name]
        keys = [row["key"] for row in await world.fetch(check.subjects.page, check.subjects.first, 100)]
        reported = [f"{row['subject']}: {row['found']}" for row in await world.fetch(check.sql, keys)]
        assert any(part in line for line in reported), (statement, reported)
        await transaction.rollback()


@pytest.mark.parametrize("name", OF_OWNERS)
async def test_rows_about_nothing_are_found(name: str, world: Any, db: Database) -> None:
    await fill(world, first=7, rows=2, only=name.removeprefix("owners-of-").replace("-", "_"))
    reported = found(await verify_database(db, pause=0), name)
    assert {line.split(":")[0] for line in reported} == {f"00000000-0000-0000-0000-00000000000{n}" for n in (7, 8)}


async def test_an_object_that_is_being_purged_is_no_fault(world: Any, db: Database) -> None:
    """Rows about it are deleted in batches after it. Entries of the feed and its idempotency key stay for a day."""
    await world.execute(
        f"""INSERT INTO purged (uid, purged_at, has_records, resource, namespace)
        VALUES ('{RUNNING}', now(), true, 'jobs', 'team');
        DELETE FROM jobs WHERE uid = '{RUNNING}'; DELETE FROM planned_pods"""
    )
    assert [result.name for result in await verify_database(db, pause=0) if result.faults] == []
    await world.execute("UPDATE purged SET has_records = false")
    names = {result.name for result in await verify_database(db, pause=0) if result.faults}
    assert "owners-of-status-history" in names
    assert names <= set(OF_OWNERS)


async def test_what_is_left_of_a_purged_object_is_no_fault_when_its_uid_is_forgotten(world: Any, db: Database) -> None:
    """The last entries of the feed stay, and idempotency keys can be kept for longer than uids."""
    await world.execute(
        """UPDATE job_events SET job_uid = gen_random_uuid(), at = at - interval '90 days' WHERE seq = 9;
        UPDATE idempotency_keys SET job_uid = gen_random_uuid(), created_at = now() - interval '90 days'"""
    )
    assert [result.name for result in await verify_database(db, pause=0) if result.faults] == []


async def test_a_redaction_of_a_log_is_no_fault_and_what_follows_is_counted(world: Any, db: Database) -> None:
    async with db.begin() as connection:
        await log_removal.redact(connection, RUNNING, NOW)
    assert found(await verify_database(db, pause=0), "kept-logs") == []
    await world.execute(
        f"""UPDATE kept_logs SET text_bytes = 35, lines = 4;
        INSERT INTO log_chunks
            (job_uid, task, rank, attempt, container, run, start, length, first_line, lines, stored_bytes)
        VALUES ('{RUNNING}', 'worker', 0, 1, 'main', 0, 30, 5, 3, 1, 9)"""
    )
    assert found(await verify_database(db, pause=0), "kept-logs") == []
    await world.execute("UPDATE kept_logs SET text_bytes = 36")
    assert len(found(await verify_database(db, pause=0), "kept-logs")) == 1


async def test_small_batches_find_the_same(world: Any, db: Database) -> None:
    await world.execute("UPDATE jobs SET history_count = 9; DELETE FROM job_events WHERE seq = 9")
    large, small = [await verify_database(db, pause=0, batch=batch) for batch in (None, 1)]
    assert len(found(large, "history-numbers")) == 3
    assert [(result.name, result.faults) for result in large] == [(result.name, result.faults) for result in small]


async def test_a_check_ends_when_it_has_found_many_faults(
    world: Any, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is gone at the second look does not count."""
    await world.execute("UPDATE jobs SET history_count = 9, scale_count = 9")
    monkeypatch.setattr(runner, "_MOST_FAULTS", 2)
    monkeypatch.setattr(runner, "sleep", lambda _: world.execute("UPDATE jobs SET scale_count = 0"))
    results = {result.name: result for result in await verify_database(db, pause=0, batch=1)}
    numbers, records = results["history-numbers"], results["scale-records"]
    assert (numbers.examined, len(numbers.faults), numbers.is_complete) == (2, 2, False)
    assert (records.examined, len(records.faults), records.is_complete) == (3, 1, True)


async def test_what_is_gone_at_the_second_look_is_no_fault(
    world: Any, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another fault appears in the meantime. It was not there at the first look, so it may be transient, too."""
    await world.execute("UPDATE jobs SET scale_count = 9")

    async def complete(_: float) -> None:
        await world.execute(
            f"UPDATE jobs SET scale_count = CASE WHEN uid = '{RUNNING}' THEN 1 WHEN uid = '{ENDED}' THEN 9 ELSE 0 END"
        )

    monkeypatch.setattr(runner, "sleep", complete)
    reported = found(await verify_database(db, pause=1), "scale-records")
    assert [line.split(":")[0] for line in reported] == [f"team/ended {ENDED}"]


@pytest.mark.parametrize(
    ("size", "seconds", "after"),
    [(10, 0.0, 20), (10, 0.5, 20), (10, 0.8, 12), (10, 1.0, 10), (10, 20.0, 1), (1, 60.0, 1), (300, 0.01, 500)],
)
def test_a_batch_takes_about_a_second(size: int, seconds: float, after: int) -> None:
    assert next_batch(size, seconds, most=500) == after


async def test_batches_grow_from_few_keys_and_their_progress_is_told(world: Any, db: Database) -> None:
    await world.execute(
        "INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason,"
        " message, quiet) SELECT gen_random_uuid(), 'team', 'job-' || n, 'GenericJob', 'v1', '{}', now(), 'me',"
        " 'Queued', '', '', true FROM generate_series(1, 97) AS n"
    )
    told: list[tuple[str, int]] = []
    await verify_database(db, pause=0, progress=lambda *each: told.append(each))
    jobs = [examined for subjects, examined in told if subjects == "jobs"]
    assert jobs[0] == 1, "a job can have ten thousand replicas"
    assert jobs[-1] == 100
    assert len(jobs) > 2
