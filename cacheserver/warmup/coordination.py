"""A warm-up by all servers of a set. Server 0, the coordinator, makes the lists; every server warms up its own.

Every wait is bounded. A server without heartbeats counts as dead: the others fail their jobs, and the next coordinator
removes the remains.
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, Final

from cacheserver.config import WarmupTimes
from cacheserver.errors import JobFailed
from cacheserver.files.paths import existing
from cacheserver.files.threads import Stop, in_thread, run_with_background
from cacheserver.options import Progress, WarmupRequest
from cacheserver.warmup.file_lists import (
    ListEntry,
    SplitResult,
    batches,
    copy_lines,
    count_lines,
    listed_files,
    regular_files,
    split,
)
from cacheserver.warmup.rendezvous import (
    DIRECTORY_NAME,
    FailureDetector,
    Rendezvous,
    beats,
    discard,
    is_split,
    present_names,
    sweep,
    with_prefix,
)
from cacheserver.warmup.whole_directories import whole_directories

COORDINATOR: Final = 0  # the server that a StatefulSet starts first and removes last
# Files for one run of juicefs: as many paths as it sends to the mount at once. What a run has done is known at its end.
_BATCH: Final = 10_240
_ENDED: Final = "the warm-up ended before this server had done its part"

log = logging.getLogger(__name__)

WarmList = Callable[[Path], Awaitable[None]]


class Warmup:
    """The part of one server in one warm-up. `warm` fills this server's cache with the files of a list."""

    def __init__(
        self,
        data_dir: Path,
        server: int,
        options: WarmupRequest,
        job: str,
        times: WarmupTimes,
        warm: WarmList,
        scratch: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not 0 <= server < options.partitions:
            raise JobFailed(f"this is server {server}, and the warm-up is for servers 0 to {options.partitions - 1}")
        self._data_dir = data_dir
        self._server = server
        self._options = options
        self._job = job
        self._times = times
        self._warm = warm
        self._scratch = scratch
        self._progress = progress or Progress()

    async def run(self) -> str:
        """Run this server's part and return a message about its success.

        Raises:
            JobFailed: this server or the warm-up as a whole has failed.
        """
        rendezvous = await (self._begin() if self._server == COORDINATOR else self._join())
        try:
            part = self._coordinate(rendezvous) if self._server == COORDINATOR else self._work(rendezvous)
            return await run_with_background(self._beat(rendezvous), part)
        # Also on cancellation: the others would otherwise wait until this server counts as dead.
        except BaseException as error:
            rendezvous.failed(str(error) if isinstance(error, JobFailed) else "it was stopped")
            raise
        finally:
            if self._server == COORDINATOR:
                rendezvous.end()
            rendezvous.close()

    async def _beat(self, rendezvous: Rendezvous) -> None:
        """Send heartbeats until the run ends, then fail, since no coordinator waits for this server any more."""
        while True:
            await asyncio.sleep(self._times.beat)
            try:
                await in_thread(lambda _: rendezvous.beat())
            except FileNotFoundError:
                raise JobFailed(_ENDED) from None
            except OSError as error:  # the next one may succeed
                log.warning("a heartbeat of the warm-up %s cannot be written: %s", self._job, error.strerror)

    # The coordinator.

    async def _begin(self) -> Rendezvous:
        """Start a run. Remove the run of a dead coordinator first; fail if there is a live one."""
        await in_thread(lambda _: self._check_paths())
        while True:
            rendezvous = await in_thread(lambda _: Rendezvous.begin(self._data_dir, self._job, self._server))
            if rendezvous is not None:
                await in_thread(lambda _: sweep(self._data_dir))
                return rendezvous
            await self._wait_for_death()

    def _check_paths(self) -> None:
        for path in (*self._options.paths, *([self._options.file] if self._options.file else [])):
            existing(self._data_dir, path)

    async def _wait_for_death(self) -> None:
        """Return when the existing run has been removed, by its coordinator or, if that is dead, here.

        Raises:
            JobFailed: its coordinator sends heartbeats.
        """
        detector = self._detector()
        first: int | None = None
        while (names := await in_thread(lambda _: present_names(self._data_dir))) is not None:
            last = beats(names).get(COORDINATOR, -1)
            first = last if first is None else first
            if last != first:
                raise JobFailed(f"another warm-up is under way in {self._data_dir / DIRECTORY_NAME}")
            if detector.silent(names, [COORDINATOR]):
                await in_thread(lambda _: discard(self._data_dir, "silent"))
                return
            await asyncio.sleep(self._times.poll)

    async def _coordinate(self, rendezvous: Rendezvous) -> str:
        servers = [COORDINATOR, *sorted(await self._wait_for_workers(rendezvous))]
        lists = await in_thread(partial(self._split, rendezvous, servers))
        await in_thread(lambda _: rendezvous.publish_lists(servers))
        await self._warm_list(rendezvous, lists.sizes if len(servers) == 1 else None)
        await self._all_done(rendezvous, set(servers) - {COORDINATOR})
        absent = sorted(set(range(self._options.partitions)) - set(servers))
        return "; ".join(
            [
                f"{sum(lists.counts.values())} files on {len(servers)} servers",
                *([f"servers that did not come: {', '.join(map(str, absent))}"] if absent else []),
                *([f"left out, names that juicefs warmup cannot take: {lists.skipped}"] if lists.skipped.count else []),
            ]
        )

    async def _wait_for_workers(self, rendezvous: Rendezvous) -> set[int]:
        """Return the workers that joined in time and are still alive."""
        wanted = set(range(1, self._options.partitions))
        detector, deadline = self._detector(), self._now() + self._times.workers
        while True:
            names = await in_thread(lambda _: rendezvous.names())
            joined = with_prefix(names, "worker") & wanted
            joined -= detector.silent(names, joined) | with_prefix(names, "failed")
            if joined == wanted or self._now() > deadline:
                return joined
            await asyncio.sleep(self._times.poll)

    def _split(self, rendezvous: Rendezvous, servers: list[int], stop: Stop) -> SplitResult:
        at_random = self._options.strategyName == "random"
        listed = self._list_entries(stop, alone=len(servers) == 1)
        return split(listed, self._data_dir, rendezvous.descriptor, servers, at_random=at_random)

    def _list_entries(self, stop: Stop, *, alone: bool) -> Iterator[ListEntry]:
        if self._options.file:
            yield from listed_files(existing(self._data_dir, self._options.file), self._data_dir, stop)
            return
        walk = whole_directories if alone else regular_files
        for path in self._options.paths or (str(self._data_dir),):
            yield from walk(existing(self._data_dir, path), self._data_dir, stop)

    async def _all_done(self, rendezvous: Rendezvous, workers: set[int]) -> None:
        """Wait for the workers as long as they are alive, since a warm-up may take hours."""
        detector = self._detector()
        while True:
            names = await in_thread(lambda _: rendezvous.names())
            waited_for = workers - with_prefix(names, "done")
            if failed := sorted(waited_for & with_prefix(names, "failed")):
                raise JobFailed(f"server {failed[0]} failed: {rendezvous.failure(failed[0])}")
            if silent := sorted(detector.silent(names, waited_for)):
                raise JobFailed(f"server {silent[0]} fell silent during the warm-up")
            if not waited_for:
                return
            await asyncio.sleep(self._times.poll)

    # The workers.

    async def _join(self) -> Rendezvous:
        deadline = self._now() + self._times.directory
        while self._now() <= deadline:
            with contextlib.suppress(OSError):  # it was removed or replaced between two steps
                if rendezvous := await in_thread(lambda _: Rendezvous.join(self._data_dir, self._job, self._server)):
                    return rendezvous
            await asyncio.sleep(self._times.poll)
        raise JobFailed(f"server 0 did not begin this warm-up within {self._times.directory:g} seconds")

    async def _work(self, rendezvous: Rendezvous) -> str:
        await self._wait_for_list(rendezvous)
        await self._warm_list(rendezvous)
        try:
            rendezvous.put(f"done.{self._server}")
        except OSError:
            raise JobFailed(_ENDED) from None
        return f"{self._progress.files_done} files on this server"

    async def _wait_for_list(self, rendezvous: Rendezvous) -> None:
        detector, deadline = self._detector(), self._now() + self._times.lists
        while self._now() <= deadline:
            if (names := await in_thread(lambda _: rendezvous.current_names())) is None:
                raise JobFailed("the warm-up ended before this server got its list")
            if self._server in with_prefix(names, "file"):
                return
            if is_split(names):
                raise JobFailed("this server came when the files had been shared out already")
            if detector.silent(names, [COORDINATOR]):
                raise JobFailed("server 0 fell silent during the warm-up")
            await asyncio.sleep(self._times.poll)
        raise JobFailed(f"server 0 made no list within {self._times.lists:g} seconds")

    # Both.

    async def _warm_list(self, rendezvous: Rendezvous, sizes: Sequence[int] | None = None) -> None:
        """Warm up the list in batches, which bounds the memory of juicefs, and count the files of each finished one.

        `sizes` has the number of files of each line; without it, each line is a file.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch) as directory, self._open_list(rendezvous) as lines:
            batch = Path(directory, "batch")
            total = await in_thread(lambda _: count_lines(lines))
            self._progress.files_done, self._progress.files_total = 0, sum(sizes) if sizes else total
            for count, files in batches(sizes or repeat(1, total), _BATCH):
                await in_thread(partial(self._copy, lines, batch, count))
                await self._warm(batch)
                self._progress.add(files)

    def _copy(self, lines: BinaryIO, batch: Path, count: int, _: Stop) -> None:
        copy_lines(lines, self._data_dir, batch, count)

    def _open_list(self, rendezvous: Rendezvous) -> BinaryIO:
        try:
            return rendezvous.open_list()
        except OSError:
            raise JobFailed(_ENDED) from None

    def _detector(self) -> FailureDetector:
        return FailureDetector(self._now, self._times.silence)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
