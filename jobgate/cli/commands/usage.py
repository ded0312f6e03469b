"""The command about usage."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from jobgate.cli.options import ContextName, Namespace, Output, Server, format_result, gateway
from jobgate.cli.printing import say
from jobgate.cli.rendering.usage import job_usage_text, usage_text
from jobgate.client.calls import UsageFilter


class UsageOutput(StrEnum):
    """Formats of `jobgate usage -o`."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


def usage(  # noqa: PLR0913, PLR0917  each argument is an option
    name: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A job. Without one: sums of jobs.", show_default=False)
    ] = None,
    by: Annotated[
        str, typer.Option(help="By namespace, user, queue, kind, day or label:KEY, separated by commas.")
    ] = "namespace",
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day, as 2026-01-31.", show_default=False)
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Last day; by default today.", show_default=False)
    ] = None,
    namespace: Namespace = None,
    user: Annotated[list[str] | None, typer.Option(help="Only of these users.", show_default=False)] = None,
    queue: Annotated[list[str] | None, typer.Option(help="Only of these queues.", show_default=False)] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only of these kinds.", show_default=False)] = None,
    resource: Annotated[list[str] | None, typer.Option(help="Only these resources.", show_default=False)] = None,
    output: Annotated[
        UsageOutput,
        typer.Option("-o", "--output", metavar="FORMAT", help=f"One of {', '.join(UsageOutput)}.", show_default=False),
    ] = UsageOutput.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show what jobs have used.

    Sums are those of the last 30 days in all namespaces, in hours.

    Examples: jobgate usage; jobgate usage train; jobgate usage --by user,day --from 2026-01-01 -o csv
    """
    with gateway(server, namespace, context) as client:
        if name is not None:
            if output is UsageOutput.CSV:
                raise typer.BadParameter("CSV has the sums of jobs: omit the name of the job", param_hint="-o")
            job = client.usage.of_job(name, namespace=namespace)
            say(job_usage_text(job) if output is UsageOutput.TEXT else format_result(job, Output(output)))
            return
        dimensions = [each.strip() for each in by.split(",") if each.strip()]
        where = UsageFilter(
            first=first,
            last=last,
            namespaces=_as_tuple(None if namespace is None else [namespace]),
            users=_as_tuple(user),
            queues=_as_tuple(queue),
            kinds=_as_tuple(kind),
            resources=_as_tuple(resource),
        )
        if output is UsageOutput.CSV:
            for line in client.usage.csv_lines(dimensions, where):
                say(line)
            return
        page = client.usage.groups(dimensions, where)
        say(usage_text(page) if output is UsageOutput.TEXT else format_result(page, Output(output)))


def _as_tuple(values: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(values or ())
