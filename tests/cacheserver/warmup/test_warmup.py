"""Warm-ups of servers that share a directory: every step, and every way in which a server can be lost."""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cacheserver.config import WarmupTimes
from cacheserver.errors import JobFailed
from cacheserver.options import Progress, WarmupRequest
from cacheserver.warmup import coordination
from cacheserver.warmup.coordination import Warmup
from cacheserver.warmup.file_lists import batches
from cacheserver.warmup.rendezvous import FailureDetector, Rendezvous, beats, with_prefix
from tests.support.waiting import until

TIMES = WarmupTimes(workers=60, lists=60, directory=60, poll=0.01, beat=0.05, silence=60)
# For those who wait for somebody who does not come, or who has fallen silent: all others have ample time.
ONE_IS_MISSING = replace(TIMES, workers=2)
ONE_IS_DEAD = replace(TIMES, silence=0.6)
NOBODY_COMES = replace(TIMES, workers=0.3, lists=0.3, directory=0.3)
Warm = Callable[[Path], Awaitable[None]]


def files_of(listed: Path) -> list[str]:
    """Return the files that juicefs warms up for a line: a file, or all files below a directory."""
    found = [listed] if listed.is_file() else listed.rglob("*")
    return [str(path) for path in found if path.is_file() and not path.is_symlink()]


class Servers:
    """The servers of a set, and the files that each has warmed up."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.warmed: dict[int, list[str]] = {}

    def server(
        self,
        index: int,
        options: WarmupRequest,
        *,
        job: str = "job",
        times: WarmupTimes = TIMES,
        warm: Warm | None = None,
    ) -> Warmup:
        async def note(part: Path) -> None:
            for line in part.read_text(errors="surrogateescape").splitlines():
                self.warmed.setdefault(index, []).extend(files_of(Path(line)))

        return Warmup(self.data, index, options, job, times, warm or note)

    def left(self) -> list[str]:
        return [path.name for path in self.data.iterdir() if path.name.startswith(".warmup")]


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    for name in ("a/1", "a/2", "a/b/3", "4", ".hidden", "a/.dot/5", "a/.6"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "data" / "link").symlink_to("4")
    (tmp_path / "data" / "loop").symlink_to(".")
    return Servers(tmp_path / "data")


PLAIN = {"a/1", "a/2", "a/b/3", "4"}


@pytest.mark.parametrize("strategy", ["sequence", "random", ""])
@pytest.mark.parametrize("count", [1, 2, 4, 7])
async def test_every_plain_file_is_warmed_once(servers: Servers, count: int, strategy: str) -> None:
    options = WarmupRequest(partitions=count, strategyName=strategy)  # type: ignore[arg-type]
    messages = await asyncio.gather(*(servers.server(index, options).run() for index in range(count)))
    warmed = Counter(path for paths in servers.warmed.values() for path in paths)
    assert warmed == Counter(f"{servers.data}/{name}" for name in PLAIN)
    assert messages[0] == f"4 files on {count} servers"
    assert servers.left() == []
    if strategy == "sequence":
        sizes = [len(servers.warmed.get(index, [])) for index in range(count)]
        assert max(sizes) - min(sizes) <= 1


async def test_only_the_paths_asked_for(servers: Servers) -> None:
    options = WarmupRequest(paths=(f"{servers.data}/a/b", f"{servers.data}/4"))
    assert await servers.server(0, options).run() == "2 files on 1 servers"


async def test_names_that_cannot_be_listed_are_left_out_and_told(servers: Servers) -> None:
    for name in ("two\nlines", " edge ", os.fsdecode(b"\xff\xfe")):
        (servers.data / name).write_text("x")
    message = await servers.server(0, WarmupRequest()).run()
    assert message.startswith("5 files on 1 servers; left out, names that juicefs warmup cannot take: 2 (")
    assert "two\\nlines" in message
    assert os.fsdecode(b"\xff\xfe") in {Path(path).name for path in servers.warmed[0]}


async def test_without_files_nothing_is_started(tmp_path: Path) -> None:
    assert await Servers(tmp_path).server(0, WarmupRequest()).run() == "0 files on 1 servers"


REFUSED = {
    "outside": ("/etc", "is not inside"),
    "by dots": ("{data}/../data/a", "component that is not allowed"),
    "a link": ("{data}/loop", "symbolic link"),
    "through a link": ("{data}/loop/a", "symbolic link"),
    "nothing": ("{data}/nothing", "does not exist"),
}


@pytest.mark.parametrize(("path", "message"), REFUSED.values(), ids=REFUSED)
async def test_paths_that_are_refused(servers: Servers, path: str, message: str) -> None:
    with pytest.raises(JobFailed, match=message):
        await servers.server(0, WarmupRequest(paths=(path.format(data=servers.data),))).run()
    assert servers.left() == []


@pytest.mark.parametrize("count", [1, 2])
async def test_the_files_of_each_finished_run_of_juicefs_are_counted(
    servers: Servers, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordination, "_BATCH", 1)
    options, counted = WarmupRequest(partitions=count), [Progress() for _ in range(count)]
    seen: list[list[int | None]] = [[] for _ in range(count)]

    def server(index: int) -> Warmup:
        async def warm(_: Path) -> None:
            seen[index].append(counted[index].files_done)

        return Warmup(servers.data, index, options, "job", TIMES, warm, progress=counted[index])

    await asyncio.gather(*(server(index).run() for index in range(count)))
    # The directory a/b stands for one file, and the others are listed one by one.
    assert seen == [[*range(4 // count)]] * count
    assert counted == [Progress(files_done=4 // count, files_total=4 // count)] * count


BATCHES: list[tuple[list[int], list[tuple[int, int]]]] = [
    ([], []),
    ([1, 1, 1, 1, 1], [(2, 2), (2, 2), (1, 1)]),
    ([1, 5, 1, 2], [(2, 6), (2, 3)]),
    ([0], [(1, 0)]),
]


@pytest.mark.parametrize(("sizes", "wanted"), BATCHES)
def test_a_batch_ends_when_it_has_enough_files(sizes: list[int], wanted: list[tuple[int, int]]) -> None:
    assert [*batches(sizes, 2)] == wanted


@pytest.mark.parametrize("line", ["/etc/passwd", "../x", "a/../../x"])
async def test_a_users_list_stays_inside(servers: Servers, line: str) -> None:
    (servers.data / "list").write_text(f"4\n{line}\n")
    with pytest.raises(JobFailed, match="line 2 of the file list is not inside"):
        await servers.server(0, WarmupRequest(file=f"{servers.data}/list")).run()
    assert servers.left() == []


async def test_a_warm_up_goes_on_without_a_missing_worker(servers: Servers) -> None:
    options = WarmupRequest(partitions=3)
    messages = await asyncio.gather(
        servers.server(0, options, times=ONE_IS_MISSING).run(), servers.server(2, options, times=TIMES).run()
    )
    assert messages[0] == "4 files on 2 servers; servers that did not come: 1"


async def test_a_server_of_no_partition_is_told_so(servers: Servers) -> None:
    with pytest.raises(JobFailed, match="this is server 2, and the warm-up is for servers 0 to 1"):
        servers.server(2, WarmupRequest(partitions=2))


async def test_a_worker_without_coordinator_gives_up(servers: Servers) -> None:
    with pytest.raises(JobFailed, match=r"server 0 did not begin this warm-up within 0\.3 seconds"):
        await servers.server(1, WarmupRequest(partitions=2), times=NOBODY_COMES).run()


async def test_a_worker_takes_no_part_in_another_job(servers: Servers) -> None:
    other = Rendezvous.begin(servers.data, "another job", 0)
    assert other is not None
    with pytest.raises(JobFailed, match="did not begin"):
        await servers.server(1, WarmupRequest(partitions=2), times=NOBODY_COMES).run()
    assert with_prefix(other.names(), "worker") == set()
    other.close()


async def test_the_remains_of_a_dead_coordinator_are_removed(servers: Servers) -> None:
    dead = Rendezvous.begin(servers.data, "old", 0)
    assert dead is not None
    dead.put("file.0", b"old\n")
    (servers.data / ".warmup-unfinished").mkdir()
    assert await servers.server(0, WarmupRequest(), times=ONE_IS_DEAD).run() == "4 files on 1 servers"
    assert servers.left() == []
    dead.close()


@pytest.mark.parametrize("left", ["nothing", "a file", "a link"])
async def test_remains_of_any_kind_are_removed_or_reported(servers: Servers, left: str, tmp_path: Path) -> None:
    place = servers.data / ".warmup"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_text("x")
    if left == "nothing":
        place.mkdir()
    elif left == "a file":
        place.write_text("x")
    else:
        place.symlink_to(tmp_path / "elsewhere")
    run = servers.server(0, WarmupRequest(), times=ONE_IS_DEAD).run()
    if left == "nothing":
        assert await run == "4 files on 1 servers"
    else:
        with pytest.raises(JobFailed, match="is not a directory"):
            await run
    assert (tmp_path / "elsewhere" / "kept").exists()


async def test_a_second_coordinator_does_not_disturb_a_live_one(servers: Servers) -> None:
    living = Rendezvous.begin(servers.data, "other", 0)
    assert living is not None

    async def live() -> None:
        while True:
            living.beat()
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(live())
        with pytest.raises(JobFailed, match="another warm-up is under way"):
            await servers.server(0, WarmupRequest()).run()
        task.cancel()
    assert living.is_current()
    living.close()


async def test_a_worker_whose_coordinator_dies_ends(servers: Servers) -> None:
    dead = Rendezvous.begin(servers.data, "job", 0)
    assert dead is not None
    with pytest.raises(JobFailed, match="server 0 fell silent"):
        await servers.server(1, WarmupRequest(partitions=2), times=ONE_IS_DEAD).run()
    dead.close()


async def test_a_worker_whose_run_is_replaced_ends_and_leaves_the_new_one_alone(servers: Servers) -> None:
    old = Rendezvous.begin(servers.data, "job", 0)
    assert old is not None
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(_failure(servers.server(1, WarmupRequest(partitions=2))))
        await until(lambda: with_prefix(old.names(), "worker"), what="the worker waits for its list")
        old.end()
        new = Rendezvous.begin(servers.data, "next", 0)
        assert new is not None
        assert "the warm-up ended before this server got its list" in await worker
    assert sorted(new.names()) == ["beat.0.0", "run"]
    old.close()
    new.close()


async def test_a_worker_that_comes_after_the_split_is_told_so(servers: Servers) -> None:
    rendezvous = Rendezvous.begin(servers.data, "job", 0)
    assert rendezvous is not None
    rendezvous.publish_lists([])
    assert "shared out already" in await _failure(servers.server(1, WarmupRequest(partitions=2)))
    rendezvous.close()


async def test_a_failed_worker_fails_the_warm_up(servers: Servers) -> None:
    async def broken(_: Path) -> None:
        raise JobFailed("no such mount")

    options = WarmupRequest(partitions=2)
    parts = (servers.server(0, options), servers.server(1, options, warm=broken))
    messages = await asyncio.gather(*map(_failure, parts))
    assert [*messages] == ["server 1 failed: no such mount", "no such mount"]
    assert servers.left() == []


async def test_a_dead_worker_fails_the_warm_up(servers: Servers) -> None:
    """Only its heartbeats stop."""

    async def watch() -> str:
        return await _failure(servers.server(0, WarmupRequest(partitions=2), times=ONE_IS_DEAD))

    async with asyncio.TaskGroup() as group:
        coordinator = group.create_task(watch())
        worker = await until(lambda: Rendezvous.join(servers.data, "job", 1), what="a run to join")
        assert await coordinator == "server 1 fell silent during the warm-up"
    worker.close()
    assert servers.left() == []


async def test_a_terminated_server_notifies_the_others(servers: Servers) -> None:
    async def endless(_: Path) -> None:
        await asyncio.Event().wait()

    options = WarmupRequest(partitions=2)
    async with asyncio.TaskGroup() as group:
        coordinator = group.create_task(_failure(servers.server(0, options)))
        worker = group.create_task(servers.server(1, options, warm=endless).run())
        await until((servers.data / ".warmup" / "file.1").exists, what="the list of the worker")
        worker.cancel()
        assert await coordinator == "server 1 failed: it was stopped"


async def _failure(part: Warmup) -> str:
    with pytest.raises(JobFailed) as failed:
        await part.run()
    return str(failed.value)


def test_silence_is_measured_by_the_local_clock() -> None:
    now = 0.0
    detector = FailureDetector(lambda: now, 10)
    assert detector.silent(["beat.1.0"], [1, 2]) == set()
    now = 9.0
    assert detector.silent(["beat.1.1"], [1, 2]) == set()
    now = 12.0
    assert detector.silent(["beat.1.1"], [1, 2]) == {2}
    now = 20.0
    assert detector.silent(["beat.1.1"], [1]) == {1}


def test_unknown_names_in_the_directory_are_ignored() -> None:
    names = ["beat.1.7", "beat.x.1", "beat.1", "beat.1.x", "worker.2", "worker.", "worker.²", "other"]
    assert beats(names) == {1: 7}
    assert with_prefix(names, "worker") == {2}
