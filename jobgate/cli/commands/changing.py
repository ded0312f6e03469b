"""Commands that change objects: scale, pause, resume, cancel, retry, delete."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from jobgate.cli.arguments import JobNames, Target, Targets
from jobgate.cli.exits import Exit
from jobgate.cli.faults import fault_text
from jobgate.cli.options import (
    STRUCTURED,
    ContextName,
    Format,
    Namespace,
    Output,
    Reason,
    Server,
    format_result,
    gateway,
    resource_of,
    together,
)
from jobgate.cli.printing import advise, say
from jobgate.cli.rendering.overview import LIVE
from jobgate.cli.selection import Mine, Phases, Selection, Selector, Since, select_jobs
from jobgate.cli.targets import JOBS, SAMPLE_SETS, TargetError, job_kind_named, job_named, shown_name, target_named
from jobgate.client import NotFoundError, ProblemError
from jobgate.client.synchronous.objects import Jobs
from jobgate.client.types import Job

if TYPE_CHECKING:
    from jobgate.client import Client

_RETRIED: Final = ("Failed", "TimedOut")  # what filters of `retry` select


def scale(
    target: Target,
    replicas: Annotated[int, typer.Option("--replicas", help="Number of replicas, or partitions of a SampleSet.")],
    task: Annotated[str | None, typer.Option(help="Task, if several can be scaled.", show_default=False)] = None,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Request another number of replicas.

    Examples: jobgate scale parameter-server --replicas 3; jobgate scale sampleset/imagenet --replicas 3
    """
    with gateway(server, namespace, context) as client:

        def request_size(resource: str, name: str) -> Any:
            if resource == JOBS:
                return client.jobs.scale(name, replicas, task=task, reason=reason)
            if resource == SAMPLE_SETS:
                return client.sample_sets.patch(name, {"spec": {"partitions": replicas}})
            raise TargetError(f"scale {target}: accepted: a job or a SampleSet")

        _each(client, [target], request_size, output, f"scaled to {replicas}")


def _on_jobs(
    request: Callable[..., Job], phases: Collection[str], text: str, *, leftovers: bool = False
) -> Callable[..., None]:
    """Return the command that sends a request about each of several jobs, such as `Jobs.pause`.

    Without names it is about the jobs of these phases that filters select, and with `leftovers` also about ended ones
    whose replicas still run. `text` is its help.
    """
    verb = request.__name__

    def command(  # noqa: PLR0913, PLR0917 - one argument for each option
        jobs: JobNames = None,
        selector: Selector = None,
        phase: Phases = None,
        mine: Mine = False,
        since: Since = None,
        reason: Reason = None,
        namespace: Namespace = None,
        output: Format = Output.TEXT,
        server: Server = None,
        context: ContextName = None,
    ) -> None:
        with gateway(server, namespace, context) as client:
            selection = Selection(selector=selector, phases=phase, mine=mine, since=since)
            names = select_jobs(client, jobs or (), selection, verb, phases=phases, leftovers=leftovers)
            for name in names:
                job_named(name, verb)  # another resource is refused before any request
            _each(client, names, lambda _, name: request(client.jobs, name, reason=reason), output, f"{verb} requested")

    command.__name__, command.__doc__ = verb, text
    return command


pause = _on_jobs(
    Jobs.pause,
    [phase for phase in LIVE if phase != "Paused"],
    """Stop the pods of jobs until they are resumed.

    Filters select live jobs that are not paused, unless --phase is given.

    Example: jobgate pause tour --reason "the night is for others"
    """,
)
resume = _on_jobs(
    Jobs.resume,
    ["Paused"],
    """Start the pods of paused jobs again.

    Filters select paused jobs, unless --phase is given.

    Example: jobgate resume tour
    """,
)
cancel = _on_jobs(
    Jobs.cancel,
    LIVE,
    """End jobs. Their records and logs stay.

    Filters select live jobs and ended ones whose replicas still run, unless --phase is given.

    Examples: jobgate cancel tour --reason "wrong data"; jobgate cancel --mine -l team=vision
    """,
    leftovers=True,
)


def retry(  # noqa: PLR0913, PLR0917 - one argument for each option
    jobs: JobNames = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the new job.", show_default=False)] = None,
    selector: Selector = None,
    phase: Phases = None,
    mine: Mine = False,
    since: Since = None,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Submit the manifests of ended jobs as new jobs.

    Filters select jobs that have failed, unless --phase is given.

    Examples: jobgate retry tour --name tour-2; jobgate retry --mine --since 12h
    """
    with gateway(server, namespace, context) as client:
        selection = Selection(selector=selector, phases=phase, mine=mine, since=since)
        ended = select_jobs(client, jobs or (), selection, "retry", phases=_RETRIED)
        if name is not None and len(ended) > 1:
            raise TargetError(f"retry --name {name}: there are {len(ended)} jobs; accepted: one")
        for job in ended:
            job_named(job, "retry")

        def request_retry(_: str, old: str) -> Job:
            return client.jobs.retry(old, name=name, reason=reason)

        _each(client, ended, request_retry, output, "submitted as a retry")


def delete(  # noqa: PLR0913, PLR0917 - one argument for each option
    targets: Targets = None,
    selector: Selector = None,
    phase: Phases = None,
    mine: Mine = False,
    since: Since = None,
    reason: Reason = None,
    namespace: Namespace = None,
    output: Format = Output.TEXT,
    server: Server = None,
    context: ContextName = None,
) -> None:
    """Delete objects from the cluster. Their records stay.

    A live job is cancelled first. Filters select jobs.

    Examples: jobgate delete tour sampleset/imagenet; jobgate delete -l team=vision --phase Failed
    """
    with gateway(server, namespace, context) as client:
        selection = Selection(selector=selector, phases=phase, mine=mine, since=since)
        names = select_jobs(client, targets or (), selection, "delete")

        def request_deletion(resource: str, name: str) -> Any:
            return resource_of(client, resource).delete(name, reason=reason)

        _each(client, names, request_deletion, output, "deletion requested")


def _each(
    client: "Client", targets: Sequence[str], change: Callable[[str, str], Any], output: Output, done: str
) -> None:
    """Change each object, which `change` gets as its resource and its name, and report it.

    A refused change does not prevent the others; the exit status is then 2. A target of a wrong kind prevents all.
    """
    unread: dict[str, ProblemError] = {}
    for target in targets:
        try:
            _require_kind(client, target)
        except ProblemError as error:
            unread[target] = error
    results, refused = [], False
    for target in targets:
        resource, name = target_named(target)
        try:
            if target in unread:
                raise unread[target]
            item = change(resource, name)
        except ProblemError as error:
            refused = True
            advise(fault_text(error, about=target))
            results.append(error.problem)
            continue
        results.append(item)
        if output is Output.NAME:
            say(shown_name(resource, item.name))
        elif output not in STRUCTURED:
            say(f"{shown_name(resource, item.name)} {done}")
    if output in STRUCTURED:
        say(format_result(together(results), output))
    if refused:
        raise typer.Exit(Exit.USAGE)


def _require_kind(client: "Client", target: str) -> None:
    """Require that the job of a target such as tj/train is of this kind. Jobs of all kinds share their names.

    Raises:
        TargetError: it is of another kind.
    """
    if (kind := job_kind_named(target)) is None:
        return
    _, name = target_named(target)
    with suppress(NotFoundError):  # the change reports it
        found = client.jobs.status(name).kind
        if found != kind:
            raise TargetError(f"{target}: the job {name} is a {found}; accepted: {name} or {found.lower()}/{name}")
