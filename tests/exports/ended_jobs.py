"""Ended jobs with all that can be recorded about them, and what is stored of them."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, Column

from app.db.exports.tables import JOB_TABLE, RECORD_TABLES
from app.db.postgres.engine import Database
from app.domain.access.namespaces import EVERY_NAMESPACE
from app.domain.exports.lines import ExportSelection
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import (
    Attempt,
    Condition,
    HistoryEntry,
    JobPendingReason,
    Replica,
    ReplicaFailure,
)
from app.domain.vocabulary import ConditionType, Evidence, JobPhase, Outcome, ReplicaPhase
from app.exports.exporter import Exporter, ExportSummary
from app.exports.folders import open_folder
from app.exports.importer import Importer, ImportSummary
from tests.db.factories import NOW, later
from tests.support.gateways.gateway import Gateway, manifest

BINARY = bytes(range(256)) + b"\ntorn \xf0\x9f line without end"
UNUSUAL = 'quote " backslash \\ tab \t line \n separator \u2028 emoji \U0001f600 u0000 \\u0000 end'
# Part of the posted manifest. No float or 64-bit integer is equal to the numbers, and JSONB has no escaped NUL.
DOCUMENT = '{"z":1,"a":{"big":123456789012345678901234567890,"exact":0.10000000000000000000001,"nul":"\\u0000"}}'
INSTALLATION = uuid4()
ALL = ExportSelection(before=later(86_400))
IMPORTED_AT = later(100_000)
# What an import changes.
OF_IMPORT = {"version", "gone_at", "imported_at", "planned_pods"}


async def ended_job(gateway: Gateway, name: str = "hello", *, minutes: int = 0, phase: str = JobPhase.FAILED) -> str:
    """Submit a job, and store its end, so many minutes after NOW, with records in all tables."""
    uid = str((await gateway.submit(name))["uid"])
    key, at = Rank("worker", 0), NOW + timedelta(minutes=minutes)
    container = ObservedContainer(name="main", state="terminated", exit_code=3, message=UNUSUAL, started_at=NOW)
    failed = Attempt(
        number=1,
        pod_uid=f"pod-of-{name}",
        phase=ReplicaPhase.FAILED,
        outcome=Outcome.FAILED,
        evidence=Evidence.CAPTURED,
        containers=(container,),
        last_lines=(UNUSUAL,),
        finished_at=at,
        exit_code=3,
    )
    condition = Condition(
        type=ConditionType.FAILED,
        status="True",
        reason="Failed",
        message=UNUSUAL,
        last_transition_at=at,
        observed_generation=1,
    )
    failure = ReplicaFailure(key=key, attempt=1, outcome=Outcome.FAILED, message=UNUSUAL, at=at)
    pending = JobPendingReason(code="CrashLoop", message=UNUSUAL, since=at, replicas=("worker[0]",), count=1)
    status = {
        "phase": JobPhase(phase),
        "message": UNUSUAL,
        "finished_at": at,
        "quiet": True,
        "restarts": 1,
        "conditions": (condition,),
        "first_failure": failure,
        "pending_reasons": (pending,),
        "aggregate": {ReplicaPhase.FAILED: 2},
        "observed_generation": 1,
    }
    await gateway.conclude(
        uid,
        status,
        replicas=[Replica(key=key, attempt=failed, restarts=1), Replica(key=Rank("worker", 1), attempt=failed)],
        ended=[(key, failed), (Rank("worker", 1), failed)],
        history=[HistoryEntry(at=at, phase=phase, reason="Failed", message=UNUSUAL, key=key, attempt=1)],
    )
    await _store_more(gateway.db, UUID(uid))
    return uid


async def _store_more(db: Database, uid: UUID) -> None:
    """Store what other transactions write: evidence, scale records, reports, and the posted manifest."""
    key = (uid, "worker", 0, 1)
    async with db.begin() as connection:
        await connection.execute("INSERT INTO attempt_logs VALUES ($1, $2, $3, $4, 'main', $5, true)", *key, BINARY)
        events = [{"type": "Warning", "reason": "BackOff", "message": UNUSUAL, "count": 2, "lastSeen": None}]
        await connection.execute("INSERT INTO attempt_events VALUES ($1, $2, $3, $4, $5)", *key, events)
        await connection.execute(
            """INSERT INTO scale_records (job_uid, seq, task, from_replicas, to_replicas, actor, reason, requested_at)
            VALUES ($1, 1, 'worker', 1, 2, 'alice', $3, $2)""",
            uid,
            NOW,
            UNUSUAL,
        )
        await connection.execute(
            "UPDATE jobs SET scale_count = 1, reported = $2, posted_manifest = $3::text::json WHERE uid = $1",
            uid,
            {"said": UNUSUAL},
            f'{{"status":{DOCUMENT},{json.dumps(manifest())[1:]}',
        )


async def stored(db: Database, *uids: str) -> dict[str, list[Any]]:
    """Return all rows of jobs as text, by table, without what an import changes."""
    found = {}
    async with db.read() as connection:
        for table in (JOB_TABLE, *RECORD_TABLES.values()):
            columns = ", ".join(_as_text(column) for column in table.table.c if column.name not in OF_IMPORT)
            statement = f"SELECT {columns} FROM {table.name} WHERE {table.owner} = ANY($1::uuid[]) ORDER BY {columns}"
            found[table.name] = [tuple(row) for row in await connection.fetch(statement, list(map(UUID, uids)))]
    return found


def _as_text(column: Column[Any]) -> str:
    # Outside of strings, a line break of JSON is white space. An export has a space in its place.
    is_json = isinstance(column.type, JSON)
    return f"translate({column.name}::text, E'\\n\\r', '  ')" if is_json else f"{column.name}::text"


async def remove(db: Database, *uids: str) -> None:
    """Delete all rows of jobs."""
    async with db.begin() as connection:
        for table in (JOB_TABLE, *RECORD_TABLES.values()):
            await connection.execute(
                f"DELETE FROM {table.name} WHERE {table.owner} = ANY($1::uuid[])", list(map(UUID, uids))
            )
        await connection.execute("DELETE FROM names WHERE job_uid = ANY($1::uuid[])", list(map(UUID, uids)))


async def exported(db: Database, folder: Path | str, selection: ExportSelection = ALL, **options: Any) -> ExportSummary:
    """Export jobs to a folder, given by its path or URL."""
    exporter = Exporter(db, open_folder(str(folder)), INSTALLATION, export=uuid4(), now=lambda: later(90_000))
    await exporter.run(selection, lambda _: None, asyncio.Event(), **options)
    return exporter.summary


async def imported(db: Database, folder: Path | str) -> ImportSummary:
    """Import the segments of a folder, given by its path or URL."""
    importer = Importer(
        db,
        open_folder(str(folder), for_reading=True),
        served=EVERY_NAMESPACE,
        max_replicas=10_000,
        now=lambda: IMPORTED_AT,
    )
    await importer.run(lambda _: None, asyncio.Event())
    return importer.summary
