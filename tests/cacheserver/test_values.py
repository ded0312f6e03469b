"""Small pure functions: flags, figures, the output of programs."""

import os
from pathlib import Path

import msgspec
import pytest

from app.domain.cache.vocabulary import JobType
from cacheserver.engine import juicefs
from cacheserver.engine.cache_status import disk_figures, parse_info, pauses, tree_size
from cacheserver.errors import JobFailed
from cacheserver.files.threads import Stop
from cacheserver.options import JobResult, Progress, ResultStatus, SyncRequest, WarmupRequest, decode, flags
from cacheserver.programs.commands import Output
from tests.support.machine.disks import small_disk

FLAGS = {
    "nothing": ("{}", []),
    "zero values are not given": ('{"threads": 0, "update": false, "start": ""}', []),
    "all": (
        """{"source": "s3://b", "destination": "file:///x", "start": "a", "end": "b", "threads": 3, "http-port": 1,
        "update": true, "force-update": true, "perms": true, "dirs": true, "dry": true, "delete-src": true,
        "delete-dst": true, "exclude": "-x y", "include": "$(z)", "manager": "m", "worker": "w", "bwlimit": 5,
        "no-https": true}""",
        [
            *("--start=a", "--end=b", "--threads=3", "--http-port=1", "--update", "--force-update", "--perms"),
            *("--dirs", "--dry", "--delete-src", "--delete-dst", "--exclude=-x y", "--include=$(z)", "--manager=m"),
            *("--worker=w", "--bwlimit=5", "--no-https"),
        ],
    ),
}


@pytest.mark.parametrize(("body", "wanted"), FLAGS.values(), ids=FLAGS)
def test_flags_of_a_sync(body: str, wanted: list[str]) -> None:
    options = decode(JobType.SYNC, body.encode())
    assert isinstance(options, SyncRequest)
    assert flags(options) == wanted


def test_the_default_strategy_of_a_posted_warm_up_is_sequence() -> None:
    assert decode(JobType.WARMUP, b"{}") == WarmupRequest(paths=(), partitions=1, strategyName="sequence")


INFO = {
    "0.14": (" inode: 1\n files:\t52\n dirs:\t7\n length:\t150004\n size:\t241664", (52, 150004)),
    "grouped": ("files:\t1,281,167\nlength: 147,897,477,120", (1281167, 147897477120)),
    "later": ("  files: 52\n   dirs: 7\n length: 146.49 KiB (150004 Bytes)\n", (52, 150004)),
}


@pytest.mark.parametrize(("text", "wanted"), INFO.values(), ids=INFO)
def test_the_output_of_juicefs_info_is_parsed(text: str, wanted: tuple[int, int]) -> None:
    found = parse_info(text)
    assert (found.files, found.length) == wanted


def test_output_of_juicefs_info_without_totals_is_an_error() -> None:
    with pytest.raises(JobFailed):
        parse_info("inode: 1")


SYNC = {
    "well": (["Found: 5, copied: 5, deleted: 0, failed: 0, transferred: 3 B"], None),
    "failed": (["Found: 5, copied: 3, deleted: 0, failed: 2, transferred: 3 B"], "2 of 5 files failed"),
    "vanished": (
        ["<WARNING>: Update mtime of f9: chtimes /x/f9: no such file or directory", "Found: 1, copied: 1, failed: 0"],
        "1 files vanished from the source or could not be read while they were copied",
    ),
    "broken off": (
        ["<ERROR>: Listing failed, stop syncing"],
        "the source could not be listed",
    ),
}


@pytest.mark.parametrize(("lines", "problem"), SYNC.values(), ids=SYNC)
def test_the_output_of_juicefs_sync_is_parsed(lines: list[str], problem: str | None) -> None:
    report = juicefs.SyncReport()
    for line in lines:
        report.line(line)
    found = report.problem()
    assert found == problem or (problem is not None and found is not None and found.startswith(problem))


COPIED = "2026/01/02 03:04:05.678901 juicefs[7] <DEBUG>: Copied {} bytes) in 439.448µs"
COUNTED: dict[str, tuple[list[str], Progress]] = {
    "nothing yet": (["Syncing from file:///a/ to file:///b/"], Progress()),
    "copied files": ([COPIED.format("x/1 (3"), COPIED.format("a (b (0")], Progress(files_done=2, bytes_done=3)),
    "what looks like it": ([f"Failed to copy {COPIED.format('x (3')}", COPIED.format("x (-3")], Progress()),
    "the end": (["Found: 5, copied: 3, deleted: 0, failed: 0, transferred: 3 B"], Progress(files_done=3)),
}


@pytest.mark.parametrize(("lines", "wanted"), COUNTED.values(), ids=COUNTED)
def test_the_files_that_a_sync_has_copied_are_counted(lines: list[str], wanted: Progress) -> None:
    report = juicefs.SyncReport(Progress())
    for line in lines:
        report.line(line)
    assert report.progress == wanted


def test_a_result_without_a_known_figure_has_no_progress() -> None:
    result = JobResult(ResultStatus.RUNNING)
    assert msgspec.json.encode(result.with_progress(Progress())) == b'{"status":"running","message":""}'
    assert result.with_progress(Progress(files_total=0)).progress == Progress(files_total=0)


def test_output_is_kept_in_bounded_memory() -> None:
    heard: list[int] = []
    output = Output(lambda line: heard.append(len(line)))
    output.feed(b"early <ERROR>: the cause\n")
    for number in range(1000):
        output.feed(b"x" * 10_000 + b"\n%d\n" % number)
    output.feed(b"y" * 100_000)
    output.close()
    assert output.summary() == "early <ERROR>: the cause"
    assert max(heard) == 4096
    assert len(heard) == 2002


def test_without_errors_the_summary_is_the_last_lines() -> None:
    output = Output()
    output.feed(b"\n".join(b"%d\n1 <DEBUG>: detail" % number for number in range(20)))
    output.close()
    assert output.summary().split() == [str(number) for number in range(12, 20)]


def test_the_pauses_grow_to_the_interval() -> None:
    assert pauses(30) == [5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 30]
    assert pauses(1) == [1]


def test_each_device_counts_once(tmp_path: Path) -> None:
    with small_disk(tmp_path / "one", 3) as one, small_disk(tmp_path / "two", 5) as two:
        (one / "file").write_bytes(b"x" * 1024 * 1024)
        (one / "below").mkdir()
        assert disk_figures((one, two, one / "below")) == (8 * 1024, 1024, 7 * 1024)


def test_the_size_of_a_tree(tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "a").write_bytes(b"x" * 10)
    (tmp_path / "tree" / "deep" / ".b").write_bytes(b"x" * 5)
    os.link(tmp_path / "tree" / "a", tmp_path / "tree" / "again")
    (tmp_path / "outside").write_bytes(b"x" * 100)
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    assert tree_size(tmp_path / "tree", Stop()) == 15
