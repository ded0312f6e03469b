"""The command `jobgate recover`."""

import asyncio
from enum import StrEnum
from typing import Annotated

import typer

from app.commands.starting import read_settings, run


class UnknownRemedy(StrEnum):
    """For objects of jobs that the database does not know."""

    RELEASE = "release"
    DELETE = "delete"


class LiveRemedy(StrEnum):
    """For live jobs of which the cluster has no objects."""

    REQUEUE = "requeue"
    FAIL = "fail"


class ReportFormat(StrEnum):
    """Of the report."""

    TABLE = "table"
    JSON = "json"


def recover(
    cluster: Annotated[
        bool, typer.Option("--cluster", help="the cluster may be another one: bind the database to it")
    ] = False,
    unknown: Annotated[
        UnknownRemedy | None, typer.Option(help="what to do with objects of jobs that the database does not know")
    ] = None,
    live: Annotated[
        LiveRemedy | None, typer.Option(help="what to do with live jobs of which the cluster has no objects")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="carry out what is shown, and let the controller continue")
    ] = False,
    output: Annotated[ReportFormat, typer.Option("--output", "-o", help="format of the report")] = ReportFormat.TABLE,
) -> None:
    """Show what differs after an older database was restored.

    With --yes, recover. Exit with status 1 if differences are left.
    """
    from app.domain.recovery.differences import Choices, Remedy
    from app.running.operations import recovering, recovery_report

    # A process of the role api may have no cluster.
    settings = read_settings(role="all", log_format="text", log_level="error")
    choices = Choices(unknown=Remedy(unknown) if unknown else None, live=Remedy(live) if live else None)
    rendered = recovery_report.as_json if output is ReportFormat.JSON else recovery_report.as_text

    async def work(_: asyncio.Event) -> int:
        has_differed = False

        def show(report: recovering.Report) -> None:
            nonlocal has_differed
            has_differed = report.differs
            typer.echo(rendered(report, choices))

        differs = await recovering.recover(settings, choices, rebinds=cluster, confirmed=yes, show=show)
        if has_differed and not differs and output is ReportFormat.TABLE:
            typer.echo("Recovered. The controller continues.")
        return int(differs)

    run(work)
