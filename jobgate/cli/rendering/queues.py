"""Text about queues. Pure."""

from datetime import datetime

from jobgate.cli.rendering.tables import age, clock, shorten
from jobgate.client.types import Eviction, Job, Queueing


def queue_lines(queue: Queueing, now: datetime, preemptor: Job | None = None) -> list[str]:
    """Return the queue of a job with its admission and its last eviction."""
    lines = [f"{queue.name} ({_admission(queue, now)})"]
    if queue.eviction is not None:
        lines += _eviction_lines(queue.eviction, now, preemptor)
    return lines


def _admission(queue: Queueing, now: datetime) -> str:
    if queue.admitted:
        return "admitted" if queue.admitted_at is None else f"admitted {clock(queue.admitted_at)}"
    return "not admitted" if queue.queued_at is None else f"not admitted, waits for {age(queue.queued_at, now)}"


def _eviction_lines(eviction: Eviction, now: datetime, preemptor: Job | None) -> list[str]:
    since = "" if eviction.at is None else f" {age(eviction.at, now)} ago"
    lines = [f"evicted{since}: {shorten(f'{eviction.reason}: {eviction.message}')}"]
    if preemptor is not None:
        lines.append(f"preempted by {preemptor.kind} {preemptor.namespace}/{preemptor.name}")
    return lines
