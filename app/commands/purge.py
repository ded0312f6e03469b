"""The command `jobgate purge`."""

from typing import Annotated

import typer

from app.commands.starting import database_url, run


def purge(
    before: Annotated[str, typer.Option(help="they ended before this: 2026-08-31T12:00Z, or 90d ago")],
    namespace: Annotated[list[str] | None, typer.Option(help="only those of this namespace; repeatable")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="only jobs that ended in this phase; repeatable")] = None,
    samples: Annotated[bool, typer.Option("--samples", help="SampleJobs and SampleSets in place of jobs")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count them")] = False,
) -> None:
    """Delete the records of ended jobs from the database, except pinned ones.

    Jobs with objects in the cluster stay. Exit with status 1 if a signal has ended it: run it again.
    """
    from app.running.operations import purging

    try:
        order = purging.PurgeOrder.of(
            before=before, namespaces=namespace or [], phases=phase or [], samples=samples, dry_run=dry_run
        )
    except ValueError as error:
        typer.echo(f"jobgate: {error}", err=True)
        raise typer.Exit(2) from None
    url = database_url()
    run(lambda stop: purging.purge(url, order, typer.echo, stop))
