"""An imported job is for reading: it blocks nothing, no one works on it, and no stream shows it."""

import json
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typing_extensions import override

from app.db.jobs import controller
from app.db.purge import IMPORTED_JOBS, JOBS, Purge, Purgeable
from app.domain.errors import Conflict
from app.domain.exports.segments import InvalidExport
from app.services.logs.containers import LogReader, LogRequest
from tests.db.factories import NOW
from tests.exports.ended_jobs import IMPORTED_AT, ended_job, exported, imported, remove
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway
from tests.support.postgres import count_rows

HELLO = jobs_path(NAMESPACE, "hello")
LATER = IMPORTED_AT + timedelta(days=1000)


async def an_imported_job(gateway: Gateway, folder: Path) -> str:
    uid = await ended_job(gateway)
    await exported(gateway.db, folder)
    await remove(gateway.db, uid)
    await imported(gateway.db, folder)
    return uid


async def test_no_work_remains_for_the_controller(gateway: Gateway, tmp_path: Path) -> None:
    entries = await count_rows(gateway.db, "job_events")
    uid = await an_imported_job(gateway, tmp_path)
    assert await count_rows(gateway.db, "job_events") == entries + 2, "only the submission and the end are announced"
    answer = await gateway.client.delete(HELLO)
    assert answer.status_code in {200, 202}, answer.text
    db = gateway.db
    assert await controller.read_live(db) == []
    assert await controller.read_pending_intents(db, 10) == []
    assert await controller.read_overdue(db, LATER, 10) == []
    assert await controller.read_expired(db, LATER, 10) == []
    assert await controller.load(db, [UUID(uid)]) == {}
    assert await controller.find_existing(db, [UUID(uid)]) == set()


async def test_a_deleted_import_is_hidden_at_once(gateway: Gateway, tmp_path: Path) -> None:
    uid = await an_imported_job(gateway, tmp_path)
    assert [job["uid"] for job in (await gateway.client.get("/api/v1/jobs")).json()["items"]] == [uid]
    assert (await gateway.client.delete(HELLO)).status_code == 200
    assert (await gateway.client.get("/api/v1/jobs")).json()["items"] == []
    found = (await gateway.client.get(f"/api/v1/jobs/{uid}")).json()
    assert found["deletedAt"] is not None
    assert found["status"]["phase"] == "Failed"


async def test_names_are_free_and_belong_to_live_jobs(gateway: Gateway, tmp_path: Path) -> None:
    uid = await an_imported_job(gateway, tmp_path)
    assert (await gateway.client.get(HELLO)).json()["uid"] == uid
    live = await gateway.submit()
    assert (await gateway.client.get(HELLO)).json()["uid"] == live["uid"]
    await imported(gateway.db, tmp_path)
    assert (await gateway.client.get(HELLO)).json()["uid"] == live["uid"]


async def test_an_import_can_be_submitted_again_and_not_edited(gateway: Gateway, tmp_path: Path) -> None:
    uid = await an_imported_job(gateway, tmp_path)
    edited = await gateway.client.put(HELLO, json=manifest(replicas=3))
    assert (edited.status_code, edited.json()["code"]) == (409, "AlreadyFinished")
    cancelled = await gateway.client.post(f"{HELLO}/cancel")
    assert (cancelled.status_code, cancelled.json()["code"]) == (409, "AlreadyFinished")
    retried = await gateway.client.post(f"{HELLO}/retry")
    assert (retried.status_code, retried.json()["retryOf"]) == (201, uid)
    assert retried.json()["importedAt"] is None


async def test_a_job_that_is_present_is_passed_over_and_another_one_is_not(gateway: Gateway, tmp_path: Path) -> None:
    uid = await ended_job(gateway)
    await exported(gateway.db, tmp_path)
    assert (await imported(gateway.db, tmp_path)).present == 1
    assert (await gateway.client.get(f"/api/v1/jobs/{uid}")).json()["importedAt"] is None
    async with gateway.db.begin() as connection:
        await connection.execute("UPDATE jobs SET created_at = $2 WHERE uid = $1", UUID(uid), NOW)
    with pytest.raises(InvalidExport, match=f"line 2: the uid {uid} is that of the job team/hello"):
        await imported(gateway.db, tmp_path)


async def purged(gateway: Gateway, purgeable: Purgeable, before: datetime) -> int:
    """Delete the jobs that are kept from a time before this one, and return how many."""
    purge = Purge(db=gateway.db, of=purgeable, ended_before={NAMESPACE: before})
    return (await purge.step()).rows.get("jobs", 0)


async def test_an_import_is_kept_from_the_import_on(gateway: Gateway, tmp_path: Path) -> None:
    await an_imported_job(gateway, tmp_path)
    assert await purged(gateway, JOBS, LATER) == 0
    assert await purged(gateway, IMPORTED_JOBS, IMPORTED_AT) == 0
    pin: Any = {"metadata": {"annotations": {"jobgate.dev/keep": "true"}}}
    patch = {"Content-Type": "application/merge-patch+json"}
    assert (await gateway.client.patch(HELLO, content=json.dumps(pin), headers=patch)).status_code == 200
    assert await purged(gateway, IMPORTED_JOBS, LATER) == 0
    pin["metadata"]["annotations"]["jobgate.dev/keep"] = None
    assert (await gateway.client.patch(HELLO, content=json.dumps(pin), headers=patch)).status_code == 200
    assert await purged(gateway, IMPORTED_JOBS, LATER) == 1
    assert (await imported(gateway.db, tmp_path)).imported == 1, "a purged import can be imported again"


async def test_nothing_is_imported_while_its_former_records_are_being_deleted(gateway: Gateway, tmp_path: Path) -> None:
    uid = await an_imported_job(gateway, tmp_path)
    assert (await Purge(db=gateway.db, of=IMPORTED_JOBS, ended_before={NAMESPACE: LATER}, rows=1).step()).rows[
        "jobs"
    ] == 1
    with pytest.raises(Conflict, match=f"the records of the job {uid} are still being deleted"):
        await imported(gateway.db, tmp_path)
    assert await count_rows(gateway.db, "jobs") == 0


class Forbidden(LogReader):
    """A cluster in which a pod of another program has the name of a replica."""

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        yield b"the log of another program"


async def test_no_log_of_an_import_is_read_from_the_cluster(database_url: str, tmp_path: Path) -> None:
    async with running_gateway(database_url, log_reader=Forbidden()) as gateway:
        uid = await ended_job(gateway)
        log = f"/api/v1/jobs/{uid}/logs?task=worker&rank=1"
        assert (await gateway.client.get(log)).text == "the log of another program"
        await exported(gateway.db, tmp_path)
        await remove(gateway.db, uid)
        await imported(gateway.db, tmp_path)
        refused = await gateway.client.get(log)
        assert (refused.status_code, refused.json()["code"]) == (404, "NoLog")
