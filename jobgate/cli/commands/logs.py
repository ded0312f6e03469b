"""The command `logs`: one log, or those of several replicas at once."""

import asyncio
import contextlib
import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import typer

from jobgate.cli.arguments import LogName
from jobgate.cli.durations import moment, seconds
from jobgate.cli.exits import Exit
from jobgate.cli.logs.lines import Source, colour, parse, prefix
from jobgate.cli.logs.places import LogPlace, places
from jobgate.cli.logs.streams import LogFollower, Wanted
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    gateway,
    one_of_many,
    refuse_name,
    run_async,
)
from jobgate.cli.printing import LogOutput, report, say
from jobgate.cli.selection import Mine, Phases, Selection, Selector, select_jobs
from jobgate.cli.targets import TargetError
from jobgate.client import NotFoundError, ProblemError
from jobgate.client.calls import Ref
from jobgate.client.log_bytes import readable
from jobgate.client.log_options import LogOptions
from jobgate.client.types import Job, Replica

if TYPE_CHECKING:
    from jobgate.client import AsyncClient, Client

# Replicas that are followed at once. The gateway limits the open logs of all its clients together.
_MOST: Final = 40
_T = TypeVar("_T")
_Previous = Annotated[
    bool, typer.Option("-p", "--previous", help="Of the run before a restart in place.", show_default=False)
]

_SinceTime = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Lines since a time.", show_default=False)
]
_UntilTime = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Lines before a time.", show_default=False)
]


def logs(  # noqa: PLR0913, PLR0917 - one argument for each option
    name: LogName = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print lines as they arrive, until it ends.")] = False,
    every: Annotated[bool, typer.Option("-a", "--all", help="Of all replicas, with prefixes.")] = False,
    task: Annotated[str | None, typer.Option(help="Task.", show_default=False)] = None,
    rank: Annotated[int | None, typer.Option(help="Rank of the replica.", show_default=False)] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt.", show_default=False)] = None,
    container: Annotated[str | None, typer.Option("-c", "--container", help="Container.", show_default=False)] = None,
    tail: Annotated[int | None, typer.Option(help="Only the last lines.", show_default=False)] = None,
    since: Annotated[
        float | None, typer.Option(parser=seconds, metavar="DURATION", help="Largest age.", show_default=False)
    ] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Show the time of each line.")] = False,
    since_time: _SinceTime = None,
    until_time: _UntilTime = None,
    grep: Annotated[str | None, typer.Option(metavar="REGEX", help="Matching lines.", show_default=False)] = None,
    previous: _Previous = False,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Download it whole.", show_default=False)] = None,
    selector: Selector = None,
    phase: Phases = None,
    mine: Mine = False,
    raw: Annotated[bool, typer.Option("--raw", help="Also control characters, into a file.")] = False,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Print the log of a replica, or those of all.

    Of a job with one task, the default is rank 0; of JOB/TASK, of a job with
    several tasks, and with --all, all replicas. Without --attempt, it is the
    newest that has a log. -f goes on with the next attempt, until the job ends.
    With -o json, each line is an object. Filters select several jobs.

    --save writes one whole log, also through lost connections. REGEX is one of
    RE2: (?i) ignores case.

    Examples: jobgate logs tour/worker/1; jobgate logs tour --all -f --since 5m
    """
    options = LogOptions(attempt=attempt, container=container, follow=follow, tail=tail, since=since)
    options |= LogOptions(timestamps=timestamps, previous=previous)
    options |= LogOptions(since_time=since_time, until_time=until_time, search=grep)
    refuse_name(output)
    printed = LogOutput(is_raw=raw)
    selection = Selection(selector=selector, phases=phase, mine=mine)
    with gateway(server, namespace, context) as client:
        names = select_jobs(client, [] if name is None else [name], selection, "logs")
        if selection.is_given:
            _print_jobs(client, names, options, output, printed)
            return
        if save is not None:
            _save(client, names[0], task, rank, options, save)
            return
        reading = _read(client, names[0], task, rank, options, output, printed, every=every)
    if (follower := reading.follower) is not None:
        run_async(server, namespace, context, lambda other: _follow(other, reading.job, *follower))


def _read(
    client: "Client",
    name: str,
    task: str | None,
    rank: int | None,
    options: LogOptions,
    output: Output,
    printed: LogOutput,
    *,
    every: bool,
) -> "_Reading":
    """Print the logs at the first place that the name can stand for, or find out what is to be followed."""

    def read(place: LogPlace) -> _Reading:
        narrowed = place.narrow(task, rank)
        is_task = place.task is not None and narrowed.rank is None
        reading = _Reading(client, name, narrowed, options, output, printed, every=every, is_task=is_task)
        reading.run()
        return reading

    return _at_place(client, name, read)


def _at_place(client: "Client", name: str, visit: Callable[[LogPlace], _T]) -> _T:
    """Return what `visit` does at the first place that the name can stand for."""
    missing: NotFoundError | None = None
    for place in places(client, name):
        try:
            return visit(place)
        except NotFoundError as error:
            if error.code == "NoLog":
                raise
            missing = missing or error
    raise missing or TargetError(f"logs {name}: there is no such job")


def _save(client: "Client", name: str, task: str | None, rank: int | None, options: LogOptions, file: Path) -> None:
    """Write the bytes of one log to a file."""
    of_part = ("follow", "tail", "since", "since_time", "until_time", "search", "timestamps")
    if any(options.get(option) not in {None, False} for option in of_part):
        raise TargetError("logs --save: accepted: options that select a log, such as --rank; it writes all of it")

    def save(place: LogPlace) -> None:
        narrowed = place.narrow(task, rank)
        chosen = options | LogOptions(task=narrowed.task, rank=narrowed.rank)
        # Before the file, which stays as it is if there is no log.
        with client.jobs.open_log(narrowed.job, **chosen | LogOptions(tail=0)) as log:
            missing, is_truncated = log.missing, log.is_truncated
        with file.open("wb") as opened:
            written = client.jobs.save_log(narrowed.job, opened, **chosen)
        report(f"{file}: {written} bytes")
        if missing or is_truncated:
            report(f"{file} is not the whole log: {missing or 'only its end is stored'}")

    _at_place(client, name, save)


def _print_jobs(
    client: "Client", names: Sequence[str], options: LogOptions, output: Output, printed: LogOutput
) -> None:
    """Print the logs of all replicas of several jobs, each job after its name, as `tail` does with files."""
    if options["follow"]:
        raise TargetError("logs -f: accepted: one job; `jobgate list` shows their names")
    for name in names:
        if output not in STRUCTURED:
            say(f"==> {name} <==")
        try:
            _read(client, name, None, None, options, output, printed, every=True)
        except NotFoundError as error:
            report(f"{name}: {error.problem.detail}")


class _Placed(NamedTuple):
    """A line of a log, and its place in time; lines without times have the place of the line before them."""

    place: str
    source: Source
    line: str


class _Reading:
    """Prints the logs at a place, or finds out what is to be followed: `follower` is then set.

    `is_task` says that the place is a task, so that all its replicas are shown.

    Raises:
        NotFoundError: there is no such job, or it has no log.
    """

    def __init__(
        self,
        client: "Client",
        name: str,
        place: LogPlace,
        options: LogOptions,
        output: Output,
        printed: LogOutput,
        *,
        every: bool,
        is_task: bool,
    ) -> None:
        self._client = client
        self._name = name
        self._place = place
        self._options = options | LogOptions(task=place.task, rank=place.rank)
        self._output = output
        self._printed = printed
        self._every = every
        self._is_task = is_task
        self._is_incomplete = False
        self.job = place.job
        self.follower: tuple[Wanted, _Printer] | None = None

    def run(self) -> None:
        if self._options["follow"] and self._options["previous"]:
            raise TargetError("logs: the log of a previous run does not grow; accepted: --follow or --previous")
        is_single = not (self._every or self._is_task) and (
            not self._options["follow"] or self._options["attempt"] is not None
        )
        if is_single and self._output not in STRUCTURED:
            try:
                for placed in self._lines(None):
                    self._printed.write(placed.line)
            except ProblemError as error:
                if not _needs_task(error):
                    raise
            else:
                return
        replicas = self._replicas()
        if self._is_task and len(replicas) > 1:
            self._every = True
        elif not self._every and len({replica.task for replica in replicas}) == 1:
            self._options |= LogOptions(rank=self._place.rank or 0)
        else:
            self._every = True
        printer = self._printer(replicas)
        if is_single or not self._options["follow"]:
            self._print_each(
                [replica for replica in replicas if self._options["rank"] in {None, replica.rank}], printer
            )
        else:
            self.follower = _wanted_logs(self._options), printer

    def _replicas(self) -> Sequence[Replica]:
        task, rank = self._place.task, self._place.rank
        found = self._client.jobs.replicas(self._place.job, task=task)
        # A replica that left by a scale down has a log, which is shown if it is named.
        return [replica for replica in found if replica.rank == rank or (rank is None and not replica.leaving)]

    def _printer(self, replicas: Sequence[Replica]) -> "_Printer":
        has_times = self._options["timestamps"]
        return _Printer(replicas, self._output, self._printed, has_prefix=self._every, has_times=has_times)

    def _print_each(self, replicas: Sequence[Replica], printer: "_Printer") -> None:
        """Print the logs of replicas one after the other, or with times in the order of these.

        A merged log of the gateway would leave out all replicas after the 64th.
        """
        if not replicas:
            job = self._name.partition("/")[0]
            raise TargetError(f"logs {self._name}: the job has no such replica; `jobgate describe {job}` lists them")
        logs = [self._known_lines(replica, is_only=len(replicas) == 1) for replica in replicas]
        # A log that is merged keeps its connection open.
        is_merged = self._options["timestamps"] and len(logs) <= _MOST
        for placed in heapq.merge(*logs, key=itemgetter(0)) if is_merged else chain(*logs):
            printer.emit(placed.source, placed.line)
        if self._is_incomplete:
            raise typer.Exit(Exit.USAGE)

    def _known_lines(self, replica: Replica, *, is_only: bool) -> "Iterator[_Placed]":
        """Yield the lines of a replica. Report that they are missing, unless it is the only one."""
        source = Source(task=replica.task, rank=replica.rank, attempt=replica.attempt)
        try:
            yield from self._lines(source)
        except ProblemError as error:
            is_away = error.status == HTTPStatus.SERVICE_UNAVAILABLE
            if is_only or not (is_away or isinstance(error, NotFoundError)):
                raise
            report(source.about(error.problem.detail))
            self._is_incomplete |= is_away

    def _lines(self, source: Source | None) -> "Iterator[_Placed]":
        """Yield the lines of one log, and report what the user cannot see.

        That is that the log is an earlier one, or only the end of one.
        """
        options, tail = self._options, self._options["tail"]
        if source is not None:
            options |= LogOptions(task=source.task, rank=source.rank)
        with self._client.jobs.open_log(self._place.job, **options) as log:
            number = log.attempt or (source.attempt if source is not None else 1)
            shown = replace(source or Source(task="", rank=0, attempt=number), attempt=number)
            about = f"{shown.label}: " if source is not None else ""
            if options["attempt"] is None and log.newest_attempt is not None and number < log.newest_attempt:
                report(f"{about}this is the log of attempt {number}; attempt {log.newest_attempt} has none")
            count, place = 0, ""
            for line in log.lines:
                # The times of standard output and standard error differ a little from the order of the lines.
                place = max(place, parse(line).time) if options["timestamps"] else place
                yield _Placed(place, shown, line)
                count += 1
            if log.missing:
                report(f"{about}the log is not whole: {log.missing}")
            if log.is_truncated and (tail is None or count < tail):
                report(f"{about}earlier lines are missing: only the last {count} lines of the log are stored")


def _needs_task(error: ProblemError) -> bool:
    """Return whether the gateway refused a request because the job has several tasks."""
    return any(fault.pointer == "/query/task" and fault.code == "Required" for fault in error.errors)


def _wanted_logs(options: LogOptions) -> Wanted:
    return Wanted(
        task=options["task"],
        rank=options["rank"],
        container=options["container"],
        tail=options["tail"],
        since=options["since"],
        since_time=options["since_time"],
        search=options["search"],
        timestamps=options["timestamps"],
    )


async def follow_log(client: "AsyncClient", job: Job, longest: float | None) -> None:
    """Print the logs of all replicas of a new job until it ends, with prefixes if there are several.

    It returns without an error after `longest` seconds.
    """
    replicas = await client.jobs.replicas(job)
    printer = _Printer(replicas, Output.TEXT, LogOutput(), has_prefix=len(replicas) > 1, has_times=False)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(longest):
            await _follow(client, job, Wanted(), printer)


async def _follow(client: "AsyncClient", job: Ref, wanted: Wanted, printer: "_Printer") -> None:
    await LogFollower(client=client, wanted=wanted, emit=printer.emit, report=report, most=_MOST).run(job)


class _Printer:
    """Prints lines on standard output, with the prefix of their replica if `has_prefix`; colours are for terminals.

    A structured output has one object for each line, with the time of the line if `has_times`.
    """

    def __init__(
        self, replicas: Sequence[Replica], output: Output, lines: LogOutput, *, has_prefix: bool, has_times: bool
    ) -> None:
        self._tasks = sorted({replica.task for replica in replicas})
        self._output = output
        self._lines = lines
        self._has_prefix = has_prefix
        self._has_times = has_times
        self._is_coloured = lines.is_terminal and "NO_COLOR" not in os.environ
        # With room for the attempt of a restart.
        self._width = max((len(f"{replica.task}[{replica.rank}] #2") for replica in replicas), default=0)

    def emit(self, source: Source, line: str) -> None:
        if self._output in STRUCTURED:
            say(one_of_many(self._document(source, line), self._output))
            return
        shown = prefix(source, self._width) if self._has_prefix else ""
        if shown and self._is_coloured:
            shown = typer.style(shown, fg=colour(source, self._tasks))
        self._lines.write(line, prefix=shown)

    def _document(self, source: Source, line: str) -> dict[str, Any]:
        place: dict[str, Any] = {"task": source.task, "rank": source.rank, "attempt": source.attempt}
        if not self._has_times:
            return place | {"line": readable(line)}
        timed = parse(readable(line))
        return place | {"time": timed.time or None, "line": timed.text}
