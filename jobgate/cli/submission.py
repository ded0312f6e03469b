"""`jobgate submit`: reads manifests, submits them, and follows them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.following import follow
from jobgate.cli.manifests import SUFFIXES, Document, ManifestError, changed, documents, kind_of
from jobgate.cli.options import ContextName, Format, Namespace, Output, Server, gateway, printed, resource_of
from jobgate.cli.targets import JOBS, shown_name
from jobgate.cli.targets import resource_of as resource_of_kind
from jobgate.client import Client, ProblemError

STDIN = "-"


def read(files: Sequence[str]) -> list[Document]:
    """Return the manifests of files, of the files of directories, and of standard input for `-`."""
    found = [document for file in files for source, text in _texts(file) for document in documents(source, text)]
    if not found:
        raise ManifestError(f"there is no manifest in {', '.join(files)}")
    return found


def _texts(file: str) -> list[tuple[str, str]]:
    if file == STDIN:
        return [("standard input", sys.stdin.read())]
    path = Path(file)
    try:
        paths = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES) if path.is_dir() else [path]
        return [(str(one), one.read_text(encoding="utf-8")) for one in paths]
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"-f {file}: {error.strerror if isinstance(error, OSError) else error}") from None


def submit(  # noqa: PLR0913, PLR0917 - one argument for each option
    file: Annotated[list[str], typer.Option("-f", "--filename", help="File, directory, or - for standard input.")],
    namespace: Namespace = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow the job to its end.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="Another name.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A value, as spec.replicaSpecs.0.replicas=4.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be created.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds to follow it.", show_default=False)] = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Submit manifests of jobs, SampleSets and SampleJobs.

    Exit status with --watch: 0 succeeded, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Examples: jobgate submit -f job.yaml --watch;
    sed s/v1/v2/ job.yaml | jobgate submit -f - --name second --set spec.replicaSpecs.0.replicas=4
    """
    with gateway(server, namespace, context) as client:
        manifests = [changed(document, name, settings or ()) for document in read(file)]
        if name is not None and len(manifests) > 1:
            raise ManifestError(f"--name {name}: there are {len(manifests)} manifests; accepted: one")
        results = [_send(client, document, output, dry_run=dry_run) for document in manifests]
        if any(stored is None for _, stored in results):
            raise typer.Exit(Exit.USAGE)
        if watch and not dry_run:
            raise typer.Exit(max(_followed(client, resource, stored, timeout, output) for resource, stored in results))


def _send(client: Client, document: Document, output: Output, *, dry_run: bool) -> tuple[str, Any]:
    """Submit a manifest and print the result. Return its resource, and the object, or None if it was refused."""
    resource = resource_of_kind(kind_of(document.content))
    objects = resource_of(client, resource)
    try:
        if dry_run:
            shown = objects.dry_run(document.text)
            typer.echo(printed(shown, Output.JSON if output is Output.JSON else Output.YAML))
            return resource, shown
        stored = objects.submit(document.text)
    except ProblemError as error:
        if output is Output.JSON:
            typer.echo(printed(error.problem, output))
        typer.echo(fault_text(error, document), err=True)
        return resource, None
    if output in {Output.JSON, Output.YAML}:
        typer.echo(printed(stored, output))
    elif output is Output.NAME:
        typer.echo(shown_name(resource, stored.name))
    else:
        typer.echo(f"{shown_name(resource, stored.name)} submitted to {stored.namespace}")
    return resource, stored


def _followed(client: Client, resource: str, stored: Any, timeout: float | None, output: Output) -> Exit:
    shown = shown_name(resource, stored.name)
    last, status = follow(resource_of(client, resource), stored, shown, timeout=timeout, cancels=resource == JOBS)
    if output in {Output.JSON, Output.YAML} and last is not None:
        typer.echo(printed(last, output))
    return status
