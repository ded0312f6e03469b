"""The command `jobgate purge`."""

from typing import Annotated

import typer

from app.commands.starting import read_settings, run


def purge(
    before: Annotated[str, typer.Option(help="they ended before this: 2026-08-31T12:00Z, or 90d ago")],
    namespace: Annotated[list[str] | None, typer.Option(help="only those of this namespace; repeatable")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="only jobs that ended in this phase; repeatable")] = None,
    samples: Annotated[bool, typer.Option("--samples", help="SampleJobs and SampleSets in place of jobs")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count them")] = False,
) -> None:
    """Delete the records of ended jobs from the database, except pinned ones.

    With JOBGATE_EXPORT_TO, jobs are exported to it before. Jobs with objects in the cluster stay. Exit with status 1 if
    a signal has ended it: run it again.
    """
    from app.running.operations import purging
    from app.running.operations.interruptions import LAST_SECONDS

    try:
        order = purging.PurgeOrder.of(
            before=before, namespaces=namespace or [], phases=phase or [], samples=samples, dry_run=dry_run
        )
    except ValueError as error:
        typer.echo(f"jobgate: {error}", err=True)
        raise typer.Exit(2) from None
    settings = read_settings(log_format="text", log_level="error")
    run(lambda stop: purging.purge(settings, order, typer.echo, stop), shutdown_timeout=LAST_SECONDS)
