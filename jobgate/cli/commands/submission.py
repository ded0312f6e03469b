"""The command `submit`: submits manifests and follows them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobgate.cli.commands.logs import follow_log
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.following import Followed, display_of, follow
from jobgate.cli.manifests.documents import Document
from jobgate.cli.manifests.files import own_documents, read
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    SkipForeign,
    Timeout,
    format_result,
    gateway,
    resource_of,
    run_async,
    together,
)
from jobgate.cli.printing import advise, say
from jobgate.cli.rendering.tables import warnings_of
from jobgate.cli.targets import JOBS, arguments_of, shown_name
from jobgate.cli.targets import resource_of as resource_of_kind
from jobgate.client import Goal, ProblemError
from jobgate.client.types import Job

if TYPE_CHECKING:
    from jobgate.client import Client


def submit(  # noqa: PLR0913, PLR0917 - one argument for each option
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="Files, as with -f.")] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", help="File, directory, or - for standard input.", show_default=False),
    ] = None,
    namespace: Namespace = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow the job to its end.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Follow it by the logs of its replicas.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="Another name.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A value, as spec.replicaSpecs.0.replicas=4.", show_default=False)
    ] = None,
    skip_foreign: SkipForeign = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be created.")] = False,
    timeout: Timeout = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Submit manifests of jobs, SampleSets and SampleJobs.

    Exit status with --watch and --log: 0 succeeded, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Examples: jobgate submit -f job.yaml --watch;
    sed s/v1/v2/ job.yaml | jobgate submit -f - --name second --set spec.replicaSpecs.0.replicas=4
    """
    if log and output in STRUCTURED:
        raise typer.BadParameter("with -o json and -o yaml, standard output has only the result", param_hint="--log")
    with gateway(server, namespace, context) as client:
        select = own_documents(lambda: [kind.kind for kind in client.kinds()], skips=skip_foreign)
        documents = read([*(filename or ()), *(files or ())], name=name, settings=settings or (), select=select)
        sent = [_send(client, document, output, dry_run=dry_run) for document in documents]
        refused = any(submitted.is_refused for submitted in sent)
        if (watch or log) and not dry_run and not refused:
            given = _Connection(server, namespace, context)
            raise typer.Exit(_follow_all(client, sent, given, timeout, output, by_log=log))
        if output in STRUCTURED or (dry_run and output is not Output.NAME):
            say(
                format_result(
                    together([submitted.result for submitted in sent]), output if output in STRUCTURED else Output.YAML
                )
            )
        if refused:
            raise typer.Exit(Exit.USAGE)


class _Connection(NamedTuple):
    """The options that select the gateway."""

    server: str | None
    namespace: str | None
    context: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A manifest after its submission. `result` is the stored object, the dry run, or the problem of a refusal."""

    resource: str
    result: Any
    is_refused: bool = False


def _send(client: "Client", document: Document, output: Output, *, dry_run: bool) -> _Sent:
    """Submit a manifest, and print a line about it unless the output is for programs."""
    resource = resource_of_kind(document.kind)
    objects = resource_of(client, resource)
    try:
        if dry_run:
            drafted = objects.dry_run(document.text)
            metadata = drafted.manifest["metadata"]
            if output is Output.NAME:
                say(shown_name(resource, metadata.get("name") or metadata["generateName"]))
            return _Sent(resource=resource, result=drafted)
        stored = objects.submit(document.text)
    except ProblemError as error:
        advise(fault_text(error, document))
        return _Sent(resource=resource, result=error.problem, is_refused=True)
    if output is Output.NAME:
        say(shown_name(resource, stored.name))
    elif output not in STRUCTURED:
        say(f"{shown_name(resource, stored.name)} submitted to namespace {stored.namespace}")
        for text in warnings_of(stored):
            advise(f"warning: {text}")
    return _Sent(resource=resource, result=stored)


def _print_log(job: Job, connection: _Connection, timeout: float | None) -> None:
    """Print the logs of a job until it ends, or until the time is over. Ctrl-C detaches."""
    try:
        run_async(*connection, partial(follow_log, job=job, longest=timeout))
    except typer.Exit as end:
        if end.exit_code == Exit.INTERRUPTED:
            back = f"jobgate logs -f --all {arguments_of(job.name, connection.namespace)}"
            advise(f"\ndetached; it continues. Come back with: {back}")
        raise


def _follow_all(
    client: "Client",
    sent: Sequence[_Sent],
    connection: _Connection,
    timeout: float | None,
    output: Output,
    *,
    by_log: bool,
) -> Exit:
    """Follow the objects one after the other. Return the worst exit status."""
    worst, ends = Exit.SUCCEEDED, []
    for submitted in sent:
        objects, stored = resource_of(client, submitted.resource), submitted.result
        started = time.monotonic()
        if by_log and submitted.resource == JOBS:
            _print_log(stored, connection, timeout)
        left = None if timeout is None else round(max(0.0, timeout - (time.monotonic() - started)), 1)
        followed = Followed(
            objects=objects,
            ref=stored,
            back=arguments_of(shown_name(submitted.resource, stored.name), connection.namespace),
            is_own=submitted.resource == JOBS,
        )
        last, status = follow(followed, display_of(objects, output, each=False), until=Goal.DONE, timeout=left)
        ends.append(last)
        worst = max(worst, status)
    if output in STRUCTURED:
        say(format_result(together(ends), output))
    return worst
