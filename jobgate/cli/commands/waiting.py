"""Commands that follow objects: watch and wait."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from jobgate.cli.arguments import Target, Targets
from jobgate.cli.exits import Exit
from jobgate.cli.following import Followed, display_of, follow
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Server,
    Timeout,
    format_result,
    gateway,
    refuse_name,
    resource_of,
    together,
)
from jobgate.cli.printing import say
from jobgate.cli.selection import Mine, Phases, Selection, Selector, Since, select_jobs
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
        followed = _find_followed(client, target, namespace)
        _, status = follow(followed, display_of(followed.objects, output, each=True), until=Goal.DONE, timeout=timeout)
        raise typer.Exit(status)


def wait(  # noqa: PLR0913, PLR0917 - one argument for each option
    targets: Targets = None,
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.", case_sensitive=False)] = Goal.DONE,
    timeout: Timeout = None,
    selector: Selector = None,
    phase: Phases = None,
    mine: Mine = False,
    since: Since = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Wait until jobs run, have succeeded, or are done.

    A SampleSet has succeeded when its data is cached. Filters select jobs.
    Exit status: 0 reached, 1 failed, 2 usage, 3 timed out, 4 cancelled; of several, the highest.

    Example: jobgate wait tour --for running --timeout 10m
    """
    with gateway(server, namespace, context) as client:
        selection = Selection(selector=selector, phases=phase, mine=mine, since=since)
        names = select_jobs(client, targets or (), selection, "wait")
        worst, ends, begun = Exit.SUCCEEDED, [], time.monotonic()
        for name in names:
            followed = _find_followed(client, name, namespace)
            left = None if timeout is None else round(max(0.0, timeout - (time.monotonic() - begun)), 1)
            last, status = follow(followed, display_of(followed.objects, output, each=False), until=goal, timeout=left)
            worst = max(worst, status)
            ends.append(last)
            if output is Output.NAME and last is not None:
                say(shown_name(target_named(name)[0], last.name))
            if status is Exit.INTERRUPTED:
                break
        if output in STRUCTURED and ends:
            say(format_result(together(ends), output))
        raise typer.Exit(worst)


def _find_followed(client: "Client", target: str, namespace: str | None) -> Followed:
    resource, name = target_named(target)
    return Followed(
        objects=resource_of(client, resource),
        ref=name,
        back=arguments_of(target, namespace),
    )
