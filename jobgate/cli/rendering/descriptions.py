"""Text of `jobgate describe`. Pure."""

from collections.abc import Sequence
from datetime import datetime

from jobgate.cli.rendering.queues import NO_SURROUNDINGS, Surroundings, queue_lines
from jobgate.cli.rendering.tables import (
    Whole,
    actor_text,
    age,
    cache_text,
    causes,
    clock,
    counts,
    events_text,
    failure_text,
    history_text,
    imported_at,
    replicas_text,
    shorten,
    table,
    warnings_of,
)
from jobgate.client.types import Dependents, Event, History, Job, Replica, SampleSet


def describe_text(
    job: Whole,
    replicas: Sequence[Replica],
    events: Sequence[Event],
    history: Sequence[History],
    now: datetime,
    *,
    dependents: Dependents | None = None,
    around: Surroundings = NO_SURROUNDINGS,
) -> str:
    """Return the text of `jobgate describe`. Only SampleSets have dependents, and only jobs have queues."""
    status = job.status
    creator = actor_text(job.created_by, job.created_by_id, whole=True)
    fields = [
        ("Name", job.name),
        ("Namespace", job.namespace),
        ("Kind", f"{job.kind} ({job.api_version})"),
        ("UID", job.uid),
        ("Labels", ", ".join(f"{name}={value}" for name, value in sorted(job.labels.items())) or "-"),
        ("Created", f"{clock(job.created_at)} by {creator} ({age(job.created_at, now)} ago)"),
        ("Started", clock(status.started_at)),
        ("Finished", clock(status.finished_at)),
        ("Phase", (status.phase or "New") + (f" ({status.reason})" if status.reason else "")),
        ("Cause", "\n".join(causes(job)) or "-"),
    ]
    if at := imported_at(job):
        fields.append(("Imported", f"{clock(at)} from an export, for reading: nothing of it is in the cluster"))
    fields += _own_fields(job, around, now)
    if dependents is not None:
        users = [user.name for user in dependents.jobs] + [f"samplejob/{user.name}" for user in dependents.sample_jobs]
        fields.append(("Used by", ", ".join(users) or "-"))
    if job.deleted_at:
        fields.append(("Deleted", clock(job.deleted_at)))
    width = max(len(name) for name, _ in fields) + 2
    # Later lines of a value are indented, so that no value looks like another field.
    sections = ["\n".join(f"{name + ':':<{width}}{_hung(value, width)}" for name, value in fields)]
    if failure := failure_text(job):
        sections.append(failure)
    if texts := warnings_of(job):
        sections.append("Warnings:\n" + _indent("\n".join(texts)))
    if replicas:
        sections.append("Replicas:\n" + _indent(replicas_text(replicas, now)))
    conditions = [
        [c.type, c.status, c.reason, clock(c.last_transition_time), shorten(c.message)] for c in job.conditions
    ]
    if conditions:
        header = ["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"]
        sections.append("Conditions:\n" + _indent(table(header, conditions)))
    if events:
        sections.append("Events:\n" + _indent(events_text(events)))
    if history:
        sections.append("History:\n" + _indent(history_text(history)))
    return "\n\n".join(sections)


def _own_fields(item: Whole, around: Surroundings, now: datetime) -> list[tuple[str, str]]:
    """Return the fields that only the resource of the object has."""
    if isinstance(item, Job):
        queue = item.status.queue
        shown = [] if queue is None else [("Queue", "\n".join(queue_lines(item, queue, around, now)))]
        return [*shown, ("Replicas", counts(item.status.aggregate))]
    if isinstance(item, SampleSet):
        return [("Cache", cache_text(item))]
    return [("Operation", f"{item.status.type} of sampleset/{item.status.sample_set}")]


def _hung(text: str, width: int) -> str:
    return f"\n{' ' * width}".join(text.splitlines())


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
