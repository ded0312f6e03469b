"""A warm-up shared among the servers of a set: server 0 makes the lists, every server warms its own.

Every wait is bounded, and whoever falls silent is taken for dead: the others end their jobs as failed, and the next
coordinator clears the remains away.
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from app.cache_runtime.errors import JobFailed
from app.cache_runtime.file_lists import Listed, Split, listed_files, regular_files, split, take
from app.cache_runtime.meeting import (
    MEETING,
    Meeting,
    Pulse,
    beats,
    discard,
    is_split,
    present_names,
    sweep,
    with_prefix,
)
from app.cache_runtime.options import WarmupOptions
from app.cache_runtime.paths import existing
from app.cache_runtime.places import WarmupTimes
from app.cache_runtime.threads import Stop, beside, in_thread
from app.cache_runtime.whole_directories import whole_directories

COORDINATOR: Final = 0
_PART: Final = 100_000  # paths
_OVER: Final = "the warm-up ended before this server had done its part"

log = logging.getLogger(__name__)

WarmList = Callable[[Path], Awaitable[None]]


class Warmup:
    """One server's part in one warm-up; `warm` fills this server's cache with the files of a list."""

    def __init__(
        self,
        data_dir: Path,
        server: int,
        options: WarmupOptions,
        job: str,
        times: WarmupTimes,
        warm: WarmList,
        scratch: Path | None = None,
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

    async def run(self) -> str:
        """What there is to tell of its success."""
        meeting = await (self._begin() if self._server == COORDINATOR else self._join())
        try:
            part = self._coordinate(meeting) if self._server == COORDINATOR else self._work(meeting)
            return await beside(self._beat(meeting), part)
        except BaseException as error:
            meeting.failed(str(error) if isinstance(error, JobFailed) else "it was stopped")
            raise
        finally:
            if self._server == COORDINATOR:
                meeting.end()
            meeting.close()

    async def _beat(self, meeting: Meeting) -> None:
        """Until the run is over, which ends the work: its own part may take hours, and nobody waits for it."""
        while True:
            await asyncio.sleep(self._times.beat)
            try:
                await in_thread(lambda _: meeting.beat())
            except FileNotFoundError:
                raise JobFailed(_OVER) from None
            except OSError as error:  # it may go again with the next
                log.warning("a beat of the warm-up %s cannot be told: %s", self._job, error.strerror)

    # server 0

    async def _begin(self) -> Meeting:
        """What a dead coordinator left is cleared away; a living one is left in peace."""
        await in_thread(lambda _: self._check_paths())
        while True:
            meeting = await in_thread(lambda _: Meeting.begin(self._data_dir, self._job, self._server))
            if meeting is not None:
                await in_thread(lambda _: sweep(self._data_dir))
                return meeting
            await self._wait_for_death()

    def _check_paths(self) -> None:
        for path in (*self._options.paths, *([self._options.file] if self._options.file else [])):
            existing(self._data_dir, path)

    async def _wait_for_death(self) -> None:
        """Return once the run that is there has been removed, by its coordinator or by us."""
        pulse = self._pulse()
        first: int | None = None
        while (names := await in_thread(lambda _: present_names(self._data_dir))) is not None:
            last = beats(names).get(COORDINATOR, -1)
            first = last if first is None else first
            if last != first:
                raise JobFailed(f"another warm-up is under way in {self._data_dir / MEETING}")
            if pulse.look(names, [COORDINATOR]):
                await in_thread(lambda _: discard(self._data_dir, "silent"))
                return
            await asyncio.sleep(self._times.poll)

    async def _coordinate(self, meeting: Meeting) -> str:
        servers = [COORDINATOR, *sorted(await self._gathered(meeting))]
        made = await in_thread(partial(self._split, meeting, servers))
        await in_thread(lambda _: meeting.publish_lists(servers))
        await self._warm_list(meeting)
        await self._all_done(meeting, set(servers) - {COORDINATOR})
        absent = sorted(set(range(self._options.partitions)) - set(servers))
        return "; ".join(
            [
                f"{sum(made.counts.values())} files on {len(servers)} servers",
                *([f"servers that did not come: {', '.join(map(str, absent))}"] if absent else []),
                *([f"left out, names that juicefs warmup cannot take: {made.left_out}"] if made.left_out.count else []),
            ]
        )

    async def _gathered(self, meeting: Meeting) -> set[int]:
        """The workers that came in time; those that died since are not counted on."""
        wanted = set(range(1, self._options.partitions))
        pulse, deadline = self._pulse(), self._now() + self._times.workers
        while True:
            names = await in_thread(lambda _: meeting.names())
            come = with_prefix(names, "worker") & wanted
            come -= pulse.look(names, come) | with_prefix(names, "failed")
            if come == wanted or self._now() > deadline:
                return come
            await asyncio.sleep(self._times.poll)

    def _split(self, meeting: Meeting, servers: list[int], stop: Stop) -> Split:
        at_random = self._options.strategyName == "random"
        listed = self._listed(stop, alone=len(servers) == 1)
        return split(listed, self._data_dir, meeting.descriptor, servers, at_random=at_random)

    def _listed(self, stop: Stop, *, alone: bool) -> Iterator[Listed]:
        if self._options.file:
            yield from listed_files(existing(self._data_dir, self._options.file), self._data_dir, stop)
            return
        walk = whole_directories if alone else regular_files
        for path in self._options.paths or (str(self._data_dir),):
            yield from walk(existing(self._data_dir, path), self._data_dir, stop)

    async def _all_done(self, meeting: Meeting, workers: set[int]) -> None:
        """As long as they live: a warm-up may take hours."""
        pulse = self._pulse()
        while True:
            names = await in_thread(lambda _: meeting.names())
            waited_for = workers - with_prefix(names, "done")
            if failed := sorted(waited_for & with_prefix(names, "failed")):
                raise JobFailed(f"server {failed[0]} failed: {meeting.failure(failed[0])}")
            if silent := sorted(pulse.look(names, waited_for)):
                raise JobFailed(f"server {silent[0]} fell silent during the warm-up")
            if not waited_for:
                return
            await asyncio.sleep(self._times.poll)

    # the others

    async def _join(self) -> Meeting:
        deadline = self._now() + self._times.directory
        while self._now() <= deadline:
            with contextlib.suppress(OSError):  # it went away, or was replaced, between two steps
                if meeting := await in_thread(lambda _: Meeting.join(self._data_dir, self._job, self._server)):
                    return meeting
            await asyncio.sleep(self._times.poll)
        raise JobFailed(f"server 0 did not begin this warm-up within {self._times.directory:g} seconds")

    async def _work(self, meeting: Meeting) -> str:
        await self._own_list(meeting)
        count = await self._warm_list(meeting)
        try:
            meeting.put(f"done.{self._server}")
        except OSError:
            raise JobFailed(_OVER) from None
        return f"{count} files on this server"

    async def _own_list(self, meeting: Meeting) -> None:
        pulse, deadline = self._pulse(), self._now() + self._times.lists
        while self._now() <= deadline:
            if (names := await in_thread(lambda _: meeting.current_names())) is None:
                raise JobFailed("the warm-up ended before this server got its list")
            if self._server in with_prefix(names, "file"):
                return
            if is_split(names):
                raise JobFailed("this server came when the files had been shared out already")
            if pulse.look(names, [COORDINATOR]):
                raise JobFailed("server 0 fell silent during the warm-up")
            await asyncio.sleep(self._times.poll)
        raise JobFailed(f"server 0 made no list within {self._times.lists:g} seconds")

    # all

    async def _warm_list(self, meeting: Meeting) -> int:
        """Part by part, so that the program's memory is bounded as ours is."""
        total = 0
        with tempfile.TemporaryDirectory(dir=self._scratch) as directory, self._own_share(meeting) as share:
            part = Path(directory, "part")
            while count := await in_thread(lambda _: take(share, self._data_dir, part, _PART)):
                await self._warm(part)
                total += count
        return total

    def _own_share(self, meeting: Meeting) -> BinaryIO:
        try:
            return meeting.share()
        except OSError:
            raise JobFailed(_OVER) from None

    def _pulse(self) -> Pulse:
        return Pulse(self._now, self._times.silence)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
