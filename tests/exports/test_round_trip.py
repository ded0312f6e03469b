"""What an import stores is what was exported, and the API answers as before."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from app.db.exports.tables import JOB_TABLE, LEFT_OUT, RECORD_TABLES
from app.db.postgres.engine import Database
from app.exports.importer import ImportSummary
from app.models import metadata
from tests.exports import ended_jobs
from tests.exports.ended_jobs import IMPORTED_AT, exported, imported
from tests.support.gateways.gateway import NAMESPACE, Gateway, running_gateway
from tests.support.plugins.properties import examples
from tests.support.postgres import fresh_database

OPERATIONS = [
    path for path, item in json.loads(Path("openapi/openapi.json").read_text())["paths"].items() if "get" in item
]


# Tables with the uid of a job that are not about its past, each with the reason why an export does not have them.
NOT_EXPORTED = {
    "names": "reserved for live jobs",
    "room_waits": "of live jobs",
    "usage_rates": "of live jobs",
    "job_events": "the feed: announcements, which are no records of the job",
    "idempotency_keys": "answers to requests of a client",
    "kept_logs": "the index of the log store, which has a retention of its own",
    "log_chunks": "as kept_logs",
    "kept_log_totals": "as kept_logs",
}


def test_every_table_about_jobs_is_exported() -> None:
    about_jobs = {table.name for table in metadata.sorted_tables if {"job_uid"} & set(table.c.keys())}
    assert about_jobs == RECORD_TABLES.keys() | NOT_EXPORTED.keys()


def test_every_column_is_exported_or_computed_or_has_a_reason() -> None:
    columns = {str(column.name) for column in JOB_TABLE.table.columns if column.computed is None}
    assert columns == JOB_TABLE.columns.keys() | LEFT_OUT.keys()
    for table in RECORD_TABLES.values():
        assert set(table.table.c.keys()) == table.columns.keys() | {table.owner}, table.name


async def test_stored_rows_come_back_as_they_were(gateway: Gateway, tmp_path: Path) -> None:
    uids = [await ended_jobs.ended_job(gateway, name, minutes=n) for n, name in enumerate(("one", "two", "three"))]
    before = await ended_jobs.stored(gateway.db, *uids)
    assert all(before.values()), "the jobs have rows in all tables"
    assert (await exported(gateway.db, tmp_path)).added == 3
    await ended_jobs.remove(gateway.db, *uids)
    assert await imported(gateway.db, tmp_path) == ImportSummary(imported=3, is_complete=True)
    assert await ended_jobs.stored(gateway.db, *uids) == before


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(postgres_server_url: str, database_template: str) -> AsyncIterator[tuple[str, str]]:
    """The URL of a database with one ended job, and the uid of the job."""
    async with fresh_database(postgres_server_url, template=database_template) as url:
        async with running_gateway(url) as running:
            uid = await ended_jobs.ended_job(running)
        yield url, uid


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)

objects = st.dictionaries(texts, documents, max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "$1::text": texts,
    "$1::bytea": st.binary(max_size=100),
    "$1::text::json": objects.map(lambda document: json.dumps(document, indent=1)),
    "$1::text::jsonb": objects.map(json.dumps),
}
CHANGES = [
    ("jobs", "message", "$1::text"),
    ("jobs", "cancel_reason", "$1::text"),
    ("jobs", "posted_manifest", "$1::text::json"),
    ("jobs", "reported", "$1::text::jsonb"),
    ("conditions", "message", "$1::text"),
    ("status_history", "message", "$1::text"),
    ("scale_records", "reason", "$1::text"),
    ("replicas", "node", "$1::text"),
    ("attempts", "evidence_reason", "$1::text"),
    ("attempt_logs", "tail", "$1::bytea"),
]


@examples(fixed=8, fuzz=200)
@given(data=st.data())
def test_whatever_is_stored_comes_back_as_it_was(kept: tuple[str, str], data: st.DataObject) -> None:
    """Of texts, bytes and documents that have no meaning for the API."""
    url, uid = kept

    async def check() -> None:
        db = await Database.open(url, pool_size=2)
        with TemporaryDirectory() as folder:
            async with db.begin() as connection:
                for table, column, value in CHANGES:
                    statement = f"UPDATE {table} SET {column} = {value}"
                    await connection.execute(statement, data.draw(VALUES[value]))
            before = await ended_jobs.stored(db, uid)
            await exported(db, Path(folder))
            await ended_jobs.remove(db, uid)
            assert (await imported(db, Path(folder))).imported == 1
            assert await ended_jobs.stored(db, uid) == before
        await db.close()

    asyncio.run(check())


READS = [path for path in OPERATIONS if "/jobs" in path and not path.endswith("/watch")]


async def answers(gateway: Gateway, uid: str, name: str) -> dict[str, Any]:
    """Return what each GET route about jobs answers, and each container's log."""
    values = {"uid": uid, "namespace": NAMESPACE, "name": name}
    targets = [path.format_map(values) for path in READS]
    targets += [f"/api/v1/jobs/{uid}/logs?attempt=1", "/api/v1/jobs?view=summary", f"/api/v1/jobs?uid={uid}"]
    found = {}
    for target in targets:
        answer = await gateway.client.get(target)
        assert answer.status_code in {200, 404}, (target, answer.text)
        content = answer.content
        if target.endswith("/usage"):
            content = re.sub(rb'"observedAt":"[^"]+"', b"", content)  # the time of the request
        found[target] = (answer.status_code, content)
    return found


async def test_every_read_answers_as_before(gateway: Gateway, tmp_path: Path) -> None:
    uid = await ended_jobs.ended_job(gateway)
    before = await answers(gateway, uid, "hello")
    assert before[f"/api/v1/jobs/{uid}/logs"] == (200, ended_jobs.BINARY)
    await exported(gateway.db, tmp_path)
    await ended_jobs.remove(gateway.db, uid)
    assert (await gateway.client.get(f"/api/v1/jobs/{uid}")).status_code == 404
    await imported(gateway.db, tmp_path)
    mark = (b'"importedAt":null', b'"importedAt":"%b"' % IMPORTED_AT.isoformat().replace("+00:00", "Z").encode())
    assert await answers(gateway, uid, "hello") == {
        target: (status, content.replace(*mark)) for target, (status, content) in before.items()
    }
