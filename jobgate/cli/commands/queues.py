"""The command about queues."""

from typing import Annotated

import typer

from jobgate.cli.following import now
from jobgate.cli.options import STRUCTURED, ContextName, Format, Namespace, Output, Server, format_result, gateway
from jobgate.cli.printing import report, say, terminal_width
from jobgate.cli.rendering.queues import queue_text, queues_text
from jobgate.client.types import Kueue, KueueState


def queues(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A queue, with the jobs that wait in it.", show_default=False)
    ] = None,
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Show queues: quota, use and the jobs that wait.

    Examples: jobgate queues -A; jobgate queues team
    """
    with gateway(server, namespace, context) as client:
        if name is not None:
            queue = client.queues.get(name, namespace=namespace)
            if output is Output.NAME:
                say(queue.name)
            else:
                say(
                    format_result(queue, output) if output in STRUCTURED else queue_text(queue, now(), terminal_width())
                )
            return
        found = list(client.queues.list(namespace="*" if all_namespaces else namespace))
        if problem := _problem(client.queues.kueue(), has_queues=bool(found)):
            report(problem)
        if output in STRUCTURED:
            say(format_result({"items": found}, output))
        elif found and output is Output.NAME:
            say("\n".join(queue.name for queue in found))
        elif found:
            say(queues_text(found, all_namespaces=all_namespaces, wide=output is Output.WIDE))


def _problem(known: Kueue, *, has_queues: bool) -> str:
    """Return why no queue is shown, or why others may be missing; empty if nothing is."""
    match known.state:
        case KueueState.LISTED:
            return known.message or ("" if has_queues else "there are none")
        case KueueState.ABSENT:
            text = "the cluster does not serve Kueue, or jobgate does not use it"
        case KueueState.DENIED:
            text = "jobgate may not read the objects of Kueue"
        case _:
            text = "jobgate has not listed the queues yet"
    return f"{text}: {known.message}" if known.message else text
