"""Follows the logs of several replicas at once, each through its restarts and through lost connections."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from jobgate.cli.logs.lines import LogPosition, Source, is_cut_off, parse
from jobgate.cli.rendering.tables import status_line
from jobgate.client import (
    JobgateError,
    NotFoundError,
    OverloadedError,
    ProblemError,
    UnavailableError,
    UnreachableError,
)
from jobgate.client.asynchronous.logs import AsyncLog
from jobgate.client.calls import Ref
from jobgate.client.log_options import LogOptions
from jobgate.client.phases import ending_of
from jobgate.client.types import JobStatus, Replica

if TYPE_CHECKING:
    from jobgate.client import AsyncClient

# Phases in which a container has started, so that there is a log.
_STARTED: Final = frozenset({"Running", "Succeeded", "Failed"})
# Seconds before a log is opened again: after a lost connection, and while the cluster does not have it yet.
_AGAIN: Final = 1.0
# Tries to open a log before it is reported as missing. The cluster may know a container a moment before its log.
_TRIES: Final = 15
_TRANSIENT: Final = (UnreachableError, UnavailableError, OverloadedError)
Emit = Callable[[Source, str], None]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which logs are shown, and which part of them. `tail` and `since` apply to the attempts of the beginning."""

    task: str | None = None
    rank: int | None = None
    container: str | None = None
    tail: int | None = None
    since: float | None = None
    since_time: datetime | None = None
    search: str | None = None
    timestamps: bool = False

    def selects(self, replica: Replica) -> bool:
        return (self.task is None or replica.task == self.task) and (self.rank is None or replica.rank == self.rank)

    def options(self, source: Source) -> LogOptions:
        return LogOptions(
            task=source.task,
            rank=source.rank,
            attempt=source.attempt,
            container=self.container,
            tail=self.tail,
            since=self.since,
            since_time=self.since_time,
            search=self.search,
            follow=True,
            timestamps=True,
        )


@dataclass(slots=True, kw_only=True)
class LogFollower:
    """Prints the logs of a job as they grow, until it ends.

    Each attempt has its own request. A merged log of the gateway would need only one, but begins with the current
    attempts: an attempt that ended while the connection was lost would be missing.

    Args:
        emit: is called with each line.
        report: is called with what the user should know about the logs themselves.
        most: number of replicas whose logs are followed. The gateway and the cluster limit open logs.
    """

    client: "AsyncClient"
    wanted: Wanted
    emit: Emit
    report: Report
    most: int
    # The last attempt of each followed replica, and a lock that keeps its attempts in order.
    _last: dict[tuple[str, int], int] = field(default_factory=dict)
    _locks: dict[tuple[str, int], asyncio.Lock] = field(default_factory=dict)
    _is_cut: bool = False

    async def run(self, ref: Ref) -> None:
        """Follow the job. A log that was open when the job ended is read to its end."""
        is_first, waiting = True, ""
        async with asyncio.TaskGroup() as group:
            async for state in self.client.jobs.follow(ref):
                replicas = await self.client.jobs.replicas(state, task=self.wanted.task)
                for source in self._new(state, replicas, is_first=is_first):
                    wanted = self.wanted if is_first else replace(self.wanted, tail=None, since=None, since_time=None)
                    group.create_task(self._in_order(state, source, wanted))
                if not self._last and (line := status_line(state)) != waiting:
                    waiting = line
                    self.report(f"no log yet: {line}")
                is_first = False

    def _new(self, state: JobStatus, replicas: Sequence[Replica], *, is_first: bool) -> list[Source]:
        """Return the attempts whose logs are to be opened, and remember them.

        At first these are the newest ones with a log, later all that have come since, also those that have ended.
        """
        has_ended = ending_of(state.status.phase) is not None
        found: list[Source] = []
        for replica in replicas:
            if not self.wanted.selects(replica) or not self._has_room((replica.task, replica.rank)):
                continue
            newest = replica.attempt if replica.phase in _STARTED or has_ended else replica.attempt - 1
            shown = replica.log_attempt or replica.attempt
            oldest = self._last.get((replica.task, replica.rank), shown - 1 if is_first else 0) + 1
            if newest < oldest:
                continue
            self._last[replica.task, replica.rank] = newest
            found += [
                Source(task=replica.task, rank=replica.rank, attempt=number) for number in range(oldest, newest + 1)
            ]
        return found

    def _has_room(self, replica: tuple[str, int]) -> bool:
        if replica in self._last or len(self._last) < self.most:
            return True
        if not self._is_cut:
            self._is_cut = True
            self.report(f"only {self.most} replicas are followed; --task and --rank select others")
        return False

    async def _in_order(self, state: JobStatus, source: Source, wanted: Wanted) -> None:
        """Print the log when those of the earlier attempts of its replica have been printed."""
        async with self._locks.setdefault((source.task, source.rank), asyncio.Lock()):
            try:
                await _Stream(self, source, wanted).run(state)
            except JobgateError as error:
                self.report(source.about(error.problem.detail if isinstance(error, ProblemError) else str(error)))


class _Stream:
    """One log, which goes on after lost connections without repeated lines."""

    def __init__(self, follower: LogFollower, source: Source, wanted: Wanted) -> None:
        self._follower = follower
        self._source = source
        self._wanted = wanted
        is_part = (wanted.tail, wanted.since, wanted.since_time) != (None, None, None)
        self._position = LogPosition(from_start=not is_part)

    async def run(self, state: JobStatus) -> None:
        """Print the log to its end.

        Raises:
            JobgateError: there is no such log, or it could not be opened again.
        """
        tries = 0
        while True:
            try:
                async with self._follower.client.jobs.open_log(state, **self._options()) as log:
                    tries = 0
                    await self._print(log)
            except NotFoundError as error:
                tries += 1
                if error.code != "NoLog" or tries >= _TRIES or ending_of(state.status.phase) is not None:
                    raise
            except _TRANSIENT:
                tries += 1
                if tries >= _TRIES:
                    raise
            else:
                return
            await asyncio.sleep(_AGAIN)

    def _options(self) -> LogOptions:
        options = self._wanted.options(self._source)
        if (since := self._position.since) is not None:
            # The last line repeats. A duration until now would lose older lines that had not arrived yet.
            options |= {"tail": None, "since": None, "since_time": since}
        return options

    async def _print(self, log: AsyncLog) -> None:
        if log.is_truncated and self._wanted.tail is None:
            self._follower.report(f"{self._source.label}: the beginning of the log is missing")
        if not log.is_live and not log.is_kept:
            stored = [line async for line in log.lines]
            for line in self._position.unseen(stored, is_whole=not log.is_truncated):
                self._follower.emit(self._source, line)
            return
        self._position.opened()
        async for line in log.lines:
            one = parse(line)
            if is_cut_off(one):
                continue
            if not self._position.passes(one):
                continue
            self._follower.emit(self._source, line if self._wanted.timestamps else one.text)
