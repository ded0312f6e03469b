"""The command `logs`: one log, or those of several replicas at once."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from jobgate.cli.arguments import JobName
from jobgate.cli.durations import seconds
from jobgate.cli.log_lines import Source, colour, parsed, prefix
from jobgate.cli.log_streams import LogFollower, Wanted
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    gateway,
    one_of_many,
    run_async,
)
from jobgate.cli.printing import LogOutput, report, say
from jobgate.cli.targets import TargetError, job_named
from jobgate.client import NotFoundError
from jobgate.client.calls import LogOptions, Ref
from jobgate.client.types import Job, Replica

if TYPE_CHECKING:
    from jobgate.client import AsyncClient, Client

# Replicas that are followed at once. The gateway limits the open logs of all its clients together.
_MOST: Final = 40


def logs(  # noqa: PLR0913, PLR0917 - one argument for each option
    name: JobName,
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
    raw: Annotated[bool, typer.Option("--raw", help="Also control characters, if the output is no terminal.")] = False,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Print the log of a replica, or with --all those of all.

    The default is rank 0 in its current attempt. With -f, it continues with the
    next attempt after a restart, and ends with the job. With -o json, each line
    is an object.

    Examples: jobgate logs tour --task worker --rank 1; jobgate logs tour --all -f --since 5m
    """
    options = LogOptions(
        task=task,
        rank=rank,
        attempt=attempt,
        container=container,
        follow=follow,
        tail=tail,
        since=since,
        timestamps=timestamps,
    )
    printed = LogOutput(is_raw=raw)
    with gateway(server, namespace, context) as client:
        job = job_named(name, "logs")
        is_single = not every and (not follow or attempt is not None)
        if is_single and output not in STRUCTURED:
            for line in client.jobs.logs(job, **options):
                printed.write(line)
            return
        replicas = [one for one in client.jobs.replicas(job, task=task) if rank in {None, one.rank} and not one.leaving]
        printer = _Printer(replicas, output, printed, has_prefix=every, has_times=timestamps)
        if not every:
            options |= LogOptions(task=_only_task(name, task, replicas), rank=rank or 0)
        if is_single or not follow:
            _print_each(client, job, _chosen(name, replicas, options), options, printer)
            return
    run_async(server, namespace, context, lambda other: _follow(other, job, _wanted(options), printer))


def _wanted(options: LogOptions) -> Wanted:
    return Wanted(
        task=options.get("task"),
        rank=options.get("rank"),
        container=options.get("container"),
        tail=options.get("tail"),
        since=options.get("since"),
        timestamps=options.get("timestamps", False),
    )


def _chosen(name: str, replicas: Sequence[Replica], options: LogOptions) -> Sequence[Replica]:
    """Return the replicas whose logs are printed.

    Raises:
        TargetError: there are none.
    """
    found = [one for one in replicas if options.get("rank") in {None, one.rank}]
    if not found:
        raise TargetError(f"logs {name}: the job has no such replica; `jobgate describe {name}` lists them")
    return found


def _only_task(name: str, task: str | None, replicas: Sequence[Replica]) -> str | None:
    tasks = sorted({one.task for one in replicas})
    if task is None and len(tasks) > 1:
        raise TargetError(f"logs {name}: the job has several tasks; accepted: --task {' or '.join(tasks)}, or --all")
    return task


def _print_each(
    client: "Client", job: str, replicas: Sequence[Replica], options: LogOptions, printer: "_Printer"
) -> None:
    """Print the logs of replicas one after the other.

    A merged log of the gateway would mix them, and leave out all replicas after the 64th.
    """
    for one in replicas:
        source = Source(task=one.task, rank=one.rank, attempt=options.get("attempt") or one.attempt)
        try:
            for line in client.jobs.logs(job, **(options | LogOptions(task=one.task, rank=one.rank))):
                printer.emit(source, line)
        except NotFoundError as error:
            if len(replicas) == 1:
                raise
            printer.report(f"{source.label}: {error.problem.detail}")


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
    await LogFollower(client=client, wanted=wanted, emit=printer.emit, report=printer.report, most=_MOST).run(job)


class _Printer:
    """Prints lines on standard output, with the prefix of their replica if `has_prefix`; colours are for terminals.

    A structured output has one object for each line, with the time of the line if `has_times`.
    """

    def __init__(
        self, replicas: Sequence[Replica], output: Output, lines: LogOutput, *, has_prefix: bool, has_times: bool
    ) -> None:
        self._tasks = sorted({one.task for one in replicas})
        self._output = output
        self._lines = lines
        self._has_prefix = has_prefix
        self._has_times = has_times
        self._is_coloured = lines.is_terminal and "NO_COLOR" not in os.environ
        # With room for the attempt of a restart.
        self._width = max((len(f"{one.task}[{one.rank}] #2") for one in replicas), default=0)

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
            return place | {"line": line}
        timed = parsed(line)
        return place | {"time": timed.time or None, "line": timed.text}

    def report(self, text: str) -> None:
        report(text)
