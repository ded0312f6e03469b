"""Commands that change objects: scale, pause, resume, cancel, retry, delete."""

from typing import Annotated, Any

import typer

from jobgate.cli.options import (
    ContextName,
    Format,
    Namespace,
    Output,
    Reason,
    Server,
    Target,
    gateway,
    printed,
    resource_of,
)
from jobgate.cli.targets import shown_name, target_named

Job = Annotated[str, typer.Argument(help="A job.")]


def scale(
    job: Job,
    replicas: Annotated[int, typer.Option("--replicas", help="Number of replicas.")],
    task: Annotated[str | None, typer.Option(help="Task, if several can be scaled.", show_default=False)] = None,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Request another number of replicas.

    Example: jobgate scale tour --task worker --replicas 4
    """
    with gateway(server, namespace, context) as client:
        _report(client.jobs.scale(job, replicas, task=task, reason=reason), output, f"scaled to {replicas}")


def pause(
    job: Job,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Stop the pods of a job until it is resumed."""
    with gateway(server, namespace, context) as client:
        _report(client.jobs.pause(job, reason=reason), output, "pause requested")


def resume(
    job: Job,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Start the pods of a paused job again."""
    with gateway(server, namespace, context) as client:
        _report(client.jobs.resume(job, reason=reason), output, "resume requested")


def cancel(
    job: Job,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """End a live job. Its record and its logs stay."""
    with gateway(server, namespace, context) as client:
        _report(client.jobs.cancel(job, reason=reason), output, "cancel requested")


def retry(
    job: Job,
    name: Annotated[str | None, typer.Option("--name", help="Name of the new job.", show_default=False)] = None,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Submit the manifest of an ended job as a new job."""
    with gateway(server, namespace, context) as client:
        _report(client.jobs.retry(job, name=name, reason=reason), output, f"submitted as a retry of {job}")


def delete(
    target: Target,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Delete an object from the cluster, and cancel it if it is live. Its record stays readable.

    Example: jobgate delete sampleset/imagenet
    """
    with gateway(server, namespace, context) as client:
        resource, name = target_named(target)
        _report(resource_of(client, resource).delete(name, reason=reason), output, "deletion requested", resource)


def _report(item: Any, output: Output, done: str, resource: str = "jobs") -> None:
    """Print the changed object, or one line."""
    if output in {Output.JSON, Output.YAML}:
        typer.echo(printed(item, output))
    elif output is Output.NAME:
        typer.echo(shown_name(resource, item.name))
    else:
        typer.echo(f"{shown_name(resource, item.name)} {done}")
