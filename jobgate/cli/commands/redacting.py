"""The command that removes secrets from what is stored of objects."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from jobgate.cli.arguments import Targets
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.manifests.files import read_text
from jobgate.cli.options import ContextName, Namespace, Server, gateway, resource_of
from jobgate.cli.printing import advise, say
from jobgate.cli.targets import JOBS, SAMPLE_JOBS, SAMPLE_SETS, TargetError, job_kind_named, shown_name, target_named
from jobgate.client import ProblemError
from jobgate.client.calls import Secrets

if TYPE_CHECKING:
    from jobgate.client import Client

_EVERY_VARIABLE: Final = "*"
_PAGE: Final = 500


def redact(  # noqa: PLR0913, PLR0917 - one argument for each option
    targets: Targets = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME", help="A variable; * for all. Repeatable.", show_default=False),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="POINTER", help="A field, such as /spec/…/args/1.", show_default=False),
    ] = None,
    text_from: Annotated[
        str | None,
        typer.Option("--text-from", metavar="FILE", help="A file with a text; - for input.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All objects of the namespace, or of all with -A.")] = (
        False
    ),
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    namespace: Namespace = None,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Remove secrets from what is stored.

    Only admins may do this. NAME means all objects that have had it, and a uid one.

    Examples: jobgate redact train --env WANDB_API_KEY; jobgate redact --all --text-from key.txt
    """
    with gateway(server, namespace, context) as client:
        if bool(targets) == everything:
            raise TargetError("redact: accepted: names or uids of objects, or --all")
        secrets = Secrets(env=env or (), fields=field or (), texts=_texts(text_from))
        if not any(secrets.values()):
            secrets["env"] = [_EVERY_VARIABLE]
        refused = False
        for resource, uid, shown in _find(client, targets or (), "*" if all_namespaces else None):
            try:
                done = resource_of(client, resource).redact(uid, **secrets)
            except ProblemError as error:
                refused = True
                advise(fault_text(error, about=shown))
                continue
            if done.changed or not everything:
                say(_line(shown, done))
        if refused:
            raise typer.Exit(Exit.USAGE)


def _texts(file: str | None) -> Sequence[str]:
    """Return the text of a file without its last line end, or no text. An argument would be in the shell's history."""
    if file is None:
        return ()
    return (read_text("--text-from", file).removesuffix("\n").removesuffix("\r"),)


def _find(client: "Client", targets: Sequence[str], namespace: str | None) -> Iterator[tuple[str, UUID, str]]:
    """Yield resource, uid and description of each object; without targets, of all objects.

    All targets are found before the first object is yielded: what is redacted cannot be restored.
    """
    found = [
        (resource, uid, f"{shown_name(resource, name)} {uid}")
        for target in targets
        for resource, name in [target_named(target)]
        for uid in _uids_named(client, target, namespace)
    ]
    yield from found
    if not targets:
        for resource in (JOBS, SAMPLE_SETS, SAMPLE_JOBS):
            for uid in _rows(client, resource, namespace):
                yield resource, uid, f"{shown_name(resource, '')}{uid}"


def _uids_named(client: "Client", target: str, namespace: str | None) -> Sequence[UUID]:
    """Return the uids of the objects of a target. Jobs of all kinds share their names: tj/train has no other kind.

    Raises:
        TargetError: there are none.
    """
    resource, name = target_named(target)
    kind = job_kind_named(target)
    if not (is_uid := _is_uid(name)):
        found = list(_rows(client, resource, namespace, name=name, kind=kind))
    elif kind is None:
        found = [UUID(name)]  # the redaction reports that there is none
    else:
        found = list(_rows(client, resource, "*", uid=name, kind=kind))
    if not found:
        raise TargetError(f"redact {target}: no {kind or 'object'} has had this {'uid' if is_uid else 'name'}")
    return found


def _is_uid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def _rows(client: "Client", resource: str, namespace: str | None, **filters: Any) -> Iterator[UUID]:
    """Yield the uids of the objects that match, deleted ones included."""
    for row in resource_of(client, resource).summaries(namespace=namespace, deleted=True, page_size=_PAGE, **filters):
        yield UUID(row.uid)


def _line(shown: str, done: Any) -> str:
    if not done.changed:
        return f"{shown}: nothing to remove"
    left = "; its objects in the cluster still have it: delete it" if done.in_cluster else ""
    return f"{shown}: removed from {done.changed} rows{left}"
