"""An export and an import that are interrupted anywhere are completed by the same command, with each job once."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from signal import SIGKILL
from typing import Any, cast
from uuid import uuid4

import pytest
import typer

from app.base.faultpoints import FaultPoint
from app.commands.exports import export
from app.db.exports import reading
from app.db.postgres.engine import Database
from app.domain.errors import Conflict
from app.domain.exports.lines import ExportSelection, JobCursor
from app.exports import exporter
from app.exports.importer import ImportSummary
from tests.db.factories import NOW, later
from tests.db.lists.rows import Explained
from tests.db.test_purge import MANY
from tests.exports import ended_jobs
from tests.exports.ended_jobs import ALL, ended_job, exported, imported, remove, stored
from tests.exports.test_damaged_exports import lines_of
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.gateway import Gateway
from tests.support.postgres import count_rows

JOBS = 4


class Interrupted(Exception):  # noqa: N818  as a signal does
    """Stands for the end of the process."""


def interrupt_after(steps: int) -> Callable[[FaultPoint], None]:
    left = iter(range(steps))

    def reach(_: FaultPoint) -> None:
        if next(left, None) is None:
            raise Interrupted

    return reach


def exported_uids(folder: Path) -> list[str]:
    """The uids in the order of the segments."""
    lines = [json.loads(line) for segment in sorted(folder.iterdir()) for line in lines_of(segment)]
    return [line["job"]["uid"] for line in lines if line["type"] == "job"]


async def test_an_export_continues_wherever_it_was_interrupted(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "JOBS_AT_ONCE", 1)
    # The last two have ended at the same time.
    uids = [await ended_job(gateway, f"job-{number}", minutes=min(number, 2)) for number in range(JOBS)]
    for steps in range(2 * JOBS + 2):
        folder = tmp_path / str(steps)
        monkeypatch.setattr(exporter, "reach", interrupt_after(steps))
        with pytest.raises(Interrupted):
            await exported(gateway.db, folder, segment_bytes=1)
        monkeypatch.setattr(exporter, "reach", lambda _: None)
        # Without `before`, an export that continues keeps that of its beginning.
        await exported(gateway.db, folder, ExportSelection(), segment_bytes=1)
        found = exported_uids(folder)
        assert found[:2] == uids[:2]
        assert sorted(found[2:]) == found[2:], "jobs that ended at the same time are in the order of their uids"
        assert sorted(found) == sorted(uids)
        assert (await exported(gateway.db, folder, ExportSelection())).added == 0


async def test_a_snapshot_ends_when_much_was_read_in_it(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uids = [await ended_job(gateway, f"job-{number}", minutes=number) for number in range(JOBS)]
    monkeypatch.setattr(exporter, "SNAPSHOT_BYTES", 1)
    begun, snapshot = [], gateway.db.snapshot

    def count(**options: bool) -> AbstractAsyncContextManager[Any]:
        begun.append(options)
        return snapshot(**options)

    monkeypatch.setattr(gateway.db, "snapshot", count)
    await exported(gateway.db, tmp_path)
    assert exported_uids(tmp_path) == uids
    assert len(begun) == JOBS


async def test_an_export_does_not_continue_another_one(gateway: Gateway, tmp_path: Path) -> None:
    await exported(gateway.db, tmp_path)
    with pytest.raises(Conflict, match="an export of another selection"):
        await exported(gateway.db, tmp_path, ExportSelection(before=ALL.before, kinds=("MxJob",)))


async def test_an_export_does_not_continue_that_of_another_installation(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exported(gateway.db, tmp_path)
    segments = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(ended_jobs, "INSTALLATION", uuid4())
    with pytest.raises(Conflict, match="an export of another installation"):
        await exported(gateway.db, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == segments


async def test_only_one_process_exports_to_a_folder(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def export_too(*_: Any) -> None:
        await exported(gateway.db, tmp_path)

    monkeypatch.setattr(exporter.Exporter, "_progress", export_too)
    with pytest.raises(Conflict, match="another process exports to"):
        await exported(gateway.db, tmp_path)


@pytest.mark.parametrize("before", ["2026-08-01", "2026-07-31"])
def test_a_range_without_any_time_is_refused(before: str, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=f"{before} is not after 2026-08-01"):
        export(to=str(tmp_path / "archive"), after="2026-08-01", before=before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (ExportSelection(before=later(120)), ["zero", "one"]),
        (ExportSelection(before=later(9_000), after=later(60)), ["one", "two"]),
        (ExportSelection(before=later(9_000), phases=("Succeeded",)), ["two"]),
        (ExportSelection(before=later(9_000), kinds=("MxJob",)), []),
        (ExportSelection(before=later(9_000), namespaces=("team",)), ["zero", "one", "two"]),
        (ExportSelection(before=later(9_000), namespaces=("other",)), []),
    ],
)
async def test_an_export_has_the_jobs_of_its_selection(
    gateway: Gateway, tmp_path: Path, selection: ExportSelection, expected: list[str]
) -> None:
    phases = {"zero": "Failed", "one": "TimedOut", "two": "Succeeded"}
    names = {await ended_job(gateway, name, minutes=n, phase=phases[name]): name for n, name in enumerate(phases)}
    await gateway.submit("live")
    await exported(gateway.db, tmp_path, selection)
    assert [names[uid] for uid in exported_uids(tmp_path)] == expected


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize(
    "rare",
    [
        ExportSelection(before=later(9_000_000), phases=("TimedOut",)),
        ExportSelection(before=later(9_000_000), namespaces=("absent",)),
        ExportSelection(before=later(9_000_000), after=later(-9_000_000), kinds=("MxJob",)),
    ],
)
async def test_a_page_of_rare_jobs_reads_a_bounded_number_of_rows(
    db: Database, *, analyzed: bool, rare: ExportSelection
) -> None:
    async with db.begin() as connection:
        await connection.execute(MANY, "team", NOW, NOW, 20_000, None)
        await connection.execute("UPDATE jobs SET phase = 'TimedOut', kind = 'MxJob' WHERE name = 'many-1'")
        if analyzed:
            await connection.execute("ANALYZE jobs")
    async with db.snapshot(by_index=True) as connection:
        explained = Explained(connection)
        until, pages = None, 0
        found: list[JobCursor] = []
        while True:
            explained.examined = 0
            next_one = await reading.page(cast(Any, explained), rare, until, 100, examined=1_000)
            assert explained.examined <= 1_002, explained.plans[-1]
            found += next_one.jobs
            pages, until = pages + 1, next_one.until
            if next_one.is_last:
                break
    assert pages == 21
    assert len(found) == (0 if rare.namespaces else 1)


async def test_killed_commands_are_completed(gateway: Gateway, tmp_path: Path) -> None:
    uids = [await ended_job(gateway, name) for name in ("one", "two")]
    before = await stored(gateway.db, *uids)
    folder = tmp_path / "export"

    def run(*command: str, fault: str = "") -> tuple[int, str]:
        given = {"JOBGATE_DATABASE_URL": gateway.db.url, "JOBGATE_FAULT_POINTS": fault}
        ran = jobgate(*command, home=tmp_path, **given)
        assert ran.returncode in {0, -SIGKILL}, ran.stderr
        return ran.returncode, ran.stdout

    export = ("export", "--to", str(folder), "--before", "2100-01-01")
    assert run(*export, fault="segment-written") == (-SIGKILL, "")
    assert not list(folder.glob("*.zst"))
    (folder / "segment-00000001.jsonl.zst#1").write_bytes(b"the beginning")
    assert run(*export, fault="segment-stored") == (-SIGKILL, "")
    assert run(*export) == (0, "the export is complete: 1 segments, 0 jobs added\n")
    assert [path.name for path in folder.iterdir()] == ["segment-00000001.jsonl.zst"]
    await remove(gateway.db, *uids)
    assert run("import", str(folder), fault="job-imported:2")[0] == -SIGKILL
    assert await count_rows(gateway.db, "jobs") == 1
    assert await count_rows(gateway.db, "attempt_logs") == 1
    assert run("import", str(folder))[1].endswith("imported 1 jobs; 1 were present\n")
    assert await stored(gateway.db, *uids) == before
    assert await imported(gateway.db, folder) == ImportSummary(present=2, is_complete=True)
