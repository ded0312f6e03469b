"""The command `diff`: what a submission of the file as an edit would change."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
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
    format_result,
    gateway,
    refuse_name,
    together,
)
from jobgate.cli.options import resource_of as objects_of
from jobgate.cli.printing import advise, say
from jobgate.cli.rendering.differences import difference, manifest_of, refused_changes
from jobgate.cli.targets import resource_of, shown_name
from jobgate.client import NotFoundError, ProblemError, ending_of
from jobgate.client.types import Job

if TYPE_CHECKING:
    from jobgate.client import Client

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def diff(
    filename: Annotated[list[str], typer.Option("-f", "--filename", help="File, directory, or - for standard input.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A value, as spec.replicaSpecs.0.replicas=4.", show_default=False)
    ] = None,
    skip_foreign: SkipForeign = False,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show what replacing stored manifests by files would change.

    Both sides have defaults filled in. Changes that the gateway refuses for a stored object (PUT) are listed.

    Exit status: 0 no difference, 1 differences, 2 usage.

    Example: jobgate diff -f job.yaml
    """
    refuse_name(output)
    with gateway(server, namespace, context) as client:
        editable = {kind.kind: kind.mutable_fields for kind in client.kinds()}
        select = own_documents(lambda: editable, skips=skip_foreign)
        documents = read(filename, settings=settings or (), select=select)
        found = [_compare(client, document, editable) for document in documents]
        compared = [comparison for comparison in found if comparison is not None]
        if output in STRUCTURED:
            say(format_result(together([asdict(comparison) for comparison in compared]), output))
        else:
            for comparison in compared:
                _print(comparison)
        if len(compared) < len(found):
            raise typer.Exit(Exit.USAGE)
        raise typer.Exit(Exit.FAILED if any(comparison.diff for comparison in compared) else Exit.SUCCEEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """The differences between a stored object and a file.

    Args:
        name: the object, as a user types it.
        diff: a unified diff, empty if PUT would change nothing.
        gone: why a submission would create a new object, or empty.
        refused: pointers to the changes that PUT refuses.
    """

    name: str
    diff: str
    gone: str = ""
    refused: Sequence[str] = ()


def _compare(client: "Client", document: Document, editable: Mapping[str, Sequence[str]]) -> _Compared | None:
    """Return the differences of one manifest. Print why and return None if the gateway refuses it."""
    kind = document.kind
    resource = resource_of(kind)
    objects = objects_of(client, resource)
    try:
        # Only the completed manifest is compared, so the cluster need not check the objects.
        new = objects.dry_run(document.text, mode="Local").manifest
    except ProblemError as error:
        advise(fault_text(error, document))
        return None
    name = str(new["metadata"].get("name") or "")
    try:
        stored = objects.get(name) if name else None
    except NotFoundError:
        stored = None
    old = manifest_of(stored) if stored else {}
    gone = _absence(stored)
    return _Compared(
        name=shown_name(resource, name or "(generated)"),
        diff=difference(old, new, document.source),
        gone=gone,
        refused=() if gone else refused_changes(old, new, editable.get(kind or "", ())),
    )


def _absence(stored: Any) -> str:
    """Return why no edit is possible: the object does not exist, was deleted or has ended. Otherwise, return ""."""
    if stored is None:
        return "does not exist"
    if stored.deleted_at is not None:
        return "was deleted"
    return f"has ended as {stored.status.phase}" if isinstance(stored, Job) and ending_of(stored.status.phase) else ""


def _print(compared: _Compared) -> None:
    """Print a diff. On a terminal it has colours, which typer removes in a pipe."""
    if compared.gone:
        advise(f"{compared.name} {compared.gone}; a submission creates a new one")
    for line in compared.diff.splitlines():
        say(line, colour=_COLOURS.get(line[:1]))
    if compared.refused:
        advise(f"{compared.name}: PUT refuses changes of: {', '.join(compared.refused)}")
        advise("  submit a new job under another name instead")
