"""The command `jobgate verify`."""

import asyncio
import sys
from typing import Annotated, Literal

import typer

from app.commands.starting import read_settings, run

_CLEAR = "\r\x1b[K"
"""Moves to the begin of the line of a terminal, and empties it."""


def _show(subjects: str, examined: int) -> None:
    """Show the progress in place of the last one."""
    sys.stderr.write(f"{_CLEAR}{subjects}: {examined} examined")
    sys.stderr.flush()


def _show_nothing(_: str, __: int) -> None:
    """Show no progress where nobody waits for it."""


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
        show = _show if sys.stderr.isatty() else _show_nothing
        try:
            results = await verification.verify(settings, database_only=database_only, pause=pause, progress=show)
        finally:
            if sys.stderr.isatty():
                sys.stderr.write(_CLEAR)
        shown = [verification.as_json(results)] if output == "json" else verification.as_text(results)
        typer.echo("\n".join(shown))
        return int(any(result.faults for result in results))

    run(work)
