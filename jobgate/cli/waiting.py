"""Commands that follow objects: watch and wait."""

from typing import TYPE_CHECKING, Annotated

import typer

from jobgate.cli.arguments import Target
from jobgate.cli.following import Followed, follow, shown
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    Timeout,
    gateway,
    printed,
    refuse_name,
    resource_of,
)
from jobgate.cli.printing import say
from jobgate.cli.targets import arguments_of, shown_name, target_named
from jobgate.client import Goal

if TYPE_CHECKING:
    from jobgate.client import Client


def watch(
    target: Target,
    timeout: Timeout = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Follow an object to its end.

    Ctrl-C ends the command, and the object continues.
    Exit status: 0 succeeded, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Example: jobgate watch tour
    """
    refuse_name(output)
    with gateway(server, namespace, context) as client:
        followed = _followed(client, target, namespace)
        _, status = follow(followed, shown(followed.objects, output, each=True), until=Goal.DONE, timeout=timeout)
        raise typer.Exit(status)


def wait(
    target: Target,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.DONE,
    timeout: Timeout = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Wait until a job runs, has succeeded, or is done.

    A SampleSet has succeeded when its data is cached.
    Exit status: 0 reached, 1 failed, 2 usage, 3 timed out, 4 cancelled.

    Example: jobgate wait tour --for running --timeout 10m
    """
    with gateway(server, namespace, context) as client:
        followed = _followed(client, target, namespace)
        last, status = follow(followed, shown(followed.objects, output, each=False), until=goal, timeout=timeout)
        if output in STRUCTURED and last is not None:
            say(printed(last, output))
        elif output is Output.NAME and last is not None:
            say(shown_name(target_named(target)[0], last.name))
        raise typer.Exit(status)


def _followed(client: "Client", target: str, namespace: str | None) -> Followed:
    resource, name = target_named(target)
    return Followed(
        objects=resource_of(client, resource),
        ref=name,
        back=arguments_of(target, namespace),
    )
