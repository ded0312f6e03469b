"""Commands that read: list, get, status, describe, events, history, kinds, version, watch, wait, logs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Annotated, Any

import typer

from jobgate.cli import tables
from jobgate.cli.exits import Exit
from jobgate.cli.following import follow
from jobgate.cli.options import ContextName, Format, Namespace, Output, Server, Target, gateway, printed, resource_of
from jobgate.cli.targets import JOBS, kind_named, shown_name, target_named
from jobgate.client import Client, Goal, JobgateError

_LAST = 12  # rows of the history and of the events that `describe` shows
_PLAIN = {Output.JSON, Output.YAML}


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the client shows ages; it shares no clock with the gateway


def list_(  # noqa: PLR0913, PLR0917 - one argument for each option
    kind: Annotated[str, typer.Argument(help="jobs, or a kind or short name such as sampleset or tj.")] = "jobs",
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    selector: Annotated[str | None, typer.Option("-l", "--selector", help="Labels, as in kubectl.")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="Only this phase; repeatable.", show_default=False)] = None,
    search: Annotated[str | None, typer.Option(help="A part of the name.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="The newest objects of this number; 0 for all.")] = 100,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Then print every change.")] = False,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """List objects, newest first.

    Examples: jobgate list -A --phase Running; jobgate list sampleset -l team=vision -o json
    """
    with gateway(server, namespace, context) as client:
        wanted = kind_named(kind)
        where = "*" if all_namespaces else namespace
        filters = {
            "namespace": where,
            "kind": wanted.kind,
            "label_selector": selector,
            "phase": phase,
            "search": search,
        }
        items = _newest(resource_of(client, wanted.resource).list(**filters, page_size=limit or None), limit)
        typer.echo(_listed(items, wanted.resource, output, all_namespaces=all_namespaces))
        if watch:
            for change in resource_of(client, wanted.resource).watch(namespace=where):
                typer.echo(f"{change.type:<10} {tables.status_line(change.object)}")


def _newest(items: Any, limit: int) -> list[Any]:
    found = []
    for item in items:
        found.append(item)
        if len(found) == limit:
            break
    return found


def _listed(items: Sequence[Any], resource: str, output: Output, *, all_namespaces: bool) -> str:
    if output in _PLAIN:
        return printed({"items": items}, output)
    if output is Output.NAME:
        return "\n".join(shown_name(resource, item.name) for item in items)
    if not items:
        return "there are none"
    return tables.list_text(items, now(), all_namespaces=all_namespaces, wide=output is Output.WIDE)


def get(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show one object; `-o yaml` shows all of it.

    Example: jobgate get tour -o yaml
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        item = resource_of(client, resource).get(name)
        typer.echo(
            printed(item, output) if output in _PLAIN else _listed([item], resource, output, all_namespaces=False)
        )


def status(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show the phase of an object, its replicas, and why it is in this phase.

    Example: jobgate status tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        state = resource_of(client, resource).status(name)
        typer.echo(printed(state, output) if output in _PLAIN else tables.status_line(state))


def describe(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show an object with its cause, replicas, conditions, and its last events and history.

    Example: jobgate describe tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        objects = resource_of(client, resource)
        item = objects.get(name)
        replicas = client.jobs.replicas(item) if resource == JOBS else []
        events, history = objects.events(item), objects.history(item)
        if output in _PLAIN:
            parts = {"object": item, "replicas": replicas, "events": events, "history": history}
            typer.echo(printed(parts, output))
        else:
            typer.echo(tables.describe_text(item, replicas, events[-_LAST:], history[-_LAST:], now()))


def events(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show the Events of the pods of a job.

    Example: jobgate events tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        rows = resource_of(client, resource).events(name)
        typer.echo(printed({"items": rows}, output) if output in _PLAIN else tables.events_text(rows))


def history(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show what happened to an object, when, why and by whom.

    Example: jobgate history tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        rows = resource_of(client, resource).history(name)
        typer.echo(printed({"items": rows}, output) if output in _PLAIN else tables.history_text(rows))


def kinds(output: Format = Output.TEXT, server: Server = None, context: ContextName = None) -> None:
    """List the kinds that the gateway accepts."""
    with gateway(server, None, context) as client:
        found = client.kinds()
        rows = [[kind.kind, ",".join(kind.api_versions), kind.resource] for kind in found]
        header = ["KIND", "API VERSIONS", "RESOURCE"]
        typer.echo(printed({"items": found}, output) if output in _PLAIN else tables.table(header, rows))


def watch(
    target: Target,
    namespace: Namespace = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds.", show_default=False)] = None,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Follow an object to its end. Ctrl-C detaches; pressed twice, it cancels a job.

    Exit status: 0 succeeded, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Example: jobgate watch tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        objects = resource_of(client, resource)
        _, result = follow(objects, name, target, timeout=timeout, cancels=resource == JOBS)
        raise typer.Exit(result)


def wait(
    target: Target,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.DONE,
    timeout: Annotated[float | None, typer.Option(help="Seconds.", show_default=False)] = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Wait until a job runs, has succeeded, or is done.

    Exit status: 0 reached or succeeded, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Example: jobgate wait tour --for running --timeout 600
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        last, result = follow(resource_of(client, resource), name, target, until=goal, timeout=timeout)
        if output in _PLAIN and last is not None:
            typer.echo(printed(last, output))
        raise typer.Exit(result)


def logs(  # noqa: PLR0913, PLR0917 - one argument for each option
    name: Annotated[str, typer.Argument(help="A job.")],
    follow_: Annotated[bool, typer.Option("-f", "--follow", help="Print lines as they arrive.")] = False,
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
    """Print the log of a replica, by default of rank 0 in its current attempt.

    Example: jobgate logs tour --task worker --rank 1 -f
    """
    with gateway(server, namespace, context) as client:
        lines = client.jobs.logs(
            target_named(name)[1],
            task=task,
            rank=rank,
            attempt=attempt,
            container=container,
            follow=follow_,
            tail=tail,
            since=since,
            timestamps=timestamps,
        )
        for line in lines:
            typer.echo(line)


def version(output: Format = Output.TEXT, server: Server = None, context: ContextName = None) -> None:
    """Show the versions of the client and of the gateway."""
    own = metadata.version("jobgate")
    if output is Output.TEXT:
        typer.echo(f"client   {own}")
    with gateway(server, None, context) as client:
        other = _gateway_version(client)
        if output is Output.TEXT:
            typer.echo(f"gateway  {other or 'does not answer'}  ({client.url})")
        else:
            typer.echo(printed({"client": own, "gateway": other}, output))
        raise typer.Exit(Exit.SUCCEEDED if other else Exit.USAGE)


def _gateway_version(client: Client) -> str | None:
    try:
        return client.version()
    except JobgateError:
        return None
