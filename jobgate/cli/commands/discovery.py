"""Commands about what a gateway accepts: kinds and explain."""

from typing import Annotated

import typer

from jobgate.cli.arguments import FieldPath
from jobgate.cli.options import STRUCTURED, ContextName, Format, Output, Server, format_result, gateway, refuse_name
from jobgate.cli.printing import say
from jobgate.cli.rendering.schemas import KindSchema, explanation
from jobgate.cli.rendering.tables import table
from jobgate.cli.targets import TargetError, kind_named, names_of
from jobgate.client.types import Kind


def kinds(output: Format = Output.TEXT, server: Server = None, context: ContextName = None) -> None:
    """List the kinds that the gateway accepts, with short names.

    Example: jobgate kinds
    """
    with gateway(server, None, context) as client:
        found = client.kinds()
        rows = [[kind.kind, ", ".join(names_of(kind.kind)), kind.resource, *kind.api_versions[:1]] for kind in found]
        header = ["KIND", "NAMES", "RESOURCE", "API VERSION"]
        if output is Output.NAME:
            say("\n".join(kind.kind for kind in found))
        else:
            say(format_result({"items": found}, output) if output in STRUCTURED else table(header, rows))


def explain(
    field: FieldPath,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All fields below it, without texts.")] = False,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Explain the fields of a kind.

    The text has their types, accepted values and defaults, and which of them can be changed later.

    Examples: jobgate explain genericjob.spec; jobgate explain tj.spec.trainer; jobgate explain dijob -r
    """
    refuse_name(output)
    name, *path = field.split(".")
    with gateway(server, None, context) as client:
        schema = KindSchema(_kind(client.kinds(), name))
        found = schema.find(path)
        if output in STRUCTURED:
            say(format_result(found.schema, output))
        else:
            say(explanation(schema, found, is_recursive=recursive))


def _kind(known: list[Kind], name: str) -> Kind:
    """Return the kind of this name. A kind that only a newer gateway has is named as in its manifests."""
    for kind in known:
        if name.lower() in {kind.kind.lower(), *names_of(kind.kind)}:
            return kind
    accepted = ", ".join(kind.kind for kind in known)
    if kind_named(name).kind is None:
        raise TargetError(f"explain {name}: it stands for several kinds; accepted: {accepted}")
    raise TargetError(f"explain {name}: the gateway has no such kind; accepted: {accepted}")
