"""The commands `jobgate export` and `jobgate import`."""

import asyncio
from datetime import datetime
from typing import Annotated

import typer

from app.commands.starting import read_settings, run

_CONTINUE = "run the same command again, and it continues"


def export(
    to: Annotated[str, typer.Option(help="folder of the export: a path, or a URL s3://…, gs://… or az://…")],
    after: Annotated[str | None, typer.Option(help="only jobs that ended at this time or later")] = None,
    before: Annotated[
        str | None, typer.Option(help="only jobs that ended before this time; by default a minute ago")
    ] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="only of this namespace; repeatable")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="only jobs that ended in this phase; repeatable")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="only of this kind, such as TrainingJob; repeatable")] = None,
) -> None:
    """Write ended jobs with all that is recorded about them to a folder, in segments.

    Nothing is deleted. The same command continues an export that was interrupted.
    """
    from app.domain.exports.lines import ExportSelection
    from app.domain.kinds import registry
    from app.domain.vocabulary import TERMINAL_PHASES
    from app.running.operations import exporting
    from app.running.operations.interruptions import INTERRUPTED, LAST_SECONDS

    selection = ExportSelection(
        after=_time("--after", after),
        before=_time("--before", before),
        namespaces=tuple(sorted(set(namespace or ()))),
        phases=_words("--phase", phase, sorted(TERMINAL_PHASES)),
        kinds=_words("--kind", kind, sorted({name for _, name in registry.JOB_KINDS})),
    )
    if selection.after and selection.before and selection.after >= selection.before:
        message = f"{before} is not after {after}: no job ended at {after} or later and before {before}"
        raise typer.BadParameter(message, param_hint="--before")
    settings = read_settings(log_format="text", log_level="error")

    async def work(stop: asyncio.Event) -> int:
        done = await exporting.export_jobs(settings, to, selection, typer.echo, stop)
        if not done.is_complete:
            typer.echo(f"interrupted after {done.segments} segments, {done.added} jobs added: {_CONTINUE}")
            return INTERRUPTED
        left_out = f", {done.left_out} jobs left out because jobgate still works on them" if done.left_out else ""
        typer.echo(f"the export is complete: {done.segments} segments, {done.added} jobs added{left_out}")
        return 0

    run(work, shutdown_timeout=LAST_SECONDS)


def import_(
    source: Annotated[str, typer.Argument(metavar="FOLDER", help="path or URL of a folder with segments, or of one")],
) -> None:
    """Store the jobs of an export for reading. They have ended, and nothing happens in the cluster.

    A job that is stored already is passed over, so the same command continues an import that was interrupted.
    """
    from app.running.operations import exporting
    from app.running.operations.interruptions import INTERRUPTED, LAST_SECONDS

    settings = read_settings(log_format="text", log_level="error")

    async def work(stop: asyncio.Event) -> int:
        done = await exporting.import_jobs(settings, source, typer.echo, stop)
        typer.echo(f"imported {done.imported} jobs; {done.present} were present")
        if not done.is_complete:
            typer.echo(f"interrupted: {_CONTINUE}")
        return 0 if done.is_complete else INTERRUPTED

    run(work, shutdown_timeout=LAST_SECONDS)


def _time(option: str, text: str | None) -> datetime | None:
    from app.domain.retention import parse_time

    try:
        return None if text is None else parse_time(text)
    except ValueError:
        message = f"{text}: accepted: a time such as 2026-08-31T12:00Z"
        raise typer.BadParameter(message, param_hint=option) from None


def _words(option: str, given: list[str] | None, accepted: list[str]) -> tuple[str, ...]:
    if wrong := sorted(set(given or ()) - set(accepted)):
        raise typer.BadParameter(f"{wrong[0]}: accepted: {', '.join(accepted)}", param_hint=option)
    return tuple(sorted(set(given or ())))
