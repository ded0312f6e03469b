"""The command `jobgate verify`."""

import asyncio
from typing import Annotated, Literal

import typer

from app.commands.starting import read_settings, run


def verify(
    database_only: Annotated[bool, typer.Option("--database-only", help="leave out the checks of the cluster")] = False,
    output: Annotated[Literal["table", "json"], typer.Option("--output", "-o", help="format of the report")] = "table",
    pause: Annotated[
        float, typer.Option(help="seconds after which what looks like a fault is examined again", min=0)
    ] = 10.0,
) -> None:
    """Check the invariants of the database and the cluster, reading only.

    Exit with status 0 if all hold, 1 if a fault was found, 2 if the checks could not run.
    """
    from app.running.operations import verification

    settings = read_settings(log_format="text", log_level="error")

    async def work(_: asyncio.Event) -> int:
        results = await verification.verify(settings, database_only=database_only, pause=pause)
        shown = [verification.as_json(results)] if output == "json" else verification.as_text(results)
        typer.echo("\n".join(shown))
        return int(any(result.faults for result in results))

    run(work)
