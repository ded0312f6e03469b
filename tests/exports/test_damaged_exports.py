"""A file that no export has written is refused with the line that is wrong, and no job of it is stored in part."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from app.db.postgres.engine import Database
from app.domain.exports.segments import InvalidExport, SegmentSums
from tests.exports.ended_jobs import imported
from tests.support.postgres import count_rows

NAME = "segment-00000001.jsonl.zst"


def lines_of(segment: Path) -> list[bytes]:
    with zstandard.ZstdDecompressor().stream_reader(BytesIO(segment.read_bytes())) as text:
        return text.read().splitlines(keepends=True)


def with_footer(lines: list[bytes]) -> list[bytes]:
    """Replace the footer by the one of these lines."""
    *others, footer = lines
    sums = SegmentSums()
    for line in others:
        sums.add(line)
    sums.jobs = sum(b'{"type":"job"' in line for line in others)
    told = json.loads(footer)
    return [*others, msgspec.json.encode(sums.footer(told["until"], last=told["last"])) + b"\n"]


def write(segment: Path, lines: list[bytes]) -> None:
    segment.write_bytes(zstandard.ZstdCompressor().compress(b"".join(lines)))


def _set(line: int, *path: Any, to: Any) -> Callable[[list[bytes]], list[bytes]]:
    """Change one value of a line, whose checksum follows."""

    def change(lines: list[bytes]) -> list[bytes]:
        document = json.loads(lines[line - 1])
        place = document
        for step in path[:-1]:
            place = place[step]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to
        lines[line - 1] = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        return with_footer(lines) if line < len(lines) else lines

    return change


def _row(table: str, column: str, to: Any) -> Callable[[list[bytes]], list[bytes]]:
    return _set(3, "records", table, 0, column, to=to)


def _job(column: str, to: Any) -> Callable[[list[bytes]], list[bytes]]:
    return _set(3, "job", column, to=to)


# The lines of the export are a header, the jobs one and two, and a footer.
DAMAGED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "half a line": (lambda lines: [*lines[:2], lines[2][:99]], "line 3: the file ends within this line"),
    "a changed job": (
        lambda lines: [lines[0], lines[1].replace(b"team", b"teal"), *lines[2:]],
        "line 4: the segment is damaged: its sha256",
    ),
    "a live job": (_job("phase", "Running"), "line 3: the job has not ended"),
    "a job without end": (_job("finished_at", None), "line 3: the job has not ended"),
    "a reserved namespace": (_job("namespace", "kube-system"), "line 3: the namespace kube-system is reserved"),
    "another kind": (_job("kind", "MxJob"), "line 3: jobs.manifest: it is a GenericJob and not a MxJob"),
    "an unknown kind": (_set(3, "job", "manifest", "kind", to="Pod"), "line 3: jobs.manifest:"),
    "no spec": (_set(3, "job", "manifest", "spec", to=...), "line 3: jobs.manifest: 'spec' is missing"),
    "too many replicas": (
        _set(3, "job", "manifest", "spec", "replicaSpecs", 0, "replicas", to=10_001),
        "line 3: jobs.manifest: it has 10001 replicas: accepted: at most 10000",
    ),
    "too many replicas beside a negative number": (
        _set(
            3,
            "job",
            "manifest",
            "spec",
            "replicaSpecs",
            0,
            "template",
            "x",
            to=[{"replicas": 10_001}, {"replicas": -1}],
        ),
        "line 3: jobs.manifest: it has 10003 replicas: accepted: at most 10000",
    ),
    "labels with numbers": (_job("labels", {"a": 1}), "line 3: jobs.labels:"),
    "an unknown column": (_job("colour", "red"), "line 3: a row of jobs has a column colour"),
    "a time without zone": (_job("created_at", "2026-01-01T00:00:00"), "line 3: jobs.created_at:"),
    "a text as number": (_job("generation", "1"), "line 3: jobs.generation:"),
    "a missing name": (_job("name", ...), "line 3: jobs.name is missing"),
    "running leftovers": (_set(3, "job", "status", "still_running", to=1), "line 3: jobs: replicas of the job still"),
    "an unknown table": (_set(3, "records", "secrets", to=[]), "line 3: there is no table secrets"),
    "an owner": (_row("replicas", "job_uid", "1" * 32), "line 3: a row of replicas has a column job_uid"),
    "an unknown phase": (_row("replicas", "phase", "Happy"), "line 3: replicas:"),
    "an unknown state": (
        _set(3, "records", "replicas", 0, "containers", 0, "state", to="odd"),
        "line 3: replicas: the state of a container is odd",
    ),
    "no hexadecimal": (_row("attempt_logs", "tail", "zz"), "line 3: attempt_logs.tail:"),
    "a gap in the history": (_row("status_history", "seq", 7), "line 3: the row 1 of status_history has the number 7"),
    "a lost row": (
        _set(3, "records", "scale_records", to=[]),
        "line 3: the job has 0 rows of scale_records, and scale_count 1",
    ),
    "an event that is no object": (_row("attempt_events", "events", ["x"]), "line 3: attempt_events:"),
    "half a rank": (_row("status_history", "task", "worker"), "line 3: status_history: it has a task without a rank"),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("damage", DAMAGED)
async def test_the_line_with_a_fault_is_named(export: Path, empty: Database, damage: str, tmp_path: Path) -> None:
    change, message = DAMAGED[damage]
    write(tmp_path / NAME, change(lines_of(export / NAME)))
    with pytest.raises(InvalidExport) as refused:
        await imported(empty, tmp_path)
    assert str(refused.value).startswith(f"{NAME}: {message}")
    assert await count_rows(empty, "jobs") == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_that_is_cut_off_anywhere_is_refused(export: Path, empty: Database, tmp_path: Path) -> None:
    whole = (export / NAME).read_bytes()
    # Of the last bytes, four are the checksum of zstd. Without it, the one of the footer still proves all lines.
    for size in (0, 1, 5, len(whole) // 3, len(whole) // 2, len(whole) - 30):
        (tmp_path / NAME).write_bytes(whole[:size])
        with pytest.raises(InvalidExport, match=f"^{NAME}: line "):
            await imported(empty, tmp_path)
        assert await count_rows(empty, "jobs") == 0, size


@pytest.mark.asyncio(loop_scope="module")
async def test_a_changed_byte_anywhere_is_noticed(export: Path, empty: Database, tmp_path: Path) -> None:
    whole = (export / NAME).read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        (tmp_path / NAME).write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(InvalidExport):
            await imported(empty, tmp_path)
        assert await count_rows(empty, "jobs") == 0, place
