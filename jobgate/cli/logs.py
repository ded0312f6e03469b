"""The command `logs`: one log, or those of several replicas at once."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from jobgate.cli.log_lines import Source, colour, prefix
from jobgate.cli.log_streams import LogFollower, Wanted
from jobgate.cli.options import ContextName, Namespace, Server, gateway, run_async
from jobgate.cli.targets import TargetError, job_named
from jobgate.client import AsyncClient, Client, NotFoundError
from jobgate.client.calls import LogOptions
from jobgate.client.types import Replica

# Replicas that are followed at once. The gateway allows 50 open logs, for all its clients together.
_MOST: Final = 40


def logs(  # noqa: PLR0913, PLR0917 - one argument for each option
    name: Annotated[str, typer.Argument(metavar="JOB", help="A job.")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print lines as they arrive, until it ends.")] = False,
    every: Annotated[bool, typer.Option("-a", "--all", help="Of all replicas, with prefixes.")] = False,
    task: Annotated[str | None, typer.Option(help="Task.", show_default=False)] = None,
    rank: Annotated[int | None, typer.Option(help="Rank of the replica.", show_default=False)] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt.", show_default=False)] = None,
    container: Annotated[str | None, typer.Option("-c", "--container", help="Container.", show_default=False)] = None,
    tail: Annotated[int | None, typer.Option(help="Only the last lines.", show_default=False)] = None,
    since: Annotated[float | None, typer.Option(help="Age in seconds.", show_default=False)] = None,
    timestamps: Annotated[bool, typer.Option(help="Show the time of each line.")] = False,
    namespace: Namespace = None,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Print the log of a replica, by default of rank 0 in its current attempt, or with --all those of all replicas.

    With -f, it continues with the next attempt after a restart, and ends with the job.

    Examples: jobgate logs tour --task worker --rank 1; jobgate logs tour --all -f
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
    with gateway(server, namespace, context) as client:
        job = job_named(name, "logs")
        if not every and (not follow or attempt is not None):
            for line in client.jobs.logs(job, **options):
                sys.stdout.write(f"{line}\n")
            return
        replicas = [one for one in client.jobs.replicas(job, task=task) if rank in {None, one.rank} and not one.leaving]
        printer = _Printer(replicas, has_prefix=every)
        if not follow:
            _print_each(client, job, replicas, options, printer)
            return
        wanted = Wanted(
            task=task if every else _only_task(name, task, replicas),
            rank=rank if every else rank or 0,
            container=container,
            tail=tail,
            since=since,
            timestamps=timestamps,
        )
    run_async(server, namespace, context, lambda other: _follow(other, job, wanted, printer))


def _only_task(name: str, task: str | None, replicas: Sequence[Replica]) -> str | None:
    tasks = sorted({one.task for one in replicas})
    if task is None and len(tasks) > 1:
        raise TargetError(f"logs {name} -f: the job has several tasks; accepted: --task {' or '.join(tasks)}, or --all")
    return task


def _print_each(
    client: Client, job: str, replicas: Sequence[Replica], options: LogOptions, printer: "_Printer"
) -> None:
    """Print the logs of replicas one after the other."""
    for one in replicas:
        source = Source(task=one.task, rank=one.rank, attempt=options.get("attempt") or one.attempt)
        try:
            for line in client.jobs.logs(job, **(options | LogOptions(task=one.task, rank=one.rank))):
                printer.emit(source, line)
        except NotFoundError as error:
            printer.report(f"{source.label}: {error.problem.detail}")


async def _follow(client: AsyncClient, job: str, wanted: Wanted, printer: "_Printer") -> None:
    await LogFollower(client=client, wanted=wanted, emit=printer.emit, report=printer.report, most=_MOST).run(job)


class _Printer:
    """Prints lines on standard output, with the prefix of their replica if `has_prefix`; colours are for terminals."""

    def __init__(self, replicas: Sequence[Replica], *, has_prefix: bool) -> None:
        self._tasks = sorted({one.task for one in replicas})
        self._has_prefix = has_prefix
        self._is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        # With room for the attempt of a restart.
        self._width = max((len(f"{one.task}[{one.rank}] #2") for one in replicas), default=0)

    def emit(self, source: Source, line: str) -> None:
        shown = prefix(source, self._width) if self._has_prefix else ""
        if shown and self._is_coloured:
            shown = typer.style(shown, fg=colour(source, self._tasks))
        sys.stdout.write(f"{shown}{line}\n")
        sys.stdout.flush()

    def report(self, text: str) -> None:
        typer.echo(f"jobgate: {text}", err=True)
