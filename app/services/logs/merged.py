"""The logs of several replicas of a job in one stream.

    job changes ─▶ replicas, attempts ─▶ one reader for each log ─▶ bounded channel ─▶ one client

Readers wait while the channel is full, so a client that reads slowly slows down the reading from the cluster. The
channel has the lines in the order of their times, or of their arrival if the logs are followed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import TaskGroup, rounds
from app.base.offload import offload
from app.db.jobs.replicas import ReplicaFilter
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.errors import NotFound, Unavailable
from app.domain.plan import Rank
from app.domain.status.log_choice import default_attempt, has_log
from app.domain.vocabulary import Evidence, ReplicaPhase
from app.fairness.share import next_slice
from app.services.logs.channels import ArrivalOrder, LineChannel, TimeOrder
from app.services.logs.containers import LogRequest, container_of
from app.services.logs.lines import LineSplitter, TimedLine
from app.services.logs.opening import Logs, LogStream
from app.services.logs.order import MergedLine
from app.services.logs.progress import LogProgress
from app.services.logs.selecting import EVERYTHING, LineSelection
from app.services.logs.text import TextLog
from app.services.logs.times import nanoseconds
from app.services.reading.jobs import JobReader, ReplicaHistory
from app.services.reading.objects import Address
from app.services.watching.positions import Interest
from app.services.watching.watcher import Watcher

_STARTED: Final = frozenset({ReplicaPhase.RUNNING, ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED})
MOST_REPLICAS: Final = 64
"""The most replicas whose logs are merged. Each log may use a connection to the API server."""
# Bytes of a log that become lines at once, which take several times as much memory.
_SLICE: Final = 8 * 1024
# Seconds between two reads of the replicas, however often the job changes, and without a change.
_INTERVAL: Final = 0.5
_LONGEST_INTERVAL: Final = 10.0
# Before a followed log is opened again: the cluster may know a container a moment before its log. Longer after each
# attempt without a new line.
_AGAIN: Final = ExponentialBackoff(first=1.0, longest=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRequest:
    """The requested logs, of all tasks or of one. `tail_lines` and `since` limit only the logs at the beginning.

    `all_attempts` adds the logs of earlier attempts, and `selection` limits the lines of all of them.
    """

    uid: UUID
    namespace: str
    task: str | None = None
    container: str | None = None
    follow: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    all_attempts: bool = False
    selection: LineSelection = EVERYTHING


@dataclass(frozen=True, slots=True)
class SelectedReplicas:
    """The replicas whose logs are read. `left_out` are the first and the last rank of the others, by task."""

    replicas: Sequence[ReplicaHistory]
    left_out: Mapping[str, tuple[int, int]]


class MergedLogs:
    """Opens merged logs."""

    def __init__(self, reading: JobReader, logs: Logs, watcher: Watcher) -> None:
        self._reading = reading
        self._logs = logs
        self._watcher = watcher

    async def open(self, request: MergedRequest, reserve: Callable[[int], bool]) -> "MergedLog":
        """Open the logs of the replicas with the lowest ranks.

        Args:
            request: what is requested.
            reserve: reserves room for this number of open logs in place of the number before, if there is room.

        Raises:
            NotFound: no replica of the job has started, and the log is not followed.
        """
        merged = MergedLog(self._reading, self._logs, self._watcher, request, reserve)
        await merged.select()
        if not merged.selection.replicas and not request.follow:
            raise NotFound("none of the replicas of the job has started: there is no log yet", code="NoLog")
        return merged


@dataclass(slots=True)
class _Attempts:
    """The attempts of a replica: the last one whose log is read, and a lock that keeps their logs in order."""

    last: int
    in_order: asyncio.Lock = field(default_factory=asyncio.Lock)


class MergedLog:
    """One open merged log. `selection` is current until `batches` begins."""

    def __init__(
        self,
        reading: JobReader,
        logs: Logs,
        watcher: Watcher,
        request: MergedRequest,
        reserve: Callable[[int], bool],
    ) -> None:
        self._reading = reading
        self._logs = logs
        self._watcher = watcher
        self._request = request
        self._reserve = reserve
        self._reserved = 1
        self._known: dict[Rank, _Attempts] = {}
        self._is_first = True
        self.channel: LineChannel = ArrivalOrder() if request.follow else TimeOrder()
        self.selection = SelectedReplicas((), {})

    async def select(self) -> None:
        """Read the replicas, and select those with the lowest ranks for which there is room."""
        uid, task = self._request.uid, self._request.task
        sizes = await self._reading.task_sizes(uid)
        if task is not None:
            sizes = {name: size for name, size in sizes.items() if name == task}
        found: list[ReplicaHistory] = []
        for name in sizes:
            found += await self._reading.replicas(uid, ReplicaFilter(task=name), start=0, limit=MOST_REPLICAS)
        found.sort(key=lambda story: (story.stored.replica.key.rank, story.stored.replica.key.task))
        chosen = found[: self._room(min(len(found), MOST_REPLICAS))]
        left_out: dict[str, tuple[int, int]] = {}
        for name, size in sizes.items():
            first = sum(story.stored.replica.key.task == name for story in chosen)
            if first < size:
                left_out[name] = (first, size - 1)
        self.selection = SelectedReplicas(chosen, left_out)

    def _room(self, wanted: int) -> int:
        """Reserve room for this number of logs, or for as many as the limits permit. Return how many may be open."""
        more = next((count for count in range(wanted, self._reserved, -1) if self._reserve(count)), None)
        self._reserved = more or self._reserved
        return self._reserved

    async def batches(self) -> AsyncGenerator[Sequence[MergedLine], None]:
        """Yield the lines of all logs in the order of the channel. The lines of a replica are in order."""
        async with TaskGroup() as group:
            reading = group.create_task(self._read_all())
            try:
                async with aclosing(self.channel.batches()) as batches:
                    async for batch in batches:
                        yield batch
            # The TaskGroup would wrap it, and `aclose` would raise the group.
            except GeneratorExit:
                return
            finally:
                reading.cancel()

    async def _read_all(self) -> None:
        """Read all logs, and end the channel. An error passes through the channel, so that the client gets it."""
        outcome: Exception | None = None
        try:
            async with TaskGroup() as readers:
                await self._follow_job(readers)
        except Exception as error:  # noqa: BLE001 - raised again by `batches`
            outcome = error
        await self.channel.end(outcome)

    async def _follow_job(self, readers: TaskGroup) -> None:
        """Start a reader for each attempt, until the job has ended or, without `follow`, once."""
        with self._watcher.waiting(Interest(job_uid=self._request.uid)) as waiter:
            for _ in rounds():
                with suppress(DatabaseUnavailable):
                    # Before the replicas: those of a job that has ended are final.
                    row = await self._reading.row(Address(uid=self._request.uid))
                    if not self._is_first:
                        await self.select()
                    for story in self.selection.replicas:
                        self._start_readers(story, readers, has_ended=row.has_ended)
                    self._is_first = False
                    if row.has_ended or not self._request.follow:
                        self.channel.complete()
                        return
                await asyncio.sleep(_INTERVAL)
                await waiter.wait(_LONGEST_INTERVAL)

    def _start_readers(self, story: ReplicaHistory, readers: TaskGroup, *, has_ended: bool) -> None:
        """Start readers for attempts that have none: first for the newest one with a log, and then for later ones."""
        key, current = story.stored.replica.key, story.stored.replica.attempt
        if key not in self._known:
            shown = default_attempt(story.attempts, self._request.container)
            is_newest_only = self._is_first and not self._request.all_attempts
            self._known[key] = _Attempts(shown.number - 1 if is_newest_only else 0)
        known = self._known[key]
        has_begun = has_ended or current.phase in _STARTED or has_log(current, self._request.container)
        newest = current.number if has_begun else current.number - 1
        request = self._request if self._is_first else replace(self._request, tail_lines=None, since=None)
        for number in range(known.last + 1, newest + 1):
            self.channel.add_reader(key)
            readers.create_task(self._read_to_end(key, number, request, known.in_order))
        known.last = max(known.last, newest)

    async def _read_to_end(self, key: Rank, number: int, request: MergedRequest, in_order: asyncio.Lock) -> None:
        try:
            await self._read_attempt(key, number, request, in_order)
        finally:
            self.channel.remove_reader(key)

    async def _read_attempt(self, key: Rank, number: int, request: MergedRequest, in_order: asyncio.Lock) -> None:
        """Pass on the log of an attempt, after those of the earlier ones.

        A followed log is opened again until the attempt has ended: the cluster may have the log a moment later than the
        container, and a connection may end before the log does.
        """
        progress = LogProgress(from_start=request.tail_lines is None and request.since is None)
        is_reported, vain = False, 0
        async with in_order:
            for _ in rounds():
                before = progress.read
                try:
                    if await self._read_once(key, number, request, progress) or await self._has_ended(key, number):
                        return
                except Unavailable as error:
                    if not is_reported:
                        await self._pass_on(key, number, [TimedLine("", _notice(error))])
                    is_reported = True
                if not request.follow:
                    return
                # The container may have ended long before its pod, for example beside a sidecar.
                vain = 1 if progress.read != before else vain + 1
                await asyncio.sleep(_AGAIN.delay(vain))

    async def _read_once(self, key: Rank, number: int, request: MergedRequest, progress: LogProgress) -> bool:
        """Pass on the log from the last line that was read. Return whether nothing follows, as far as is known now."""
        # The replica is read each time, because a pod of this name may meanwhile belong to a later attempt.
        story = await self._story(key)
        container = None if story is None else container_of(story, number, request.container)
        if story is None or container is None:
            return True
        selection = request.selection
        if progress.since is not None:
            selection = replace(selection, since=max(nanoseconds(progress.since), selection.since or 0))
        log_request = LogRequest(
            namespace=request.namespace,
            pod=story.stored.pod_name or "",
            container=container,
            follow=request.follow,
            tail_lines=request.tail_lines if progress.since is None else None,
            since=progress.since or request.since,
            timestamps=True,
            selection=selection,
        )
        try:
            log = await self._logs.open(request.uid, story, number, log_request)
            await self._copy(key, number, log, progress)
        except NotFound:
            return False
        return not log.is_live

    async def _has_ended(self, key: Rank, number: int) -> bool:
        """Return whether the attempt has ended, and its log is stored or known to be unavailable."""
        story = await self._story(key)
        if story is None or story.stored.replica.attempt.number != number:
            return True
        attempt = story.stored.replica.attempt
        return attempt.outcome is not None and (attempt.evidence is not Evidence.NONE or attempt.pod_uid is None)

    async def _story(self, key: Rank) -> ReplicaHistory | None:
        where = ReplicaFilter(task=key.task, rank=key.rank)
        return next(iter(await self._reading.replicas(self._request.uid, where, start=0, limit=1)), None)

    async def _copy(self, key: Rank, number: int, log: LogStream, progress: LogProgress) -> None:
        text = TextLog(has_times=True)
        if log.source == "stored":
            async with aclosing(log.parts) as parts:
                stored = b"".join([piece async for part in parts for piece in text.render(part)])
            # It compares up to 128 KiB byte by byte, which takes some 50 ms.
            lines = await offload(progress.new_stored_lines, stored, is_whole=not log.truncated)
            await self._pass_on(key, number, lines)
            return
        splitter = LineSplitter()
        progress.begin()
        async with aclosing(log.parts) as parts:
            async for part in parts:
                for piece in text.render(part):
                    for begin in range(0, len(piece), _SLICE):
                        await next_slice()
                        received = splitter.feed(piece[begin : begin + _SLICE])
                        await self._pass_on(key, number, progress.new_lines(received))
        await self._pass_on(key, number, progress.new_lines(splitter.end()))

    async def _pass_on(self, key: Rank, number: int, lines: Sequence[TimedLine]) -> None:
        if lines:
            await self.channel.put(key, [MergedLine(key, number, line.at, line.text) for line in lines])


def _notice(error: Unavailable) -> bytes:
    return f"[jobgate] the log is cut off here: {error.message}".encode()
