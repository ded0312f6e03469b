"""Options that several commands have, and the frame in which each command runs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from jobgate.cli.durations import seconds
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.manifests.documents import ManifestError
from jobgate.cli.printing import advise, report
from jobgate.cli.rendering.schemas import FieldPathError
from jobgate.cli.rendering.visible import dump_yaml, visible_in_json
from jobgate.cli.targets import TargetError
from jobgate.client import JobgateError, NotFoundError, config
from jobgate.client.renewal import current_context
from jobgate.streams import discard

if TYPE_CHECKING:
    from jobgate.client import AsyncClient, Client


class Output(StrEnum):
    """Formats of `-o`."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


# Formats for programs: standard output then has nothing but the result.
STRUCTURED: Final = frozenset({Output.JSON, Output.YAML})

Namespace = Annotated[str | None, typer.Option("-n", "--namespace", help="Namespace.", show_default=False)]
Server = Annotated[str | None, typer.Option("--server", help="Address of the gateway.", show_default=False)]
ContextName = Annotated[str | None, typer.Option("--context", help="Context of `jobgate context`.", show_default=False)]
Format = Annotated[
    Output,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT",
        help=f"One of {', '.join(Output)}.",
        case_sensitive=False,
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None, typer.Option(parser=seconds, metavar="DURATION", help="Such as 90 or 10m.", show_default=False)
]
SkipForeign = Annotated[
    bool, typer.Option("--skip-foreign", help="Skip documents of other kinds, such as a ConfigMap.")
]
Reason = Annotated[str | None, typer.Option("--reason", help="Text for the history.", show_default=False)]


@contextmanager
def gateway(server: str | None, namespace: str | None, context: str | None) -> Iterator["Client"]:
    """Connect to the gateway of a command, and report errors as `guard` does."""
    with guard():
        chosen = current_context(server=server, namespace=namespace, context=context, warn=report)
        with _add_place(chosen), config.connect(chosen) as client:
            yield client


def run_async(
    server: str | None, namespace: str | None, context: str | None, work: Callable[["AsyncClient"], Awaitable[None]]
) -> None:
    """Do several things at once with the gateway of a command, and report errors as `guard` does."""

    async def main(chosen: config.Context) -> None:
        async with config.connect_async(chosen) as client:
            await work(client)

    with guard():
        chosen = current_context(server=server, namespace=namespace, context=context, warn=report)
        try:
            with _add_place(chosen):
                asyncio.run(main(chosen))
        except BaseExceptionGroup as group:
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None


@contextmanager
def _add_place(chosen: config.Context) -> Iterator[None]:
    """Add the namespace and the gateway to the error if an object is not found."""
    try:
        yield
    except NotFoundError as error:
        error.add_note(f"  in namespace {chosen.namespace} of {chosen.server}; -n selects another namespace")
        raise


@contextmanager
def guard() -> Iterator[None]:
    """Report an error on standard error, and exit with the status for it."""
    try:
        yield
    except JobgateError as error:
        advise(fault_text(error))
        raise typer.Exit(Exit.USAGE) from None
    except (FieldPathError, ManifestError, TargetError) as error:
        report(str(error))
        raise typer.Exit(Exit.USAGE) from None
    except (KeyboardInterrupt, typer.Abort):  # Abort: Ctrl-C at a question
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        discard("stdout")  # the reader, such as `head`, has seen enough
        raise typer.Exit(Exit.SUCCEEDED) from None


def resource_of(client: "Client", resource: str) -> Any:
    """Return the objects of a resource by its name in the API."""
    return {"jobs": client.jobs, "samplesets": client.sample_sets, "samplejobs": client.sample_jobs}[resource]


def refuse_name(output: Output) -> None:
    """Refuse `-o name` for a command whose results have no names.

    Raises:
        BadParameter: it was given.
    """
    if output is Output.NAME:
        accepted = ", ".join(output for output in Output if output is not Output.NAME)
        raise typer.BadParameter(f"the results have no names; accepted: {accepted}", param_hint="-o")


def format_result(value: Any, output: Output) -> str:
    """Return a result as JSON or YAML. Characters that a terminal interprets are escaped, so the value is the same."""
    if output is Output.YAML:
        return dump_yaml(msgspec.to_builtins(value)).rstrip()
    return visible_in_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def one_of_many(value: Any, output: Output) -> str:
    """Return one result of a command that prints several as they come: a line of JSON, or a document of YAML."""
    return (
        f"---\n{format_result(value, output)}"
        if output is Output.YAML
        else visible_in_json(msgspec.json.encode(value).decode())
    )


def together(results: Sequence[Any]) -> Any:
    """Return the result of a command that takes several objects: the only one, or a list."""
    return results[0] if len(results) == 1 else {"items": list(results)}
