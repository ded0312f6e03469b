"""Reconciles of SampleJobs on a real API server with simulated runtime servers."""

from dataclasses import replace
from typing import Any

import pytest

from app.db.objects import resources
from app.db.samples.rows import SampleRow, storage_of
from app.domain.access.actors import Actor
from app.domain.cache.reconcile.progress import OperationProgress
from app.domain.cache.reconcile.values import JobRecord
from app.domain.kinds.samples.kinds import SAMPLE_JOB
from app.loops.cache.reconciler import FRESH_SECONDS
from app.services.reading.objects import Address
from app.services.reading.samples import SampleReader
from tests.loops.cache.stage import KEYS, Stage
from tests.support.kinds.made_up import a_seventh_kind

TERMINATE = "upload/clearOptions"


def record_of(row: Any) -> JobRecord:
    record = row.record
    assert isinstance(record, JobRecord)
    return record


def pods(*indexes: int) -> list[str]:
    return [f"imagenet-runtime-{index}" for index in indexes]


async def test_each_job_type_runs_on_its_servers(stage: Stage) -> None:
    await stage.ready(partitions=2)
    await stage.secret("source", **KEYS)
    stage.servers.uploads.clear()
    specs: dict[str, dict[str, Any]] = {
        "sync": {"secretRef": {"name": "source"}, "syncOptions": {"destination": "more/"}},
        "warmup": {"warmupOptions": {"paths": ["a"]}},
        "rmr": {"rmrOptions": {"paths": ["old"]}},
        "clear": {},
    }
    for kind, spec in specs.items():
        uid = await stage.a_job(kind, kind, **spec)
        row = await stage.reconcile(uid)
        assert (row.phase, record_of(row).set_uid != "") == ("Pending", True)
        row = await stage.reconcile(uid)
        assert (row.phase, row.message) == ("Succeeded", "")
        assert await stage.reasons(uid) == [f"Do{kind.capitalize()}JobSuccessfully"]
        whose = pods(0) if kind in ("sync", "rmr") else pods(0, 1)
        assert sorted(pod for pod, path, _ in stage.servers.uploads if path == f"upload/{kind}Options") == whose
    (body,) = (body for name, body in stage.servers.options["imagenet-runtime-0", "clear"].items())
    assert b"/cache/" in body
    syncs = stage.servers.options["imagenet-runtime-0", "sync"].values()
    assert any(b"AKI:s3cr3t-key@" in body and b"/mnt/imagenet/more/" in body for body in syncs)


async def test_a_running_job_shows_how_far_it_is_and_one_write_serves_many_files(stage: Stage) -> None:
    await stage.ready(partitions=2)
    half = {"filesDone": 3, "filesTotal": 5, "bytesDone": None}
    stage.servers.outcome = {"status": "running", "message": "", "progress": half}
    uid = await stage.a_job("j", "warmup")
    await stage.reconcile(uid)
    row = await stage.reconcile(uid)
    wanted = OperationProgress(files_done=6, files_total=10, bytes_done=None, reporting=2, servers=2)
    assert (row.phase, record_of(row).progress) == ("Running", wanted)
    assert (await stage.reconcile(uid)).version == row.version, "nothing has changed"
    stage.servers.silent = {"imagenet-runtime-1"}
    row = await stage.reconcile(uid)
    assert record_of(row).progress == replace(wanted, files_done=3, files_total=None, reporting=1)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("warmup", {"sampleSetRef": {"name": "other"}}, "ErrorSampleSetNotExist", "SampleSet other is not exist"),
    ("sync", {"secretRef": {"name": "none"}}, "ErrorSecretNotExist", "secret none is not exist"),
    ("clear", {"clearOptions": {"paths": ["/etc"]}}, "ErrorCreateClearJob", "given path /etc is not valid"),
]


@pytest.mark.parametrize(("kind", "spec", "reason", "message"), REFUSED)
async def test_a_job_that_cannot_start_reports_the_reason(
    stage: Stage, kind: str, spec: dict[str, Any], reason: str, message: str
) -> None:
    await stage.ready()
    uid = await stage.a_job("j", kind, **spec)
    row = await stage.reconcile(uid)
    assert (row.phase, row.reason) == ("", reason)
    assert row.message.startswith(message)
    await stage.reconcile(uid)
    assert await stage.reasons(uid) == [reason]


async def test_a_terminating_job_is_posted_after_the_others_have_ended(stage: Stage) -> None:
    await stage.ready()
    stage.servers.uploads.clear()
    stage.servers.refusing = {TERMINATE: 500}
    uid = await stage.a_job("j", "warmup", terminate=True)
    for _ in range(3):
        row = await stage.reconcile(uid)
        assert row.phase == "Pending"
    assert stage.servers.uploads == []
    stage.servers.refusing = {}
    await stage.reconcile(uid)
    assert [path for _, path, _ in stage.servers.uploads] == [TERMINATE, "upload/warmupOptions"]
    row = await stage.reconcile(uid)
    assert row.phase == "Succeeded"
    assert len(stage.servers.uploads) == 2


async def test_a_failed_job_starts_again_when_its_options_change(stage: Stage) -> None:
    await stage.ready()
    stage.servers.outcome = {"status": "fail", "message": "no such path"}
    uid = await stage.a_job("j", "rmr", rmrOptions={"paths": ["a"]})
    row = await stage.until(uid, lambda row: row.phase == "Failed")
    assert (row.message, await stage.reasons(uid)) == ("no such path", ["ErrorDoRmrJob"])
    row = await stage.reconcile(uid)
    assert (row.phase, row.message) == ("Failed", "no such path")
    stage.servers.outcome = {"status": "success", "message": ""}
    await stage.edit("j", {"rmrOptions": {"paths": ["b"]}}, SAMPLE_JOB)
    row = await stage.until(uid, lambda row: row.phase == "Succeeded")
    assert row.message == ""


async def test_lost_job_options_are_posted_again_and_a_silent_server_is_waited_for(stage: Stage) -> None:
    await stage.ready(partitions=2)
    stage.servers.outcome = {"status": "running"}
    uid = await stage.a_job("j", "warmup")
    row = await stage.until(uid, lambda row: row.phase == "Running")
    stage.servers.uploads.clear()
    stage.servers.silent = set(pods(1))
    assert (await stage.reconcile(uid)).phase == "Running"
    stage.servers.silent = set()
    stage.servers.lose("imagenet-runtime-1")
    await stage.reconcile(uid)
    assert stage.servers.uploads == [("imagenet-runtime-1", "upload/warmupOptions", record_of(row).job)]
    stage.servers.results = {("imagenet-runtime-1", record_of(row).job): {"status": "fail", "message": "disk full"}}
    row = await stage.reconcile(uid)
    assert (row.phase, row.message) == ("Failed", "disk full")


async def test_a_job_does_not_wait_for_a_removed_server(stage: Stage) -> None:
    of = await stage.ready(partitions=2)
    stage.servers.outcome = {"status": "running"}
    uid = await stage.a_job("j", "clear")
    await stage.until(uid, lambda row: row.phase == "Running")
    await stage.edit("imagenet", {"partitions": 1})
    await stage.until(of, lambda row: row.record.runtime.ready == "1/1")
    stage.servers.outcome = {"status": "success", "message": ""}
    await stage.until(uid, lambda row: row.phase == "Succeeded")


async def test_a_job_whose_set_is_gone_is_not_posted_to_a_later_set(stage: Stage) -> None:
    of = await stage.ready()
    stage.servers.outcome = {"status": "running"}
    uid = await stage.a_job("j", "warmup")
    await stage.until(uid, lambda row: row.phase == "Running")
    await stage.delete()
    await stage.until(of, lambda row: row.gone_at is not None)
    assert str(uid) in stage.queue, "the end of a set wakes its jobs"
    row = await stage.reconcile(uid)
    assert (row.phase, row.message) == ("Failed", "the SampleSet imagenet that the job was posted to is gone")
    stage.servers.uploads.clear()
    await stage.ready(noSync=True)
    assert (await stage.reconcile(uid)).phase == "Failed"
    assert stage.servers.uploads == []


async def test_the_set_is_reconciled_often_after_a_job(stage: Stage) -> None:
    of = await stage.ready()
    stage.clock.skip(FRESH_SECONDS)
    dues = [await _due(stage, await stage.reconcile(of)) for _ in range(4)]
    assert dues == sorted(dues), "a set that has just become Ready is looked at soon, and less and less often"
    assert (dues[0] < 30, dues[-1] > 60) == (True, True)
    stage.servers.cached = 10
    uid = await stage.a_job("j", "clear")
    await stage.until(uid, lambda row: row.phase == "Succeeded")
    assert str(of) in stage.queue
    row = await stage.reconcile(of)
    assert row.record.cache.cached_bytes == 10
    stage.servers.cached = 100
    row = await stage.reconcile(of)
    assert await _due(stage, row) < 60, "for a while it is looked at although all is cached"


async def _due(stage: Stage, row: SampleRow) -> float:
    """Return the seconds until the next reconcile."""
    async with stage.db.read() as connection:
        due = await connection.fetchval("SELECT wake_at FROM samples WHERE uid = $1", row.uid)
    assert row.observed_at is not None
    return float((due - row.observed_at).total_seconds())


async def test_a_kind_without_a_reconcile_step_is_acknowledged(stage: Stage) -> None:
    """The controller records that it knows the edit, and does nothing."""
    with a_seventh_kind() as note:
        created = await stage.submitter(note).submit(
            dict(note.example), stage.request(), key=None, render=lambda _: b"{}"
        )
        assert await stage.sets._reconcile(str(created.uid)) is True
        row = await resources.get(stage.db, storage_of(note), created.uid)
        assert row is not None
        assert (row.observed_generation, row.phase) == (1, "")
        await stage.editor(note).merge(
            stage.namespace, "hello", {"spec": {"text": "new"}}, actor=Actor("alice"), precondition=lambda _: None
        )
        assert await stage.sets._reconcile(str(created.uid)) is True
        again = await SampleReader(note, stage.db).row(Address(uid=created.uid))
        assert (again.generation, again.observed_generation) == (2, 2)
        assert not stage.sets._has_sets.is_set(), "the objects of sets are watched only if there are sets or their jobs"
