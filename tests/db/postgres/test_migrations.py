"""The schema comes up from nothing, goes down to nothing, and is what the models say, on every server we support."""

import asyncio
import json
import sys
import zlib
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text

from app.db.postgres import codec, migrations, schema_version
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.schema_version import check_database
from app.domain.errors import Conflict
from app.domain.status.records import Condition
from tests.support.postgres import execute
from tests.support.schemas import revision, set_revision

INSERT_JOB = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by,
                  phase, reason, message, status, quiet)
VALUES ($1, 'a', 'job', 'GenericJob', 'v1', '{}', now(), 'somebody', 'Failed', '', '', $2::text::jsonb, false)
"""
ENDED = "'worker', 0, 1, 'failed', 'failed', 'captured'"
INSERT_ATTEMPT = {
    "attempts": f"INSERT INTO attempts (job_uid, task, rank, attempt, phase, outcome, evidence) VALUES ($1, {ENDED})",
    "replicas": f"""
    INSERT INTO replicas (job_uid, task, rank, attempt, phase, outcome, evidence,
                          restarts, disruptions, settled, leaving)
    VALUES ($1, {ENDED}, 0, 0, true, false)
    """,
}
ACCEPTED = {"kind": "X", "spec": {"n": 1, "policy": "None"}, "items": [{"a": 1}, 2]}
INSERT_POSTED = {
    "jobs": """
    INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, posted, created_at, created_by, phase, reason,
                      message, quiet)
    VALUES ($1, 'a', $2, 'X', 'v1', $3, $4, now(), 'somebody', '', '', '', false)
    """,
    "samples": """
    INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, posted, set_name, created_at, created_by,
                         phase, reason, message)
    VALUES ($1, 'X', 'a', $2, 'v1', $3, $4, 's', now(), 'somebody', '', '', '')
    """,
}
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"


@pytest.fixture(params=["empty_database_url", "debian_database_url"], ids=["embedded", "debian"])
def fresh_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


async def tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url, timeout=60)
    try:
        return [row["table_name"] for row in await connection.fetch(TABLES)]
    finally:
        await connection.close()


async def test_up_is_current_and_down_leaves_nothing(fresh_url: str) -> None:
    assert "run `jobgate migrate`" in (await check_database(fresh_url))[0]
    migrations.migrate(fresh_url)
    assert await check_database(fresh_url) == []
    assert migrations.drift(fresh_url) == []
    migrations.downgrade(fresh_url, "base")
    assert await tables(fresh_url) == ["alembic_version", "schema_revision"]
    migrations.migrate(fresh_url)
    assert migrations.drift(fresh_url) == []


async def test_migrating_twice_changes_nothing(database_url: str) -> None:
    before = await tables(database_url)
    migrations.migrate(database_url)
    assert await tables(database_url) == before


async def test_feed_entries_of_an_older_version_are_about_jobs(empty_database_url: str) -> None:
    """Before the step to samples, and beside it while versions change."""
    insert = "INSERT INTO job_events (at, type, namespace, job_uid, version) VALUES (now(), 'status', 'a', $1, 1)"
    migrations.migrate(empty_database_url, "0001")
    connection = await asyncpg.connect(empty_database_url, timeout=10)
    await connection.execute(insert, uuid4())
    migrations.migrate(empty_database_url)
    await connection.execute(insert, uuid4())
    resources = [row["resource"] for row in await connection.fetch("SELECT resource FROM job_events")]
    assert resources == ["jobs", "jobs"]
    migrations.downgrade(empty_database_url, "0001")
    assert await connection.fetchval("SELECT count(*) FROM job_events") == 2
    await connection.close()
    assert "samples" not in await tables(empty_database_url)


async def test_stored_phases_are_spelled_as_kubernetes_spells_them(empty_database_url: str) -> None:
    """Upgrade and downgrade. The message of a failure may contain any text, even a field name with a value."""
    status = {
        "aggregate": {"creating": 0, "failed": 1},
        "crashed": [{"outcome": "failed", "message": 'said "outcome": "failed"'}],
        "ended_by": {"first": [{"outcome": "disrupted", "message": ""}], "failed": 0, "disrupted": 1},
    }
    migrations.migrate(empty_database_url, "0004")
    connection = await asyncpg.connect(empty_database_url, timeout=60)
    uid = uuid4()
    await connection.execute(INSERT_JOB, uid, json.dumps(status))
    for table in ("replicas", "attempts"):
        await connection.execute(INSERT_ATTEMPT[table], uid)
    migrations.migrate(empty_database_url)
    spelled = json.loads(await connection.fetchval("SELECT status FROM jobs"))
    assert spelled["aggregate"] == {"Creating": 0, "Failed": 1}
    assert spelled["crashed"] == [{"outcome": "Failed", "message": 'said "outcome": "failed"'}]
    assert spelled["ended_by"]["first"][0]["outcome"] == "Disrupted"
    for table in ("replicas", "attempts"):
        row = await connection.fetchrow(f"SELECT phase, outcome, evidence FROM {table}")
        assert tuple(row) == ("Failed", "Failed", "Captured")
    migrations.downgrade(empty_database_url, "0004")
    assert json.loads(await connection.fetchval("SELECT status FROM jobs")) == status
    await connection.close()


Line = tuple[str, str]  # phase and reason of a line of a history; the hour is its place from 1
ENDED_AT_3 = {"Running": ("False", "Succeeded", 3), "Completed": ("True", "Succeeded", 3)}
# Kind, record, history, hour of the removal; hours of begin and end, and the conditions.
SAMPLES: dict[str, tuple[str, str, list[Line], int | None, tuple[int | None, int | None], dict[str, Any]]] = {
    "new": ("SampleJob", "{}", [("", "")], None, (None, None), {}),
    "pending": ("SampleJob", "{}", [("", ""), ("Pending", "")], None, (2, None), {}),
    "running": ("SampleJob", "{}", [("", ""), ("", "ErrorX"), ("Pending", ""), ("Running", "")], None, (3, None), {}),
    "succeeded and deleted": (
        "SampleJob",
        "{}",
        [("", ""), ("Pending", ""), ("Succeeded", ""), ("Succeeded", "DeleteRequested")],
        4,
        (2, 3),
        ENDED_AT_3 | {"Failed": ("False", "Succeeded", 3)},
    ),
    "tried again": (
        "SampleJob",
        "{}",
        [("", ""), ("Pending", ""), ("Failed", ""), ("Failed", "Edited"), ("", ""), ("Pending", ""), ("Succeeded", "")],
        None,
        (6, 7),
        {
            "Running": ("False", "Succeeded", 7),
            "Completed": ("True", "Succeeded", 7),
            "Failed": ("False", "Succeeded", 7),
        },
    ),
    "failed, then a complaint": (
        "SampleJob",
        "{}",
        [("", ""), ("Pending", ""), ("Failed", ""), ("Failed", "ErrorSecretNotExist")],
        None,
        (2, 3),
        {"Running": ("False", "Failed", 3), "Completed": ("False", "Failed", 3), "Failed": ("True", "Failed", 3)},
    ),
    "deleted while it ran": (
        "SampleJob",
        "{}",
        [("", ""), ("Pending", ""), ("Running", ""), ("Running", "DeleteRequested")],
        4,
        (2, 4),
        {"Running": ("False", "Deleted", 4)},
    ),
    "set": ("SampleSet", '{"synced": true}', [("", ""), ("Bound", "")], None, (None, None), {}),
    "deleted set": (
        "SampleSet",
        '{"synced": true}',
        [("", ""), ("Ready", ""), ("Ready", "DeleteRequested"), ("Ready", "")],
        4,
        (None, None),
        {"Ready": ("False", "Deleted", 4), "Synced": ("False", "Deleted", 4)},
    ),
}
INSERT_SAMPLE = """
INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase, reason,
                     message, record, observed_generation, version, gone_at)
VALUES ($1, $2, 'a', $3, 'v', '{}', 's', '2026-01-01Z', 'me', $4, $5, '', $6::text::jsonb, 1, 5,
        '2026-01-01Z'::timestamptz + $7::bigint * interval '1 hour')
"""
INSERT_LINE = """
INSERT INTO sample_history (uid, seq, at, phase, reason, message, actor)
VALUES ($1, $2::bigint, '2026-01-01Z'::timestamptz + $2::bigint * interval '1 hour', $3, $4, '', 'me')
"""


async def test_the_migration_derives_the_status_of_samples_from_their_history(empty_database_url: str) -> None:
    """Times, conditions and another ETag; each is announced in the feed."""
    migrations.migrate(empty_database_url, "0005")
    connection = await asyncpg.connect(empty_database_url, timeout=60)
    for name, (kind, record, lines, gone, _, _) in SAMPLES.items():
        uid, (phase, reason) = uuid4(), lines[-1]
        await connection.execute(INSERT_SAMPLE, uid, kind, name, phase, reason, record, gone)
        for seq, line in enumerate(lines, 1):
            await connection.execute(INSERT_LINE, uid, seq, *line)
    migrations.migrate(empty_database_url)
    rows = {row["name"]: row for row in await connection.fetch("SELECT * FROM samples")}
    announced = await connection.fetch("SELECT resource, job_uid, version FROM job_events")
    await connection.close()
    for name, (_, _, _, _, times, expected) in SAMPLES.items():
        row = rows[name]
        found_times = tuple(None if at is None else at.hour for at in (row["started_at"], row["finished_at"]))
        conditions = codec.load(json.loads(row["conditions"]), tuple[Condition, ...])
        found = {one.type: (one.status, one.reason, one.last_transition_at.hour) for one in conditions}
        assert (found_times, found, row["version"]) == (times, expected, 6), name
    assert rows["deleted while it ran"]["reason"] == "Deleted"
    events = {(row["resource"], row["job_uid"], row["version"]) for row in announced}
    assert events == {(f"{row['kind'].lower()}s", row["uid"], 6) for row in rows.values()}


CLAIMED = '{"volumes": [{"persistentVolumeClaim": {"claimName": "%s"}}]}'


async def test_the_claims_of_jobs_are_known_whatever_version_stored_them(empty_database_url: str) -> None:
    """Jobs of before the migration, and jobs that a program of the version before stores and edits beside it."""
    names = "SELECT claim_names FROM jobs WHERE uid = $1"
    claim = "UPDATE jobs SET manifest = $2::text::json WHERE uid = $1"
    migrations.migrate(empty_database_url, "0018")
    connection = await asyncpg.connect(empty_database_url, timeout=60)
    before, beside = uuid4(), uuid4()
    await connection.execute(INSERT_JOB, before, "{}")
    await connection.execute(claim, before, CLAIMED % "stored")
    migrations.migrate(empty_database_url)
    assert await connection.fetchval(names, before) == ["stored"]
    await connection.execute(INSERT_JOB.replace("'{}'", f"'{CLAIMED % 'inserted'}'"), beside, "{}")
    assert await connection.fetchval(names, beside) == ["inserted"]
    await connection.execute(claim, beside, CLAIMED % "edited")
    assert await connection.fetchval(names, beside) == ["edited"]
    migrations.downgrade(empty_database_url, "0018")
    await connection.execute(claim, beside, "{}")
    await connection.close()


# A posted manifest, and how it differs from ACCEPTED.
POSTED: dict[str, tuple[Any, Any]] = {
    "same": (ACCEPTED, {}),
    "other": ({"kind": "X"}, {"value": {"kind": "X"}}),
    "fewer fields": ({"kind": "X", "spec": {"n": 1}}, {"keys": ["kind", "spec"], "within": {"spec": {"keys": ["n"]}}}),
    "another order": (
        {"items": [{"a": 1}, 2], "spec": {"n": 1, "policy": "None"}, "kind": "X"},
        {"keys": ["items", "spec", "kind"]},
    ),
    "more fields": (
        {"kind": "X", "status": {"n": None}},
        {"keys": ["kind", "status"], "within": {"status": {"value": {"n": None}}}},
    ),
    "other numbers": (
        {**ACCEPTED, "spec": {"n": 1.0, "policy": True}},
        {"within": {"spec": {"within": {"n": {"value": 1.0}, "policy": {"value": True}}}}},
    ),
    "items": (
        {**ACCEPTED, "items": [{}, 3]},
        {"within": {"items": {"within": {"0": {"keys": []}, "1": {"value": 3}}}}},
    ),
    "names of forms": (
        {"kind": "X", "value": 1, "keys": 2},
        {"keys": ["kind", "value", "keys"], "within": {"value": {"value": 1}, "keys": {"value": 2}}},
    ),
}


def difference(change: Any, of: Any = ACCEPTED) -> str:
    return json.dumps({"of": zlib.crc32(codec.text_of(of).encode()), "difference": change})


@pytest.mark.parametrize("table", ["jobs", "samples"])
async def test_the_posted_manifests_follow_from_their_differences(empty_database_url: str, table: str) -> None:
    """Also in several batches. A difference from another manifest, which an older version has edited, is of no use."""
    migrations.migrate(empty_database_url, "0019")
    connection = await asyncpg.connect(empty_database_url, timeout=60)
    expected: dict[str, Any] = {name: posted for name, (posted, _) in POSTED.items()}
    stored: dict[str, str | None] = {name: difference(change) for name, (_, change) in POSTED.items()}
    stored |= {f"x{number}": difference({"value": number}) for number in range(60)}
    expected |= {f"x{number}": number for number in range(60)}
    stored |= {"edited": difference({}, of={"kind": "Y"}), "unknown": None}
    expected |= {"edited": None, "unknown": None}
    insert = INSERT_POSTED[table]
    for name, posted in stored.items():
        await connection.execute(insert, uuid4(), name, json.dumps(ACCEPTED), posted)
    migrations.migrate(empty_database_url)
    rows = await connection.fetch(f"SELECT name, manifest, posted, posted_manifest FROM {table}")
    # The text has the order of fields and the types of numbers.
    found = {row["name"]: row["posted_manifest"] and json.dumps(json.loads(row["posted_manifest"])) for row in rows}
    assert found == {name: None if posted is None else json.dumps(posted) for name, posted in expected.items()}
    assert {(row["manifest"], row["posted"]) for row in rows} == {(json.dumps(ACCEPTED), None)}
    # A process of the version before stores another object, and edits the label of one.
    await connection.execute(insert, uuid4(), "later", json.dumps(ACCEPTED), difference({}))
    await connection.execute(f"UPDATE {table} SET posted = NULL WHERE name = 'same'")
    await connection.execute(f"UPDATE {table} SET version = version + 1")
    again = await connection.fetch(f"SELECT name, posted, posted_manifest FROM {table} WHERE posted_manifest IS NULL")
    assert {(row["name"], row["posted"]) for row in again} == {
        (name, None) for name in ("edited", "unknown", "later", "same")
    }
    await connection.close()


async def test_processes_that_start_together_migrate_once(empty_database_url: str) -> None:
    program = "import sys; from app.db.postgres.migrations import migrate; migrate(sys.argv[1])"

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, empty_database_url)
        return await asyncio.wait_for(process.wait(), 120)

    assert set(await asyncio.gather(run(), run(), run())) == {0}
    assert await check_database(empty_database_url) == []


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        ("ALTER TABLE jobs ADD COLUMN surprise text", "surprise"),
        (
            "ALTER TABLE jobs SET (fillfactor = 50)",
            "table jobs has ['autovacuum_vacuum_scale_factor=0.02', 'fillfactor=50'",
        ),
        (
            "ALTER TABLE jobs RESET (toast.autovacuum_vacuum_scale_factor)",
            "'toast.autovacuum_vacuum_scale_factor=0.02'",
        ),
        (
            "ALTER TABLE queues SET (autovacuum_enabled = false)",
            "table queues has ['autovacuum_enabled=false'], not []",
        ),
    ],
)
async def test_a_schema_that_differs_from_the_models_is_reported(
    database_url: str, statement: str, reported: str
) -> None:
    await execute(database_url, statement)
    [difference] = migrations.drift(database_url)
    assert reported in difference


async def test_a_database_of_a_newer_version_is_left_alone(database_url: str) -> None:
    await set_revision(database_url, "9999", compatible_with="9998")
    assert "9999, which this version does not know" in (await check_database(database_url))[0]
    with pytest.raises(Conflict, match=r"newer.*for programs that know 9998"):
        migrations.migrate(database_url)


async def test_a_newer_schema_that_is_compatible_is_used_and_left_alone(database_url: str) -> None:
    (head,) = schema_version.revisions().heads
    await set_revision(database_url, "9999", compatible_with=head)
    assert await check_database(database_url) == []
    migrations.migrate(database_url)
    assert await revision(database_url) == ("9999", head)


async def test_an_upgrade_by_a_program_that_knows_one_table_is_noticed(empty_database_url: str) -> None:
    """Programs up to 0023 leave the table with the revision of the schema as an earlier downgrade has left it."""
    migrations.migrate(empty_database_url, "0023")
    await execute(empty_database_url, f"UPDATE {schema_version.REVISION_TABLE} SET version_num = '0021'")
    assert "the database has 0023 and this version needs" in (await check_database(empty_database_url))[0]
    migrations.migrate(empty_database_url)
    assert await check_database(empty_database_url) == []


def test_a_connection_lost_during_a_migration_is_reported_as_unavailable(empty_database_url: str) -> None:
    suicide = text("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(DatabaseUnavailable):
        migrations._run(empty_database_url, lambda _, connection: connection.execute(suicide))


def test_an_absent_server_is_reported_as_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        migrations.migrate("postgresql://nobody@127.0.0.1:1/none")
