"""Commands that read: list, get, status, describe, events, history, top, version."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from jobgate.cli.arguments import KindOrTargets, ListedKind, Target
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.following import now
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    format_result,
    gateway,
    one_of_many,
    refuse_name,
    resource_of,
    together,
)
from jobgate.cli.printing import advise, report, say, terminal_width
from jobgate.cli.rendering import tables
from jobgate.cli.rendering.descriptions import describe_text
from jobgate.cli.rendering.overview import LIVE, overview, overview_text
from jobgate.cli.rendering.queues import NO_SURROUNDINGS, Surroundings
from jobgate.cli.selection import Mine, Phases, Selection, Selector, Since
from jobgate.cli.targets import JOBS, SAMPLE_SETS, kind_named, shown_name, target_named, targets_named
from jobgate.client import ForbiddenError, JobgateError, NotFoundError
from jobgate.client.types import Job, JobPhase

if TYPE_CHECKING:
    from jobgate.client import Client

_PAGE = 500  # objects of one request
_PLAIN: Final = tables.Columns()
_LAST = 12  # rows of the history and of the events that `describe` shows


def list_(  # noqa: PLR0913, PLR0917 - one argument for each option
    kind: ListedKind = "jobs",
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    selector: Selector = None,
    phase: Phases = None,
    mine: Mine = False,
    since: Since = None,
    label: Annotated[
        list[str] | None,
        typer.Option("-L", "--label-columns", help="A label as a column; repeatable.", show_default=False),
    ] = None,
    sort: Annotated[
        tables.Order, typer.Option(help="Order of the shown ones.", case_sensitive=False)
    ] = tables.Order.CREATED,
    search: Annotated[str | None, typer.Option(help="A part of the name.", show_default=False)] = None,
    queue: Annotated[str | None, typer.Option(help="Only jobs with this queue.", show_default=False)] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also deleted ones.")] = False,
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
            "search": search,
            "queue": queue,
            "deleted": deleted or None,
            **Selection(selector=selector, phases=phase, mine=mine, since=since).filters(now()),
        }
        objects = resource_of(client, wanted.resource)
        page_size = min(limit + 1, _PAGE) if limit else _PAGE
        found = list(islice(_rows(objects, output)(**filters, page_size=page_size), limit + 1 if limit else None))
        items = found[:limit] if limit else found
        items = tables.sort_items(sort, items, now())
        shown = replace(_columns(items, output), all_namespaces=all_namespaces, labels=label or ())
        _print_list(items, wanted.resource, output, shown)
        if len(items) < len(found):
            report(f"these are the newest {limit}{_sorted_text(sort)}; --limit 0 shows all")
        if watch:
            _print_changes(objects, filters, wanted.resource, output, shown)


def _columns(items: Sequence[Any], output: Output) -> tables.Columns:
    """Return the columns that these objects need: those of jobs have their queue if any of them has one."""
    return tables.Columns(wide=output is Output.WIDE, queue=any(map(tables.queue_name, items)))


def _sorted_text(sort: tables.Order) -> str:
    return "" if sort is tables.Order.CREATED else f", sorted by {sort}"


def _rows(objects: Any, output: Output) -> Callable[..., Any]:
    """Return the method that lists objects: whole ones for programs, and what a table shows otherwise."""
    return objects.list if output in STRUCTURED else objects.summaries  # type: ignore[no-any-return]


def _print_changes(
    objects: Any, filters: Mapping[str, Any], resource: str, output: Output, shown: tables.Columns
) -> None:
    """Print each object that changes from now on, if the filters of the list select it."""
    for change in objects.watch(namespace=filters["namespace"]):
        for item in _rows(objects, output)(**filters, uid=change.object.uid):
            if output in STRUCTURED:
                say(one_of_many(item, output))
            else:
                text = _render_list([item], resource, output, shown)
                say(text if output is Output.NAME else text.partition("\n")[2])


def _print_list(items: Sequence[Any], resource: str, output: Output, shown: tables.Columns = _PLAIN) -> None:
    """Print objects. Without any, standard output is empty, or for programs an empty list."""
    if items or output in STRUCTURED:
        say(_render_list(items, resource, output, shown))
    elif output is not Output.NAME:
        report("there are none")


def _render_list(items: Sequence[Any], resource: str, output: Output, shown: tables.Columns = _PLAIN) -> str:
    if output in STRUCTURED:
        return format_result({"items": items}, output)
    if output is Output.NAME:
        return "\n".join(shown_name(resource, item.name) for item in items)
    return tables.list_text(items, now(), shown)


def top(
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    selector: Annotated[str | None, typer.Option("-l", "--selector", help="Labels, as in kubectl.")] = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show the live jobs, and why replicas wait.

    It also shows the ended jobs of which replicas still run.

    Example: jobgate top -A
    """
    with gateway(server, namespace, context) as client:
        where = "*" if all_namespaces else namespace
        jobs = list(client.jobs.summaries(namespace=where, phase=LIVE, label_selector=selector, page_size=_PAGE))
        jobs += client.jobs.summaries(namespace=where, still_running=True, label_selector=selector, page_size=_PAGE)
        if output in STRUCTURED:
            say(format_result(overview(jobs), output))
        elif output is Output.NAME:
            _print_list(jobs, JOBS, output)
        else:
            say(overview_text(jobs, now(), all_namespaces=all_namespaces, width=terminal_width()))


def get(
    targets: KindOrTargets,
    manifest: Annotated[
        bool, typer.Option("--manifest", help="Only the manifest as it was posted, for submit and diff.")
    ] = False,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show objects; `-o yaml` shows all of them.

    Examples: jobgate get tour -o yaml; jobgate get tour --manifest > tour.yaml; jobgate get jobs
    """
    if (names := targets_named(targets)) is None:
        if manifest:
            raise typer.BadParameter("needs the names of objects", param_hint="--manifest")
        list_(targets[0], namespace=namespace, output=output, server=server, context=context)
        return
    if manifest:
        refuse_name(output)
    with gateway(server, namespace, context) as client:
        wanted = [target_named(name) for name in names]
        read = _read_posted if manifest else _read
        found = [(resource, item) for resource, name in wanted if (item := _find(client, resource, name, wanted, read))]
        if manifest and found:
            _print_manifests([item for _, item in found], output)
        elif found and output in STRUCTURED:
            say(format_result(together([item for _, item in found]), output))
        else:
            # Objects of one resource share a table.
            for resource in dict.fromkeys(resource for resource, _ in found):
                items = [item for other, item in found if other == resource]
                say(_render_list(items, resource, output, _columns(items, output)))
        if len(found) < len(wanted):
            raise typer.Exit(Exit.USAGE)


def _read(client: "Client", resource: str, name: str) -> Any:
    return resource_of(client, resource).get(name)


def _read_posted(client: "Client", resource: str, name: str) -> Any:
    """Return the manifest of an object as it was posted; None, with a report, if the gateway does not know it."""
    posted = resource_of(client, resource).posted_manifest(name)
    if posted is None:
        report(f"the manifest of {shown_name(resource, name)} as it was posted is not known: -o yaml shows its spec")
    return posted


def _print_manifests(manifests: Sequence[Any], output: Output) -> None:
    """Print manifests in a form that `submit -f` reads."""
    if output is Output.JSON:
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        say(format_result(manifests[0] if len(manifests) == 1 else items, output))
    else:
        say("\n---\n".join(format_result(manifest, Output.YAML) for manifest in manifests))


def _find(
    client: "Client", resource: str, name: str, wanted: Sequence[Any], read: Callable[["Client", str, str], Any]
) -> Any:
    """Return what is read. Of several that are wanted, one that is not there is reported, and the others are shown."""
    try:
        return read(client, resource, name)
    except NotFoundError as error:
        if len(wanted) == 1:
            raise
        advise(fault_text(error, about=name))
        return None


def status(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show the phase of an object, its replicas and the reason.

    Example: jobgate status tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        state = resource_of(client, resource).status(name)
        if output in STRUCTURED:
            say(format_result(state, output))
        elif output is Output.NAME:
            say(shown_name(resource, state.name))
        else:
            say("\n".join(filter(None, (tables.status_line(state), tables.failure_text(state)))))


def describe(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show an object with its cause, replicas and history.

    The text has its conditions and last events too, and the attempts of each replica.

    Example: jobgate describe tour
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        objects = resource_of(client, resource)
        item = objects.get(name)
        if output is Output.NAME:
            say(shown_name(resource, item.name))
            return
        replicas = client.jobs.replicas(item) if resource == JOBS else []
        events, history = objects.events(item), objects.history(item)
        dependents = objects.dependents(item) if resource == SAMPLE_SETS else None
        if output in STRUCTURED:
            parts = {"object": item, "replicas": replicas, "events": events, "history": history}
            say(format_result(parts | ({"dependents": dependents} if dependents else {}), output))
        else:
            shown = tables.sort_events(events)[-_LAST:], history[-_LAST:]
            say(describe_text(item, replicas, *shown, now(), dependents=dependents, around=_surroundings(client, item)))


def _surroundings(client: "Client", item: Any) -> Surroundings:
    """Return the queue of a job that waits in it, and the job that preempted it, if this user may see them."""
    found = item.status.queue if isinstance(item, Job) else None
    if found is None:
        return NO_SURROUNDINGS
    queue, preemptor = None, None
    if not found.admitted and item.status.phase == JobPhase.QUEUED:
        with suppress(NotFoundError, ForbiddenError):
            queue = client.queues.get(found.name, namespace=item.namespace)
    if found.eviction is not None and found.eviction.preempted_by is not None:
        with suppress(NotFoundError, ForbiddenError):
            preemptor = client.jobs.get(UUID(found.eviction.preempted_by))
    return Surroundings(queue=queue, preemptor=preemptor)


def events(
    target: Target,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show the Events of an object or of the pods of a job.

    Example: jobgate events tour
    """
    refuse_name(output)
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        rows = tables.sort_events(resource_of(client, resource).events(name))
        if not rows and output not in STRUCTURED:
            report("there are none" + (": those of a pod are stored when its attempt ends" if resource == JOBS else ""))
            return
        say(format_result({"items": rows}, output) if output in STRUCTURED else tables.events_text(rows))


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
    refuse_name(output)
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        rows = resource_of(client, resource).history(name)
        say(format_result({"items": rows}, output) if output in STRUCTURED else tables.history_text(rows))


def version(output: Format = Output.TEXT, server: Server = None, context: ContextName = None) -> None:
    """Show the versions of the client and of the gateway.

    Example: jobgate version --server https://jobgate.example
    """
    refuse_name(output)
    own = metadata.version("jobgate")
    if output not in STRUCTURED:
        say(f"client   {own}")
    with gateway(server, None, context) as client:
        other = _gateway_version(client)
        if output not in STRUCTURED:
            say(f"gateway  {other or 'does not answer'}  ({client.url})")
        else:
            say(format_result({"client": own, "gateway": other}, output))
        raise typer.Exit(Exit.SUCCEEDED if other else Exit.USAGE)


def _gateway_version(client: "Client") -> str | None:
    try:
        return client.version()
    except JobgateError:
        return None
