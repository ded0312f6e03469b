"""With an archive, the retention deletes no record of a job before a copy of it is durable."""

import errno
import os
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest
from prometheus_client import REGISTRY
from typing_extensions import override

from app.base.cancellation import TaskGroup
from app.base.clock import SystemClock
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Database
from app.db.purge import JOBS, Copied, Purge
from app.domain.retention import Keeping, Retention
from app.exports import archive as archives
from app.exports import exporter
from app.exports.archive import Archive
from app.exports.folders import open_folder
from app.log_store import disk
from app.loops.maintenance.sweeper import EXPORT_EVERY, Sweeper
from tests.exports.ended_jobs import INSTALLATION, ended_job, imported, remove, stored
from tests.support.gateways.gateway import NAMESPACE, Gateway
from tests.support.postgres import count_rows
from tests.support.waiting import until

NOTHING = Keeping(jobs=Retention(kept_for=timedelta()))
GONE = "UPDATE jobs SET gone_at = finished_at WHERE uid = ANY($1::uuid[])"


async def expired_jobs(gateway: Gateway, *names: str) -> list[str]:
    uids = [await ended_job(gateway, name, minutes=number) for number, name in enumerate(names)]
    async with gateway.db.begin() as connection:
        await connection.execute(GONE, list(map(UUID, uids)))
    return uids


def archive(db: Database, folder: Path | str) -> Archive:
    return Archive(db, open_folder(str(folder)), INSTALLATION, SystemClock().now)


async def test_what_the_retention_deletes_can_be_imported(gateway: Gateway, tmp_path: Path) -> None:
    uids = await expired_jobs(gateway, "one", "two", "three")
    before = await stored(gateway.db, *uids)
    await Sweeper(gateway.db, SystemClock(), NOTHING, archive=archive(gateway.db, tmp_path)).sweep()
    assert await count_rows(gateway.db, "jobs") == 0
    assert (await imported(gateway.db, tmp_path)).imported == 3
    assert await stored(gateway.db, *uids) == before


async def test_no_record_is_deleted_while_jobs_cannot_be_exported(gateway: Gateway, tmp_path: Path) -> None:
    await expired_jobs(gateway, "one")
    folder, notes = tmp_path / "folder", list[str]()
    copies = archive(gateway.db, folder)
    folder.rmdir()
    folder.touch()  # a file in the place of the folder
    async with TaskGroup() as group:
        sweeper = Sweeper(gateway.db, SystemClock(), NOTHING, archive=copies, note=notes.append)
        sweeping = group.create_task(sweeper.run(0.05))
        await until(lambda: notes, what="the fault is reported")
        assert notes[0].startswith("no record of a job is deleted, because jobs cannot be exported before: file://")
        assert REGISTRY.get_sample_value("jobgate_export_failing") == 1
        assert await count_rows(gateway.db, "jobs") == 1
        assert await count_rows(gateway.db, "attempt_logs") == 1
        folder.unlink()
        await until(lambda: notes[1:], what="the fault is over")
        assert notes[1:] == [""]
        assert REGISTRY.get_sample_value("jobgate_export_failing") == 0
        sweeping.cancel()
    assert await count_rows(gateway.db, "jobs") == 0
    assert len(list(folder.rglob("*.zst"))) == 1


class SkippingClock(SystemClock):
    """A clock whose monotonic time can be moved forward."""

    skipped = 0.0

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


class FullDisk(Archive):
    """An archive in a process that cannot write its temporary files."""

    @override
    async def copy(self, jobs: Sequence[RowVersion]) -> Copied:
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_full_disk_does_not_end_the_sweeper(gateway: Gateway, tmp_path: Path) -> None:
    await expired_jobs(gateway, "one")
    notes = list[str]()
    full = FullDisk(gateway.db, open_folder(str(tmp_path)), INSTALLATION, SystemClock().now)
    await Sweeper(gateway.db, SystemClock(), NOTHING, archive=full, note=notes.append).sweep()
    assert [note.rpartition("] ")[2] for note in notes] == ["No space left on device"]
    assert await count_rows(gateway.db, "jobs") == 1


async def test_a_disk_that_hangs_holds_up_no_other_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = Event(), Event()
    ended = list[bool]()

    def sync(*_: object) -> None:
        begun.set()
        ended.append(goes_on.wait(10))

    monkeypatch.setattr(disk, "_fsync", sync)
    async with TaskGroup() as group:
        group.create_task(open_folder(str(tmp_path)).put("one.jsonl.zst", BytesIO()))
        await until(begun.is_set, what="the segment is brought to the disk")
        goes_on.set()
    assert all(ended)


async def test_a_job_that_changes_after_its_copy_is_copied_again(gateway: Gateway) -> None:
    changed, unchanged = await expired_jobs(gateway, "one", "two")
    copied: list[list[str]] = []

    async def copy(jobs: Sequence[RowVersion]) -> Copied:
        copied.append([str(job.uid) for job in jobs])
        if len(copied) == 1:
            async with gateway.db.begin() as connection:
                await connection.execute("UPDATE jobs SET version = version + 1 WHERE uid = $1", UUID(changed))
        return Copied(jobs, [])

    for expected in ([changed, unchanged], [changed]):
        purge = Purge(db=gateway.db, of=JOBS, ended_before={NAMESPACE: SystemClock().now()}, copy=copy)
        assert not (await purge.step()).is_last
        assert copied[-1] == expected
    assert await count_rows(gateway.db, "jobs") == 0


async def test_a_batch_that_is_copied_again_replaces_its_copy(gateway: Gateway, tmp_path: Path) -> None:
    uids = await expired_jobs(gateway, "one", "two")
    copies = archive(gateway.db, tmp_path)
    batch = [RowVersion(UUID(uid), 1) for uid in uids]
    await copies.copy(batch)
    await copies.copy(batch)
    assert len(list(tmp_path.rglob("*.zst"))) == 1
    await copies.copy(batch[1:])
    assert len(list(tmp_path.rglob("*.zst"))) == 2
    await remove(gateway.db, *uids)
    assert (await imported(gateway.db, tmp_path)).imported == 2


async def test_a_copy_removes_what_killed_processes_have_left_an_hour_ago(gateway: Gateway, tmp_path: Path) -> None:
    day = tmp_path / str(INSTALLATION) / "2026-01-01"
    day.mkdir(parents=True)
    old, young, of_another = day / "jobs.jsonl.zst#1", day / "more.jsonl.zst#2", tmp_path / "jobs.jsonl.zst#1"
    for file in (old, young, of_another):
        file.touch()
    for file in (old, of_another):
        at = file.stat().st_mtime - 3601
        os.utime(file, (at, at))
    uids = await expired_jobs(gateway, "one")
    await archive(gateway.db, tmp_path).copy([RowVersion(UUID(uid), 1) for uid in uids])
    assert [file.exists() for file in (old, young, of_another)] == [False, True, True]


async def test_jobs_of_many_batches_are_in_one_segment_until_it_is_full(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uids = await expired_jobs(gateway, *(f"job-{number}" for number in range(5)))
    before = await stored(gateway.db, *uids)
    ended_before = {NAMESPACE: SystemClock().now()}

    async def segments_after_a_purge(folder: Path, segment_bytes: int) -> int:
        copies = Archive(gateway.db, open_folder(str(folder)), INSTALLATION, SystemClock().now, segment_bytes)
        purge = Purge(db=gateway.db, of=JOBS, ended_before=ended_before, copy=copies.copy, objects=2)
        while not (await purge.step()).is_last:
            pass
        assert await count_rows(gateway.db, "jobs") == 0
        assert (await imported(gateway.db, folder)).imported == 5
        assert await stored(gateway.db, *uids) == before
        async with gateway.db.begin() as connection:
            await connection.execute("UPDATE jobs SET imported_at = NULL")
        return len(list(folder.rglob("*.zst")))

    assert await segments_after_a_purge(tmp_path / "one", 64 * 1024 * 1024) == 1
    monkeypatch.setattr(archives, "JOBS_AT_ONCE", 2)
    assert await segments_after_a_purge(tmp_path / "more", 1) == 3
    monkeypatch.setattr(exporter, "SNAPSHOT_BYTES", 1)
    assert await segments_after_a_purge(tmp_path / "most", 1) == 5


async def test_the_jobs_of_an_hour_are_exported_at_once(gateway: Gateway, tmp_path: Path) -> None:
    clock = SkippingClock()
    sweeper = Sweeper(gateway.db, clock, NOTHING, archive=archive(gateway.db, tmp_path))
    found = []
    for name in ("one", "two", "three"):
        await expired_jobs(gateway, name)
        await sweeper.sweep()
        found.append(len(list(tmp_path.rglob("*.zst"))))
    assert found == [1, 1, 1]
    clock.skipped += EXPORT_EVERY
    await sweeper.sweep()
    assert len(list(tmp_path.rglob("*.zst"))) == 2
    assert await count_rows(gateway.db, "jobs") == 0


async def test_a_batch_that_another_process_has_deleted_meanwhile_keeps_its_copy(
    gateway: Gateway, tmp_path: Path
) -> None:
    uids = await expired_jobs(gateway, "one", "two")
    batch = [RowVersion(UUID(uid), 1) for uid in uids]
    for number_left in (1, 0):
        await archive(gateway.db, tmp_path).copy(batch)
        await remove(gateway.db, uids[number_left])
    await archive(gateway.db, tmp_path).copy(batch)
    assert (await imported(gateway.db, tmp_path)).imported == 2
