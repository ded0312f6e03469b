"""Options that several commands have, and the frame in which each command runs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from jobgate.cli import connection
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.manifests import ManifestError
from jobgate.cli.targets import UnknownKindError
from jobgate.client import Client, JobgateError


class Output(StrEnum):
    """Formats of `-o`."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Namespace = Annotated[str | None, typer.Option("-n", "--namespace", help="Namespace.", show_default=False)]
Server = Annotated[str | None, typer.Option("--server", help="Address of the gateway.", show_default=False)]
ContextName = Annotated[str | None, typer.Option("--context", help="Context of `jobgate context`.", show_default=False)]
Format = Annotated[Output, typer.Option("-o", "--output", help="Format of the output.")]
Target = Annotated[str, typer.Argument(metavar="[KIND/]NAME", help="A job, or for example sampleset/imagenet.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Text for the history.", show_default=False)]


@contextmanager
def gateway(server: str | None, namespace: str | None, context: str | None) -> Iterator[Client]:
    """Connect to the gateway of a command, and report errors as `guarded` does."""
    with guarded():
        contexts = connection.load(connection.contexts_file(os.environ))
        chosen = connection.resolved(contexts, os.environ, server=server, namespace=namespace, context=context)
        with connection.connect(chosen) as client:
            yield client


@contextmanager
def guarded() -> Iterator[None]:
    """Report an error on standard error, and exit with the status for it."""
    try:
        yield
    except JobgateError as error:
        typer.echo(fault_text(error), err=True)
        raise typer.Exit(Exit.USAGE) from None
    except (connection.ContextError, ManifestError, UnknownKindError) as error:
        typer.echo(f"jobgate: {error}", err=True)
        raise typer.Exit(Exit.USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would report the closed pipe at its exit.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the process ends
        raise typer.Exit(Exit.SUCCEEDED) from None


def resource_of(client: Client, resource: str) -> Any:
    """Return the objects of a resource by its name in the API."""
    return {"jobs": client.jobs, "samplesets": client.sample_sets, "samplejobs": client.sample_jobs}[resource]


def printed(value: Any, output: Output) -> str:
    """Return a result as JSON or YAML."""
    if output is Output.YAML:
        return msgspec.yaml.encode(value).decode().rstrip()
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
